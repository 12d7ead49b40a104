"""Changes stored watermarks by hand: back to what a run captured, to a value, or away.

A change is planned first and applied after the person agreed. Both steps refuse while a run lives, and the write is the
same compare-and-swap as a run's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from pz_engine.app.cursor_contract import declared_cursor_type
from pz_engine.app.state import Health, KeyRuns, checked, key_runs
from pz_engine.app.state_owner import open_state
from pz_engine.base.clock import Clock, SystemClock, format_instant
from pz_engine.config.state_only import load_state_settings
from pz_engine.errors.exceptions import PzStateError
from pz_engine.model.contract_types import can_hold_cursor, cursor_limits
from pz_engine.model.cursor_values import canonicalize, compare
from pz_engine.model.run import RunStatus
from pz_engine.state.audit_log import AuditRecord, append_audit, audit_line
from pz_engine.state.factory import open_state_stores
from pz_engine.state.run_history import is_live, run_directories
from pz_engine.state.store import StateStores, WatermarkEntry, lost_race

MANUAL: Final = "manual"
"""Stored in place of a run id."""

Action = Literal["rollback", "set", "clear"]


class EditRequest(Struct, frozen=True):
    """What was asked for; None for what was not given."""

    action: Action
    key: str | None
    value: str | None = None
    to_run: str | None = None
    reason: str | None = None


class PlannedEdit(Struct, frozen=True):
    """A change that may be made; close it when it is not."""

    state_dir: Path
    request: EditRequest
    key: str
    before: WatermarkEntry
    after: WatermarkEntry | None
    """None for clear."""

    notes: tuple[str, ...]
    effect: str
    """What the next run will do."""

    stores: StateStores

    def close(self) -> None:
        """Release the store."""
        self.stores.close()


class AppliedEdit(Struct, frozen=True):
    """A change that was made."""

    unwritten_audit_line: str | None = None
    """The line that could not be appended to the log, for the person to keep."""

    audit_problem: str | None = None


class StateUnreadableError(Exception):
    """The stored watermarks cannot be read, so nothing can be changed."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        """Where they are kept."""

        super().__init__(backend)


def plan_edit(project_dir: Path, request: EditRequest, *, env: Mapping[str, str] | None = None) -> PlannedEdit:
    """Find out what a change would do; nothing is written.

    Raises:
        PzValidationError: there is no `project.yml`, or its `state:` is wrong.
        PzStateError: the change is refused: `PZ0513` to `PZ0517`; or `PZ0518`, the store cannot be reached.
        StateUnreadableError: the stored watermarks cannot be read.
    """
    settings = load_state_settings(project_dir, env=os.environ if env is None else env)
    key = _key_of(request)
    state_dir = open_state(project_dir, env=env)
    refuse_live_runs(state_dir)
    notes: list[str] = []
    stores = open_state_stores(settings, state_dir, note=notes.append)
    try:
        entry = stores.watermarks.get(key)
        if entry is None and stores.watermarks.list_all() is None:
            raise StateUnreadableError(settings.backend)
        if entry is None:
            raise _no_entry(stores, key)
        after = _after(state_dir, request, key, entry, notes)
        if after is not None:
            _require_fit(key, after, declared_cursor_type(project_dir, key, entry, env=env))
        effect = _effect(entry, after)
    except BaseException:
        stores.close()
        raise
    return PlannedEdit(state_dir, request, key, entry, after, tuple(notes), effect, stores)


def apply_edit(planned: PlannedEdit, *, clock: Clock | None = None) -> AppliedEdit:
    """Make the change, then log it.

    Raises:
        PzStateError: `PZ0517`, a run started meanwhile; `PZ0520`, the value changed meanwhile; `PZ0518`.
    """
    try:
        refuse_live_runs(planned.state_dir)
        if planned.after is None:
            if planned.stores.watermarks.get(planned.key) != planned.before:
                raise lost_race(planned.key, "it was not cleared")
            planned.stores.watermarks.remove(planned.key)
        else:
            planned.stores.watermarks.set(planned.key, planned.after)
    finally:
        planned.close()
    record = _record(planned, clock or SystemClock())
    try:
        append_audit(planned.state_dir, record)
    except OSError as error:
        return AppliedEdit(audit_line(record), error.strerror or type(error).__name__)
    return AppliedEdit()


def _key_of(request: EditRequest) -> str:
    if not request.key:
        raise PzStateError("PZ0516", f"state {request.action} needs a key", hint="see the keys with 'pz state show'")
    if request.action == "set" and request.value is None:
        raise PzStateError("PZ0516", "state set needs a value", hint=f"pz state set {request.key} --value <value>")
    if request.action == "rollback" and not request.to_run:
        hint = f"pz state rollback {request.key} --to-run <run id>; 'pz state show {request.key}' lists runs"
        raise PzStateError("PZ0516", "state rollback needs a run", hint=hint)
    return request.key


def refuse_live_runs(state_dir: Path) -> None:
    """Raise `PZ0517` while a run of the project lives."""
    live = [directory.name for directory in run_directories(state_dir) if is_live(directory)]
    if live:
        raise PzStateError("PZ0517", f"run {live[0]} is in flight", hint="wait for its end, then try again")


def _no_entry(stores: StateStores, key: str) -> PzStateError:
    has_token = key in (stores.sync_tokens.list_all() or {})
    hint = "a token has no earlier value to go back to; see 'pz state show'" if has_token else "see 'pz state show'"
    ending = "; it has a sync token" if has_token else ""
    return PzStateError("PZ0513", f"no watermark is stored for '{key}'{ending}", hint=hint)


def _after(
    state_dir: Path, request: EditRequest, key: str, entry: WatermarkEntry, notes: list[str]
) -> WatermarkEntry | None:
    if request.action == "clear":
        return None
    health = checked(key, entry).health
    if health == "unknown type":
        raise PzStateError(
            "PZ0515",
            f"the stored watermark of '{key}' has a cursor type that pz does not know",
            hint=f"pz state clear {key}",
        )
    if request.action == "set":
        value = canonicalize(entry.type, request.value or "")
        if value is None:
            raise PzStateError(
                "PZ0515", f"the value is no {entry.type}", hint=f"write it as stored: see 'pz state show {key}'"
            )
    else:
        value = _recorded(key_runs(state_dir, key), request.to_run or "", key, entry, health, notes)
    return WatermarkEntry(entry.cursor, entry.type, value, MANUAL)


def _require_fit(key: str, after: WatermarkEntry, declared: str | None) -> None:
    """Refuse a number that the cursor's column can never hold: no row could be compared with it."""
    if not can_hold_cursor(after.type, after.value, declared):
        raise PzStateError(
            "PZ0515",
            f"the value is no {declared or after.type}",
            hint=f"pz state set {key} --value <a number {cursor_limits(after.type, declared)}>",
        )


