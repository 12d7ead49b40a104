"""`accepted_values`: rows whose value is neither NULL nor in the list."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pz_engine.checks.base import SAMPLE_ROWS, CheckQuery
from pz_engine.duck.quoting import quote_identifier, quote_literal
from pz_engine.model.checks import Check


def build(check: Check, relation: str, now: datetime) -> CheckQuery:  # noqa: ARG001
    """Build the SQL."""
    column = quote_identifier(check.columns[0])
    listed = ", ".join(_literal(value) for value in check.options["values"])
    condition = f"{column} is not null and {column} not in ({listed})"
    return CheckQuery(
        f"select count(*) from {relation} where {condition}",
        f"select distinct {column} from {relation} where {condition} order by all limit {SAMPLE_ROWS}",
    )


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    return quote_literal(str(value))
