"""Characters that no SQL, file or protocol can carry as text: NUL, and halves of surrogate pairs.

Halves come out of escapes in templates, and out of bytes of the environment that are no UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_FORBIDDEN = re.compile("[\x00\ud800-\udfff]")


def forbidden_character(value: Any) -> str | None:
    r"""Name the first such character in a text, or in any text inside a list or mapping; None without one.

    >>> forbidden_character("a\x00"), forbidden_character(["a", {"k": "\ud800"}]), forbidden_character("é")
    ('the character NUL', 'half of a surrogate pair', None)
    """
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, str):
            found = _FORBIDDEN.search(current)
            if found is not None:
                return "the character NUL" if found[0] == "\x00" else "half of a surrogate pair"
        elif isinstance(current, Mapping):
            waiting.extend([*current, *current.values()])
        elif isinstance(current, (list, tuple)):
            waiting.extend(current)
    return None
