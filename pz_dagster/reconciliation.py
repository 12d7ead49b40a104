"""What to do about one stored position and its copies in the Dagster instance.

A pure function: nothing is read or written here. No answer ever skips rows: where two histories cannot be told apart,
the lower position is kept, and rows are read again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

WATERMARKS = "watermarks"
TOKENS = "sync-state"

_RUN_ID = re.compile(r"(\d{8}T\d{9})Z")
_NOT_DIGITS = re.compile(r"[^0-9]")


class CopyRecord(Struct, frozen=True):
    """One copy of a position, as the instance keeps it."""

    name: str
    """`<scope>/<connection>.<entity>`."""

    fingerprint: str
    """Of the entry; empty when there is none."""

    previous: str
    """Fingerprint of what it replaced; empty when that is nothing or not known."""

    entry: Mapping[str, Any] | None
    """As the state file spells it; None says that the position was removed."""

    by: str
    """The pz run that copied it; empty for a person."""

    at: str
    """When it was stored, an instant in UTC."""

    @property
    def scope(self) -> str:
        """`watermarks` or `sync-state`."""
        return self.name.partition("/")[0]


class ManualChange(Struct, frozen=True):
    """One change by hand, from the log of the project."""

    at: str
    is_clear: bool
    before: str | None
    before_run_id: str | None
    after: str | None


class LocalState(Struct, frozen=True):
    """What the project's own store has for one name."""

    entry: Mapping[str, Any] | None
    fingerprint: str
    """Of the entry; empty when there is none."""

    changes: Sequence[ManualChange] = ()
    """Oldest first."""

    is_unreadable: bool = False
    """The file is there and cannot be read."""

    is_file_missing: bool = False
    """Nothing of this scope was ever stored here."""


class Decision(Struct, frozen=True):
    """What to do."""

    action: Literal["none", "copy", "restore"]
    """`copy`: record what is stored now, also when that is nothing. `restore`: store what the newest record says."""

    code: Literal["PZ0705", "PZ0706"] | None = None
    reason: str = ""


NOTHING = Decision("none")
COPY = Decision("copy")


def decide(local: LocalState, records: Sequence[CopyRecord], position: int | None = None) -> Decision:
    """Decide about one name.

    Args:
        local: what is stored now.
        records: its copies, newest first.
        position: -1, 0 or 1 as the stored watermark is below, at or above the newest copy; None when they cannot be
            compared.
    """
    if not records:
        return COPY if local.entry is not None else NOTHING
    newest = records[0]
    if local.fingerprint == newest.fingerprint and not local.is_unreadable:
        return NOTHING
    if local.entry is None:
        return _absent(local, newest)
    if _is_manual(local) and any(_made(change, local) and _is_later(change, newest) for change in local.changes):
        return COPY
    older = next((each for each in records[1:] if each.fingerprint == local.fingerprint), None)
    if older is not None and not (older.previous == newest.fingerprint and older.at >= newest.at):
        if newest.scope == TOKENS:
            return COPY
        return Decision("restore", "PZ0705", "is older than the copy")
    if older is not None or _is_newer(local, newest):
        return COPY
    return _diverged(newest, position)


def _absent(local: LocalState, newest: CopyRecord) -> Decision:
    if newest.entry is None:
        return NOTHING
    if any(change.is_clear and _is_later(change, newest) for change in local.changes):
        return COPY
    if newest.scope == TOKENS and not local.is_file_missing:
        return NOTHING if local.is_unreadable else COPY
    return Decision("restore", "PZ0705", "is unreadable" if local.is_unreadable else "is missing")


def _diverged(newest: CopyRecord, position: int | None) -> Decision:
    """Keep the lower watermark, and the token of the older run, which is the stored one when this is reached."""
    reason = "and its copy come from two histories"
    if newest.scope == WATERMARKS and (newest.entry is None or (position is not None and position > 0)):
        return Decision("restore", "PZ0706", reason)
    return COPY if position == 0 else Decision("copy", "PZ0706", reason)


def _is_manual(local: LocalState) -> bool:
    return local.entry is not None and local.entry.get("runId") == "manual"


def _made(change: ManualChange, local: LocalState) -> bool:
    return not change.is_clear and local.entry is not None and change.after == local.entry.get("value")


def _is_later(change: ManualChange, record: CopyRecord) -> bool:
    """Tell whether a change came after a record: by the clock, or because it replaced what the record holds."""
    if change.at >= record.at:
        return True
    entry = record.entry or {}
    replaced = (entry.get("value"), entry.get("runId"))
    return _RUN_ID.match(str(replaced[1])) is not None and replaced == (change.before, change.before_run_id)


def _is_newer(local: LocalState, newest: CopyRecord) -> bool:
    """Tell whether the run that stored the local entry is newer than what the record holds."""
    own = str((local.entry or {}).get("runId"))
    if _RUN_ID.match(own) is None:
        return False
    theirs = str((newest.entry or {}).get("runId"))
    if _RUN_ID.match(theirs) is not None:
        return own > theirs
    if _RUN_ID.match(newest.by) is not None:  # the run that found a change by hand may have moved on from it
        return own >= newest.by
    return _NOT_DIGITS.sub("", own.partition("Z")[0]) > _NOT_DIGITS.sub("", newest.at)
