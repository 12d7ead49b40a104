"""`row_count`: one violation when the number of rows is outside the inclusive bounds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pz_engine.checks.base import CheckQuery
from pz_engine.model.checks import Check


def build(check: Check, relation: str, now: datetime) -> CheckQuery:  # noqa: ARG001
    """Build the SQL."""
    low, high = check.options.get("min"), check.options.get("max")
    outside = [f"n < {int(low)}"] if low is not None else []
    outside += [f"n > {int(high)}"] if high is not None else []
    bounds = " and ".join(
        part
        for part in (f"at least {low}" if low is not None else "", f"at most {high}" if high is not None else "")
        if part
    )

    def describe(row: Sequence[Any]) -> str:
        return f"the relation has {row[1]} row(s), expected {bounds}"

    return CheckQuery(
        f"select case when {' or '.join(outside)} then 1 else 0 end, n from (select count(*) as n from {relation})",
        describe=describe,
    )
