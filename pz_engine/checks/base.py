"""What a check asks DuckDB, independent of how it is run.

Every violation query returns one row whose first column is the number of violations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct

from pz_engine.model.checks import Check

SAMPLE_ROWS = 5
"""Most rows or values shown of a failing check."""


class CheckQuery(Struct, frozen=True):
    """The SQL of one check."""

    violations_sql: str
    sample_sql: str | None = None
    """Up to five offending rows; run only when there are violations and samples are wanted."""

    describe: Callable[[Sequence[Any]], str] | None = None
    """Turns the violation row into a sentence about the bound; set where no rows are sampled."""


class CheckBuilder(Protocol):
    """Builds the SQL of one check type."""

    def __call__(self, check: Check, relation: str, now: datetime) -> CheckQuery:
        """Build for a quoted relation; `now` is the run's instant in UTC."""


def render_sample(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Render rows as `{column=value, …}` joined by `; `.

    >>> render_sample(["id", "city"], [(1, None), (2, "Rome")])
    '{id=1, city=NULL}; {id=2, city=Rome}'
    """
    return "; ".join(
        "{"
        + ", ".join(f"{name}={'NULL' if cell is None else cell}" for name, cell in zip(names, row, strict=True))
        + "}"
        for row in rows
    )
