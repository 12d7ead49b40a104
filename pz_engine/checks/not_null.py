"""`not_null`: rows where at least one listed column is NULL."""

from __future__ import annotations

from datetime import datetime

from pz_engine.checks.base import SAMPLE_ROWS, CheckQuery
from pz_engine.duck.quoting import quote_identifier
from pz_engine.model.checks import Check


def build(check: Check, relation: str, now: datetime) -> CheckQuery:  # noqa: ARG001
    """Build the SQL."""
    condition = " or ".join(f"{quote_identifier(column)} is null" for column in check.columns)
    return CheckQuery(
        f"select count(*) from {relation} where {condition}",
        f"select * from {relation} where {condition} limit {SAMPLE_ROWS}",
    )
