"""Which of DuckDB's failures may pass if tried again.

A closed list over the first lines of the message; anything else is permanent.
"""

from __future__ import annotations

import re

_HTTP_STATUS = re.compile(r"(?<![A-Za-z])(?i:http)(?![a-z])\s+(?:500|502|503|504|408|429)(?![0-9])")

TRANSIENT_TEXTS = (
    "connection refused",
    "connection reset",
    "connection error",
    "could not establish connection",
    "timed out",
    "timeout",
    "could not connect to server",
    "could not resolve hostname",
    "can't connect to server",
    "could not set lock on file",
    "database is locked",
)
"""Lower-case texts that mark a message as transient."""


def is_transient_message(message: str) -> bool:
    """Classify a raw engine message; the part that echoes the statement is not looked at.

    >>> is_transient_message("HTTP GET error on 'https://h/500/f' (HTTP 404)")
    False
    >>> is_transient_message("Request returned HTTP 503 for HTTP HEAD")
    True
    """
    summary = message_summary(message)
    lowered = summary.lower()
    return _HTTP_STATUS.search(summary) is not None or any(text in lowered for text in TRANSIENT_TEXTS)


def message_summary(message: str) -> str:
    """Return everything before the first line that echoes the statement (`LINE <n>:`)."""
    kept: list[str] = []
    for line in message.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.lstrip().startswith("LINE "):
            break
        kept.append(line)
    return "\n".join(kept).strip()
