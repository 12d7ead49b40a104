"""`custom_sql`: every row the author's query returns is a violation."""

from __future__ import annotations

from datetime import datetime

from pz_engine.checks.base import SAMPLE_ROWS, CheckQuery
from pz_engine.model.checks import Check


def build(check: Check, relation: str, now: datetime) -> CheckQuery:  # noqa: ARG001
    """Build the SQL; the text runs verbatim inside a sub-query, on lines of its own because it may end in a comment."""
    text = str(check.options["sql"]).strip().rstrip(";").rstrip()
    return CheckQuery(
        f"select count(*) from (\n{text}\n)",
        f"select * from (\n{text}\n) limit {SAMPLE_ROWS}",
    )