def _recorded(runs: KeyRuns, to_run: str, key: str, entry: WatermarkEntry, health: Health, notes: list[str]) -> str:
    """Return the value a run captured, when going back to it is possible."""
    found = next((run for run in runs.runs if run.run_id == to_run), None)
    hint = f"'pz state show {key}' lists what each run captured"
    if runs.is_ambiguous:
        raise PzStateError("PZ0514", f"two entities of one run could have the key '{key}'", hint="pz state set")
    if found is None:
        raise PzStateError("PZ0514", f"that run captured nothing for '{key}'", hint=hint)
    if found.cursor != entry.cursor:
        raise PzStateError(
            "PZ0514", f"that run captured '{found.cursor}', but the stored cursor is '{entry.cursor}'", hint=hint
        )
    value = canonicalize(entry.type, found.value)
    if value is None:
        raise PzStateError("PZ0515", f"what that run captured is no {entry.type}", hint=f"pz state set {key} --value …")
    if health == "ok":
        order = compare(entry.type, value, entry.value)
        if order >= 0:
            word = "is what is stored" if order == 0 else "is newer than what is stored"
            raise PzStateError(
                "PZ0515",
                f"what that run captured {word}; rollback only goes back",
                hint=f"pz state set {key} --value …",
            )
    else:
        notes.append("the stored value is not in its one spelling, so it was not checked that this goes back")
    if found.status is not RunStatus.SUCCESS:
        notes.append(f"that run ended as {found.status.value}, so its value may never have been stored")
    return value


def _effect(before: WatermarkEntry, after: WatermarkEntry | None) -> str:
    twice = "outputs that append would hold rows twice"
    if after is None:
        return f"the next run reads the entity in full; {twice}"
    current = canonicalize(before.type, before.value)
    order = compare(before.type, after.value, current) if current is not None else None
    if order is None:
        return "the next run reads what comes after the new value"
    if order > 0:
        return "the next run skips everything between the two values"
    if order < 0:
        return f"the next run reads everything after the new value again; {twice}"
    return "the next run reads on from the same value"


def _record(planned: PlannedEdit, clock: Clock) -> AuditRecord:
    request = planned.request
    target = {"rollback": f"run:{request.to_run}", "set": "value", "clear": None}[request.action]
    return AuditRecord(
        at=format_instant(clock.now()),
        action=request.action,
        key=planned.key,
        cursor=planned.before.cursor,
        type=planned.before.type,
        before=planned.before.value,
        before_run_id=planned.before.run_id,
        after=planned.after.value if planned.after is not None else None,
        target=target,
        reason=request.reason,
    )
