"""Reads the log of manual state changes; lines that do not parse are passed over."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

AUDIT_FILE: Final = Path(".pz") / "state" / "audit.jsonl"


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One manual change."""

    at: str
    action: str
    key: str
    before: str | None = None
    after: str | None = None
    target: str | None = None
    reason: str | None = None


def read_audit(project_dir: Path, key: str) -> tuple[AuditRecord, ...]:
    """Return the changes of one key, oldest first."""
    try:
        lines = (project_dir / AUDIT_FILE).read_bytes().splitlines()
    except OSError:
        return ()
    records = (_parse(line) for line in lines)
    return tuple(record for record in records if record is not None and record.key == key)


def _parse(line: bytes) -> AuditRecord | None:
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    if not isinstance(fields, dict):
        return None
    at, action, key = (_text(fields, name) for name in ("ts", "action", "key"))
    if at is None or action is None or key is None:
        return None
    return AuditRecord(at, action, key, *(_text(fields, name) for name in ("from", "to", "target", "reason")))


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None
