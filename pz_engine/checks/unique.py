"""`unique`: groups of the listed columns that occur more than once; NULLs form one group."""

from __future__ import annotations

from datetime import datetime

from pz_engine.checks.base import SAMPLE_ROWS, CheckQuery
from pz_engine.duck.quoting import quote_identifier
from pz_engine.model.checks import Check


def build(check: Check, relation: str, now: datetime) -> CheckQuery:  # noqa: ARG001
    """Build the SQL."""
    columns = ", ".join(quote_identifier(column) for column in check.columns)
    groups = f"select {columns} from {relation} group by {columns} having count(*) > 1"
    return CheckQuery(f"select count(*) from ({groups})", f"{groups} order by all limit {SAMPLE_ROWS}")
