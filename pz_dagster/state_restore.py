"""The project's own state beside its copies in the Dagster instance: compare them, and make them agree.

Needs no running op. Only the local backend is ever changed from a copy; every other backend is right by itself.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg
from msgspec import Struct
from msgspec.structs import replace

from pz_dagster.project import PzProject
from pz_dagster.reconciliation import COPY, TOKENS, CopyRecord, Decision, LocalState, ManualChange, decide
from pz_dagster.snapshot import Snapshot
from pz_dagster.state_records import Records, now, read_records, state_key, write_records
from pz_engine import Diagnostic, PzStateError, Severity, SourceLoadNode

if TYPE_CHECKING:
    from pz_engine import StoredEntries

MOST_TOKEN_BYTES = 4096
"""Longer tokens are not copied."""


class Comparison(Struct, frozen=True):
    """One position: here, copied, and what there is to do."""

    name: str
    """`watermarks/<key>` or `sync-state/<key>`."""

    local: Mapping[str, Any] | None
    records: Sequence[CopyRecord]
    """Newest first."""

    decision: Decision


class Reconciliation(Struct, frozen=True):
    """What was done."""

    restored: tuple[str, ...] = ()
    """Names that were stored from their copy."""

    to_copy: tuple[CopyRecord, ...] = ()
    """Copies that are missing; `reconcile` has written them."""

    problems: tuple[Diagnostic, ...] = ()
    """Warnings: `PZ0705` and `PZ0706`."""


def read_copy(instance: dg.DagsterInstance, project: PzProject, *, prefix: Sequence[str] = ()) -> Records:
    """Return the copies of a project's positions, newest first for each name.

    Raises:
        CopyUnavailableError: the instance's storage fails.
    """
    name = project.snapshot.project_name
    return read_records(instance, state_key(name, prefix), project=name)


def compare(
    instance: dg.DagsterInstance,
    project: PzProject,
    *,
    prefix: Sequence[str] = (),
    names: Collection[str] | None = None,
    env: Mapping[str, str] | None = None,
    asks_remote: bool = True,
) -> tuple[Comparison, ...]:
    """Put the project's own state beside its copies; nothing is written.

    Args:
        instance: where the copies are.
        project: the project.
        prefix: key prefix of the project's assets.
        names: which positions; None for all that are stored or copied.
        env: laid over the process environment for `${NAME}`.
        asks_remote: also compare a backend that is not local; otherwise there is nothing to compare then.

    Raises:
        CopyUnavailableError: the instance's storage fails.
        PzValidationError: the project's `state:` is wrong.
        PzStateError: its store cannot be reached.
    """
    from pz_engine import read_entries

    snapshot, root = project.snapshot, project.root
    stored = read_entries(
        root, state_dir=project.state_path, env={**os.environ, **(env or {})}, asks_remote=asks_remote
    )
    if stored.backend != "local" and not asks_remote:
        return ()

    def is_enough(found: Records) -> bool:
        return names is not None and all(_is_settled(name, stored, found) for name in names)

    records = read_records(instance, state_key(snapshot.project_name, prefix), is_enough, project=snapshot.project_name)
    chosen = sorted({*stored.entries, *records} if names is None else names)
    return tuple(_compare(project, snapshot, stored, name, records.get(name, ())) for name in chosen)


def reconcile(
    instance: dg.DagsterInstance,
    project: PzProject,
    *,
    prefix: Sequence[str] = (),
    names: Collection[str] | None = None,
    env: Mapping[str, str] | None = None,
    dagster_run_id: str | None = None,
    writes_copies: bool = True,
    asks_remote: bool = True,
) -> Reconciliation:
    """Make the project's own state and its copies agree.

    Args:
        instance: where the copies are.
        project: the project.
        prefix: key prefix of the project's assets.
        names: which positions; None for all.
        env: laid over the process environment for `${NAME}`.
        dagster_run_id: the Dagster run the new copies point to.
        writes_copies: write missing copies; otherwise they are only returned.
        asks_remote: also look at a backend that is not local.

    Raises:
        CopyUnavailableError: the instance's storage fails.
        PzValidationError: the project's `state:` is wrong.
        PzStateError: its store cannot be reached or written.
    """
    restored: list[str] = []
    missing: list[CopyRecord] = []
    problems: list[Diagnostic] = []
    for each in compare(instance, project, prefix=prefix, names=names, env=env, asks_remote=asks_remote):
        if each.decision.action == "restore" and not _restore(project, each, env):
            continue
        if each.decision.action == "restore":
            restored.append(each.name)
        elif each.decision.action == "copy":
            missing.append(copy_of(each.name, each.local, previous=each.records[0].fingerprint if each.records else ""))
        if each.decision.code is not None:
            problems.append(_problem(each))
    if missing and writes_copies:
        name = project.snapshot.project_name
        write_records(instance, state_key(name, prefix), missing, dagster_run_id, project=name)
    return Reconciliation(tuple(restored), tuple(missing), tuple(problems))


def copy_of(name: str, entry: Mapping[str, Any] | None, *, previous: str) -> CopyRecord:
    """Return the record of an entry, or of its absence, stored now."""
    return CopyRecord(name, fingerprint_of(entry), previous, entry, "", now())


def fingerprint_of(entry: Mapping[str, Any] | None) -> str:
    """Return the fingerprint of an entry; empty for none."""
    from pz_engine import entry_fingerprint

    return entry_fingerprint(entry) if entry is not None else ""


def is_copied(snapshot: Snapshot, name: str, entry: Mapping[str, Any] | None) -> bool:
    """Tell whether an entry may be copied: every watermark, and short tokens of connectors that say they are public."""
    scope, _, key = name.partition("/")
    if scope != TOKENS or entry is None:
        return True
    from pz_engine import has_public_tokens

    loads = (node for node in snapshot.compiled.nodes if isinstance(node, SourceLoadNode) and node.key == key)
    connection = next((snapshot.compiled.connections.get(node.connection) for node in loads), None)
    if connection is None or not has_public_tokens(connection.connector):
        return False
    return len(str(entry.get("token", "")).encode()) <= MOST_TOKEN_BYTES


def _compare(
    project: PzProject, snapshot: Snapshot, stored: StoredEntries, name: str, records: Sequence[CopyRecord]
) -> Comparison:
    from pz_engine import compare_positions

    entry = stored.entries.get(name)
    if stored.backend != "local":
        is_same = bool(records) and records[0].fingerprint == fingerprint_of(entry)
        return Comparison(name, entry, records, Decision("none") if is_same or not (entry or records) else COPY)
    if not is_copied(snapshot, name, entry):
        has_copy = bool(records) and records[0].entry is not None
        return Comparison(name, None if has_copy else entry, records, COPY if has_copy else Decision("none"))
    own = fingerprint_of(entry)
    records = [each for each in records if each.fingerprint == own or _is_usable(each)]
    newest = records[0].entry if records else None
    scope = name.partition("/")[0]
    local = LocalState(
        entry,
        own,
        _changes(project, name),
        is_unreadable=scope in stored.unreadable,
        is_file_missing=scope in stored.missing,
    )
    position = compare_positions(entry, newest) if entry is not None and newest is not None else None
    return Comparison(name, entry, records, decide(local, records, position))


def _is_usable(record: CopyRecord) -> bool:
    """Tell whether a copy is what a pz run wrote, and a position: anybody can report an observation."""
    from pz_engine import compare_positions

    entry = record.entry
    if record.fingerprint != fingerprint_of(entry):
        return False
    if entry is None:
        return True
    if record.scope == TOKENS:
        return bool(entry.get("token")) and "runId" in entry
    return "runId" in entry and compare_positions(entry, entry) == 0


def _is_settled(name: str, stored: StoredEntries, found: Records) -> bool:
    """Tell whether more records could change what is decided about a name."""
    records = [each for each in found.get(name, ()) if _is_usable(each)]
    entry = stored.entries.get(name)
    if not records or entry is None:
        return bool(records)
    return any(record.fingerprint == fingerprint_of(entry) for record in records)


def _changes(project: PzProject, name: str) -> tuple[ManualChange, ...]:
    from pz_engine import read_audit

    scope, _, key = name.partition("/")
    if scope == TOKENS:
        return ()
    return tuple(
        ManualChange(each.at, each.action == "clear", each.before, each.before_run_id, each.after)
        for each in read_audit(project.state_path, key)
    )


def _restore(project: PzProject, found: Comparison, env: Mapping[str, str] | None) -> bool:
    """Store what the newest copy says; False when another run has moved the entry meanwhile."""
    from pz_engine import replace_entry

    try:
        replace_entry(
            project.root,
            found.name,
            expected=found.local,
            entry=found.records[0].entry,
            state_dir=project.state_path,
            reason=f"{found.decision.code}: restored from the copy in the Dagster instance",
            env={**os.environ, **(env or {})},
        )
    except PzStateError as error:
        if error.code != "PZ0520":
            raise
        return False
    return True


def _problem(found: Comparison) -> Diagnostic:
    scope, _, key = found.name.partition("/")
    what = "sync token" if scope == TOKENS else "watermark"
    newest, code = found.records[0], found.decision.code or "PZ0705"
    if code == "PZ0705":
        origin = f"as run {(newest.entry or {}).get('runId')} left it" if newest.entry is not None else "to nothing"
        message = (
            f"the stored {what} of {key} {found.decision.reason}; it was restored from the Dagster instance, {origin}"
        )
        return Diagnostic(code, message, hint=f"pz state show {key}", severity=Severity.WARNING)
    kept = "the copy was kept" if found.decision.action == "restore" else "the stored one was kept"
    values = f" (stored: {_shown(found.local)}, copy: {_shown(newest.entry)})" if scope != TOKENS else ""
    return Diagnostic(
        code,
        f"the stored {what} of {key} {found.decision.reason}{values}; {kept}, so rows may be read again",
        hint=f"pz state show {key}",
        severity=Severity.WARNING,
    )


def _shown(entry: Mapping[str, Any] | None) -> str:
    return f"{entry.get('value')} of run {entry.get('runId')}" if entry is not None else "none"


def stamped(records: Sequence[CopyRecord], run_id: str | None) -> tuple[CopyRecord, ...]:
    """Name the pz run that copies."""
    return tuple(replace(record, by=record.by or run_id or "") for record in records)
