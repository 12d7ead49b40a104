"""Order of a crawl that `max_pages` may cut short: what may land, and when stopping loses nothing.

The next run reads values above the highest one that landed, so the rows that share the highest value seen are kept back
until a larger value, or the end of the crawl, shows that the group is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal, InvalidOperation
from typing import Any

from msgspec import Struct

Row = dict[str, Any]

_RAISE = "raise max_pages"
_SORT = "raise max_pages, or ask the server to sort ascending by the cursor"
_WINDOW = "raise max_pages, or make max_window smaller"
_BOUND = "raise max_pages, or hand the bound to the server: query: { since: '{{ watermark }}' }"


class Objection(Struct, frozen=True):
    """Why a crawl must not end early."""

    cause: str
    hint: str


class CursorOrder:
    """Sees every row of a crawl, in the order of the pages."""

    def __init__(self, cursor: str, columns: Iterable[str]) -> None:
        """Start before the first row.

        Args:
            cursor: the cursor column, in any case.
            columns: what rows are made of; without the cursor among them, nothing is known of the order.
        """
        self._column = next((name for name in columns if name.lower() == cursor.lower()), cursor)
        self._highest: Any = None
        self._complete: Any = None
        """Highest value whose rows have all been passed on."""

        self._held: list[Row] = []
        self._has_fallen = False

    def pass_on(self, rows: Sequence[Row]) -> list[Row]:
        """Take a page's rows and return those that may land; rows without a cursor value always may."""
        ready: list[Row] = []
        for row in rows:
            value = row.get(self._column)
            if value is None:
                ready.append(row)
            elif self._highest is None or value > self._highest:
                ready += self._held
                self._held, self._complete, self._highest = [row], self._highest, value
            elif value == self._highest:
                self._held.append(row)
            else:
                self._has_fallen = True
                ready.append(row)
        return ready

    def rest(self) -> list[Row]:
        """Return what was kept back, at the end of a crawl that ended by itself."""
        held, self._held = self._held, []
        return held

    def objection(self, watermark: str | None, upper: str | None) -> Objection | None:
        """Return why stopping now would lose rows for good or never get further; None when it does neither.

        Args:
            watermark: canonical exclusive lower bound of the read, or None.
            upper: canonical inclusive upper bound of the read, or None.
        """
        if self._has_fallen:
            return Objection("the pages are not in its order, so the rest would never be read", _SORT)
        if self._complete is None:
            return Objection(
                "all rows so far have the same value or none, so the next run would begin here again", _RAISE
            )
        if upper is not None:
            if _order(self._highest, upper) != 1:
                return Objection("rows of the window may be on the pages that were not read", _WINDOW)
        elif watermark is not None and _order(self._complete, watermark) in (-1, 0):
            return Objection("nothing above the stored watermark was read, so the next run would end here too", _BOUND)
        return None


def _order(value: Any, bound: str) -> int | None:
    """Compare a column's value with a canonical bound: -1, 0 or 1; None when they are of different kinds."""
    try:
        limit = _of_the_kind_of(value, bound)
        return int(value > limit) - int(value < limit)
    except (ValueError, TypeError, InvalidOperation):
        return None


def _of_the_kind_of(value: Any, bound: str) -> Any:
    if isinstance(value, datetime):
        return datetime.fromisoformat(bound).replace(tzinfo=timezone.utc)
    if isinstance(value, date):
        return date.fromisoformat(bound)
    return Decimal(bound)
