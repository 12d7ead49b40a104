"""The step's captured output: the journal's NDJSON lines on stdout, the text renderer's lines on stderr.

Written as events happen, before any is coalesced; output that cannot be written is given up without a word, because the
journal has everything.
"""

from __future__ import annotations

import json
import sys
from typing import TextIO

from pz_dagster.discretion import Discretion
from pz_engine import RunEvent


class ComputeLog:
    """Writes events and notes of one op."""

    def __init__(self, discretion: Discretion) -> None:
        self._discretion = discretion

    def event(self, event: RunEvent) -> None:
        """Write one event in both forms."""
        from pz_engine import event_lines, journal_record

        record = {
            key: self._discretion.without_values(value) if isinstance(value, str) else value
            for key, value in journal_record(self._discretion.named(event)).items()
        }
        _write(sys.stdout, [json.dumps(record, separators=(",", ":"), ensure_ascii=False)])
        _write(sys.stderr, event_lines(self._discretion.event(event)))

    def note(self, text: str) -> None:
        """Write a note in text form; notes are no events."""
        _write(sys.stderr, [f"note: {text}"])


def _write(stream: TextIO, lines: list[str] | tuple[str, ...]) -> None:
    if not lines:
        return
    text = "".join(f"{line}\n" for line in lines)
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            stream.write(text.encode("ascii", "backslashreplace").decode())
        stream.flush()
    except (OSError, ValueError):
        return
