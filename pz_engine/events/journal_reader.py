"""Reads journals, whoever wrote them.

Everything is summarised again on the way in, a line that cannot be used is counted and the rest is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from msgspec import Struct

from pz_engine.base.redact import ErrorSummary
from pz_engine.base.stable_json import parse_json
from pz_engine.events.run_journal import SCHEMA_VERSION

LONGEST_LINE: Final = 256 * 1024
"""Bytes; a longer line is unreadable."""

_PROGRESS = b'{"event":"node_progress",'
_COMPLETED = b'{"event":"run_completed",'
_MAJOR = SCHEMA_VERSION.partition(".")[0]
_VERSION = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){0,2}")
_ENVELOPE = ("event", "runId", "schemaVersion")
_SUMMARISED = ("errorMessage", "reason")
_KINDS = ("errorKind", "errorOuterKind")


class JournalReader:
    """Reads one journal from the start, a line at a time, however long it is.

    Args:
        path: the journal file.
        run_id: the run whose lines are wanted; None takes the name of the file.
    """

    def __init__(self, path: Path, run_id: str | None = None) -> None:
        self._path = path
        self._run_id = path.stem if run_id is None else run_id
        self.unreadable = 0
        """Lines met so far that do not parse or have another major version; an unfinished last line is not one."""

        self.other_version: str | None = None
        """The version of the first line met that has another major one."""

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the readable lines of the run, in file order, but progress, which no summary needs.

        Raises:
            OSError: the file cannot be read.
        """
        with self._path.open("rb") as file:
            while line := file.readline(LONGEST_LINE + 1):
                is_finished = line.endswith(b"\n")
                if not is_finished and len(line) > LONGEST_LINE:
                    _skip_line(file)
                    self.unreadable += 1
                elif line.strip() and not line.startswith(_PROGRESS):
                    record = parse_line(line)
                    if record is None:
                        self.unreadable += is_finished
                        self.other_version = self.other_version or _other_version(line)
                    elif record["runId"] == self._run_id:
                        yield record


class JournalEnds(Struct, frozen=True):
    """What the first and the last lines of a journal say; None for what they do not."""

    run_id: str
    mode: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    status: str | None = None
    """The run's status; None when the run lives or died."""

    nodes: int | None = None


def read_ends(path: Path) -> JournalEnds:
    """Read the first and the last lines of a journal; one that cannot be read says nothing."""
    try:
        with path.open("rb") as file:
            first = parse_line(file.readline(LONGEST_LINE + 1)) or {}
            file.seek(0, 2)
            file.seek(max(0, file.tell() - LONGEST_LINE))
            tail = file.read(LONGEST_LINE).splitlines()
    except OSError:
        return JournalEnds(path.stem)
    completed = next((line for line in reversed(tail) if line.startswith(_COMPLETED)), None)
    last = (parse_line(completed) if completed is not None else None) or {}
    is_start = first.get("event") == "run_started"
    return JournalEnds(
        path.stem,
        _text(first, "mode") if is_start else None,
        _text(first, "at") if is_start else None,
        _text(last, "at"),
        _text(last, "status"),
        _count(first, "nodeCount") if is_start else None,
    )


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return one line's record with its texts summarised again, or None when it is unreadable."""
    record = _envelope(line)
    return _summarised(record) if record is not None and _is_readable(record["schemaVersion"]) else None


def _envelope(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line, whatever its version."""
    if len(line) > LONGEST_LINE:
        return None
    try:
        record = parse_json(line)
    except ValueError:
        return None
    is_record = isinstance(record, dict) and all(isinstance(record.get(key), str) for key in _ENVELOPE)
    return record if is_record else None


def _is_readable(version: str) -> bool:
    return version.partition(".")[0] == _MAJOR


def _other_version(line: bytes) -> str | None:
    version = (_envelope(line) or {}).get("schemaVersion", SCHEMA_VERSION)
    return version if not _is_readable(version) and _VERSION.fullmatch(version) else None


def _text(record: dict[str, Any], key: str) -> str | None:
    value = record.get(key)
    return value if isinstance(value, str) else None


def _count(record: dict[str, Any], key: str) -> int | None:
    value = record.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _skip_line(file: BinaryIO) -> None:
    """Read on to the end of a line that is too long to be one."""
    while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass


def _summarised(record: dict[str, Any]) -> dict[str, Any]:
    for key in (*_SUMMARISED, *(("message",) if record["event"] == "connector_log" else ())):
        if isinstance(record.get(key), str):
            record[key] = ErrorSummary.from_message(record[key]).message
    for key in _KINDS:
        if isinstance(record.get(key), str):
            record[key] = ErrorSummary.from_message(record[key]).message
    return record
