"""Date tokens in paths: `{yyyy}` or `{yy}`, `{MM}`, `{dd}`, `{HH}`, `{mm}`.

They name ever finer parts of one instant, without gaps, starting with the year.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\{([yYMdDhHmsS]+)\}")
_ORDER = {"yyyy": 0, "yy": 0, "MM": 1, "dd": 2, "HH": 3, "mm": 4}


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
        if token not in _ORDER:
            return f"{{{token}}} is no date token"
        if _ORDER[token] > expected:
            return f"the date tokens leave a gap before {{{token}}}"
        if _ORDER[token] < expected:
            return f"{{{token}}} comes after a finer or equal token"
    return None
