"""Lines of options: where each key of a declaration stands.

A key is named by its path, `auth.user`; only keys that do not stand on their declaration's own line are kept.
"""

from __future__ import annotations

from collections.abc import Mapping

Lines = Mapping[str, int]
"""Line by path."""


def nearest_line(lines: Lines, path: str, declared: int | None) -> int | None:
    """Return the line of a key, or of the innermost one around it that has a line of its own.

    >>> nearest_line({"auth": 7}, "auth.user", 3), nearest_line({"auth": 7}, "path", 3)
    (7, 3)
    """
    while path:
        if path in lines:
            return lines[path]
        path = path.rpartition(".")[0]
    return declared
