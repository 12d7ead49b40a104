"""Date tokens in paths: `{yyyy}` or `{yy}`, `{MM}`, `{dd}`, `{HH}`, `{mm}`.

They name ever finer parts of one instant, without gaps, starting with the year.
"""

from __future__ import annotations

import re
from collections.abc import Callable

DIRECTIVES = {"yyyy": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M"}
"""What stands for each token in a `strftime` format."""

_LEVELS = {"yyyy": 0, "yy": 0, "MM": 1, "dd": 2, "HH": 3, "mm": 4}
_TOKEN = re.compile(r"\{([yYMdDhHmsS]+)\}")


def has_date_tokens(path: str) -> bool:
    """Tell whether a path holds anything that looks like a date token.

    >>> has_date_tokens("in/{yyyy}/{MM}.csv"), has_date_tokens("in/{a,b}.csv")
    (True, False)
    """
    return _TOKEN.search(path) is not None


def date_token_problem(path: str) -> str | None:
    """Return what is wrong with a path's tokens, or None.

    >>> date_token_problem("{yyyy}/{MM}/{dd}.csv") is None
    True
    >>> date_token_problem("{yyyy}/{dd}.csv")
    'the date tokens leave a gap before {dd}'
    """
    for expected, token in enumerate(_TOKEN.findall(path)):
        if token not in _LEVELS:
            return f"{{{token}}} is no date token"
        if _LEVELS[token] > expected:
            return f"the date tokens leave a gap before {{{token}}}"
        if _LEVELS[token] < expected:
            return f"{{{token}}} comes after a finer or equal token"
    return None


def finest_level(path: str) -> int:
    """Return the level of a path's finest token: 0 for the year to 4 for the minute.

    >>> finest_level("{yyyy}/{MM}.csv")
    1
    """
    return max(_LEVELS[token] for token in _TOKEN.findall(path))


def replace_date_tokens(path: str, value: Callable[[str, int], str]) -> str:
    """Return a path with each token replaced.

    Args:
        path: a path whose tokens have no problem.
        value: gives the text for a token, named without braces, and its level.

    >>> replace_date_tokens("{yyyy}/{MM}", lambda token, level: f"{token}{level}")
    'yyyy0/MM1'
    """
    return _TOKEN.sub(lambda match: value(match[1], _LEVELS[match[1]]), path)
