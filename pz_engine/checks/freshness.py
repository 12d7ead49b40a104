"""`freshness`: one violation when the newest value is missing or older than `max_age`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from pz_engine.base.durations import parse_duration
from pz_engine.checks.base import CheckQuery
from pz_engine.duck.quoting import quote_identifier
from pz_engine.model.checks import Check


def build(check: Check, relation: str, now: datetime) -> CheckQuery:
    """Build the SQL; the limit is a UTC instant with microseconds."""
    max_age = str(check.options["max_age"])
    oldest = (now.astimezone(timezone.utc) - (parse_duration(max_age) or timedelta())).replace(tzinfo=None)
    column = quote_identifier(check.columns[0])

    def describe(row: Sequence[Any]) -> str:
        newest = "no value" if row[1] is None else str(row[1])
        return f"the newest {check.columns[0]} is {newest}, expected at most {max_age} old"

    return CheckQuery(
        f"select case when newest is null or newest < timestamp '{oldest.isoformat(sep=' ')}' then 1 else 0 end, "
        f"cast(newest as varchar) from (select max({column}) as newest from {relation})",
        describe=describe,
    )
