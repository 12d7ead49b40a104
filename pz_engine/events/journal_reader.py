"""Reads journals, whoever wrote them.

Everything is summarised again on the way in, a line that cannot be used is counted and the rest is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pz_engine.base.redact import ErrorSummary
from pz_engine.events.run_journal import SCHEMA_VERSION

LONGEST_LINE: Final = 256 * 1024
"""Bytes; a longer line is unreadable."""

_MAJOR = SCHEMA_VERSION.partition(".")[0]
_SUMMARISED = ("errorMessage", "reason")
_KINDS = ("errorKind", "errorOuterKind")


@dataclass(frozen=True, slots=True)
class Journal:
    """What a journal file holds."""

    records: tuple[dict[str, Any], ...]
    """Readable lines of the run, in file order."""

    unreadable: int = 0
    """Lines that do not parse or have another major version; an unfinished last line is not one."""


def read_journal(path: Path, run_id: str | None = None) -> Journal:
    """Read a whole journal.

    Args:
        path: the journal file.
        run_id: the run whose lines are wanted; None takes the name of the file.

    Raises:
        OSError: the file cannot be read.
    """
    wanted = path.stem if run_id is None else run_id
    records: list[dict[str, Any]] = []
    unreadable = 0
    for line, is_finished in _lines(path):
        if not line.strip():
            continue
        record = parse_line(line)
        if record is None:
            unreadable += is_finished
        elif record["runId"] == wanted:
            records.append(record)
    return Journal(tuple(records), unreadable)


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return one line's record with its texts summarised again, or None when it is unreadable."""
    if len(line) > LONGEST_LINE:
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or not isinstance(record.get("event"), str):
        return None
    version = record.get("schemaVersion")
    if not isinstance(record.get("runId"), str) or not isinstance(version, str):
        return None
    return _summarised(record) if version.partition(".")[0] == _MAJOR else None


def _lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    with path.open("rb") as file:
        for line in file:
            yield line, line.endswith(b"\n")


def _summarised(record: dict[str, Any]) -> dict[str, Any]:
    for key in (*_SUMMARISED, *(("message",) if record["event"] == "connector_log" else ())):
        if isinstance(record.get(key), str):
            record[key] = ErrorSummary.from_message(record[key]).message
    for key in _KINDS:
        if isinstance(record.get(key), str):
            record[key] = ErrorSummary.from_message(record[key]).message
    return record
