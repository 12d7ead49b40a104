"""How much work one rendering may do.

Everything that grows is counted before it is made: characters, items of lists, and steps of loops. So no template can
use time or memory that is out of proportion to the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2.exceptions import SecurityError

WORK_LIMIT = 1_000_000
"""Units that one rendering may spend: a character or an item costs one."""

UNITS_PER_STEP = 10
"""What evaluating one part of a loop's body costs, beside the values it handles."""


class Work:
    """The account of one rendering."""

    def __init__(self, limit: int = WORK_LIMIT) -> None:
        self._left = limit

    def spend(self, units: int) -> None:
        """Take units off the account.

        Raises:
            SecurityError: nothing is left.
        """
        self._left -= units
        if self._left < 0:
            raise SecurityError(f"its texts, lists and loops exceed {WORK_LIMIT:,} characters, items and steps")

    def charge(self, value: Any) -> None:
        """Take the size of a value off the account, everything inside it counted as often as it occurs."""
        if isinstance(value, str):
            self.spend(len(value) + 1)
            return
        if not isinstance(value, (list, tuple, Mapping)):
            return
        waiting: list[Any] = [value]
        while waiting:
            current = waiting.pop()
            if isinstance(current, str):
                self.spend(len(current) + 1)
            elif isinstance(current, (list, tuple, Mapping)):
                self.spend(2 * len(current) + 1)
                waiting.extend(current)
                if isinstance(current, Mapping):
                    waiting.extend(current.values())
