"""SQL of the six check types."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pz_engine.checks import accepted_values, custom_sql, freshness, not_null, row_count, unique
from pz_engine.checks.base import SAMPLE_ROWS, CheckBuilder, CheckQuery, render_sample
from pz_engine.model.checks import Check, CheckType

__all__ = ["SAMPLE_ROWS", "CheckQuery", "build_check", "render_sample"]

_BUILDERS: Mapping[CheckType, CheckBuilder] = {
    CheckType.NOT_NULL: not_null.build,
    CheckType.UNIQUE: unique.build,
    CheckType.ROW_COUNT: row_count.build,
    CheckType.FRESHNESS: freshness.build,
    CheckType.ACCEPTED_VALUES: accepted_values.build,
    CheckType.CUSTOM_SQL: custom_sql.build,
}


def build_check(check: Check, relation: str, now: datetime) -> CheckQuery:
    """Build the SQL of a check over a quoted relation; `now` is the run's instant in UTC."""
    return _BUILDERS[check.type](check, relation, now)
