"""The only redaction code.

`sanitize` prepares engine messages for results, events and the console: the statement's echo and every quoted value
go. Applying it twice changes nothing.
"""

from __future__ import annotations

import re

_QUOTED = re.compile(r"'(?:[^']|'')*'")


def sanitize(message: str) -> str:
    """Drop the statement echo (from the first `LINE <n>:` line on) and replace each single-quoted span.

    >>> sanitize("Conversion Error: Could not convert string 'abc' to INT32")
    "Conversion Error: Could not convert string '***' to INT32"
    """
    kept: list[str] = []
    for line in message.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.lstrip().startswith("LINE "):
            break
        kept.append(line)
    return _QUOTED.sub("'***'", "\n".join(kept).strip())


def statement_label(sql: str) -> str:
    """Describe a statement without its content: the first two words, upper case."""
    return " ".join(sql.split()[:2]).upper() + " …"
