"""The log of manual state changes: one line each, appended and never rewritten.

It is kept locally whatever the backend. A reader passes over lines that do not parse.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from pz_engine.base.file_locks import FileLock, LockHeldError
from pz_engine.base.stable_json import compact_json, parse_json

AUDIT_FILE: Final = Path("state") / "audit.jsonl"
LOCK_WAIT_SECONDS: Final = 30.0

_FIELDS: Final = (
    ("ts", "at"),
    ("action", "action"),
    ("key", "key"),
    ("cursor", "cursor"),
    ("type", "type"),
    ("from", "before"),
    ("fromRunId", "before_run_id"),
    ("to", "after"),
    ("target", "target"),
    ("reason", "reason"),
)
"""Written name and attribute, in file order."""


class AuditRecord(Struct, frozen=True):
    """One manual change; None for what does not apply."""

    at: str
    action: str
    """`rollback`, `set` or `clear`."""

    key: str
    cursor: str | None = None
    type: str | None = None
    before: str | None = None
    before_run_id: str | None = None
    after: str | None = None
    target: str | None = None
    """`run:<id>` or `value`."""

    reason: str | None = None


def audit_line(record: AuditRecord) -> str:
    """Return the line of a change, without its end."""
    values = ((name, getattr(record, attribute)) for name, attribute in _FIELDS)
    return compact_json({name: value for name, value in values if value is not None})


def append_audit(state_dir: Path, record: AuditRecord) -> None:
    """Append a change, after a line end of its own if the last writer died in the middle of a line.

    Raises:
        OSError: the log cannot be written, or stayed locked.
    """
    path = state_dir / AUDIT_FILE
    try:
        with FileLock(path.with_name(f"{path.name}.lock"), wait_seconds=LOCK_WAIT_SECONDS), path.open("ab+") as file:
            if file.tell() and not _ends_a_line(file.fileno()):
                file.write(b"\n")
            file.write(f"{audit_line(record)}\n".encode("utf-8", "backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
    except LockHeldError:
        raise OSError(None, "it stayed locked by another process") from None


def read_audit(state_dir: Path, key: str) -> tuple[AuditRecord, ...]:
    """Return the changes of one key, oldest first."""
    try:
        lines = (state_dir / AUDIT_FILE).read_bytes().splitlines()
    except OSError:
        return ()
    records = (_parse(line) for line in lines)
    return tuple(record for record in records if record is not None and record.key == key)


def _ends_a_line(descriptor: int) -> bool:
    return os.pread(descriptor, 1, os.fstat(descriptor).st_size - 1) == b"\n"


def _parse(line: bytes) -> AuditRecord | None:
    try:
        fields = parse_json(line)
    except ValueError:
        return None
    if not isinstance(fields, dict):
        return None
    found = {attribute: _text(fields, name) for name, attribute in _FIELDS}
    at, action, key = found.pop("at"), found.pop("action"), found.pop("key")
    return AuditRecord(at, action, key, **found) if at and action and key else None


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None
