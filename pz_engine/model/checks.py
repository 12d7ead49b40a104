"""Checks declared in a sidecar."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import Struct, field


class CheckType(str, Enum):
    """The six kinds of check."""

    NOT_NULL = "not_null"
    UNIQUE = "unique"
    ROW_COUNT = "row_count"
    FRESHNESS = "freshness"
    ACCEPTED_VALUES = "accepted_values"
    CUSTOM_SQL = "custom_sql"


class Check(Struct, frozen=True):
    """One check of one pipeline, already normalised (`column: x` became `columns: [x]`)."""

    type: CheckType
    columns: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """Everything but `column`, `columns` and `sample_values`; values as written."""

    sample_values: bool | None = None
    """None follows `engine.check_samples`."""

    line: int | None = None
