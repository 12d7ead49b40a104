"""Stored positions as plain objects: what a host reads, compares and puts back.

An entry is spelled as its state file spells it, and named `<scope>/<key>`, such as `watermarks/erp.orders`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from pz_engine.app.state_owner import open_state
from pz_engine.base.clock import Clock, SystemClock, format_instant
from pz_engine.base.stable_json import canonical_json
from pz_engine.config.state_only import load_state_settings
from pz_engine.connectors.capabilities import Capability
from pz_engine.connectors.registry import find_connector
from pz_engine.errors.exceptions import PzError
from pz_engine.model.cursor_values import CURSOR_TYPES, canonicalize, compare
from pz_engine.state.audit_log import AuditRecord, append_audit, audit_line
from pz_engine.state.factory import STATE_DIRECTORY, open_state_stores
from pz_engine.state.scopes import SYNC_TOKENS, WATERMARKS, Scope
from pz_engine.state.store import KeyedStore, StateStores, lost_race

PlainEntry = Mapping[str, Any]
"""An entry as its state file spells it."""

_SCOPES: Final[Mapping[str, Scope[Any]]] = {scope.name: scope for scope in (WATERMARKS, SYNC_TOKENS)}


class StoredEntries(Struct, frozen=True):
    """Every stored watermark and token."""

    backend: str
    entries: Mapping[str, PlainEntry]
    """By name."""

    unreadable: frozenset[str] = frozenset()
    """Scopes whose content cannot be read."""

    missing: frozenset[str] = frozenset()
    """Scopes that have never been written, as far as the backend can tell: it can when it is local."""


def read_entries(
    project_dir: Path,
    *,
    state_dir: Path | None = None,
    env: Mapping[str, str] | None = None,
    asks_remote: bool = True,
) -> StoredEntries:
    """Return what is stored now.

    Args:
        project_dir: the project's directory.
        state_dir: what stands in for the project's `.pz`; `PZ_STATE_DIR` says it otherwise.
        env: in place of the process environment.
        asks_remote: also read a backend that is not local; otherwise only its name is returned.

    Raises:
        PzValidationError: there is no `project.yml`, or its `state:` is wrong.
        PzStateError: the store cannot be reached.
    """
    state_dir = open_state(project_dir, state_dir, env)
    stores, backend = _open(project_dir, state_dir, env)
    entries: dict[str, PlainEntry] = {}
    unreadable: set[str] = set()
    if backend != "local" and not asks_remote:
        stores.close()
        return StoredEntries(backend, entries)
    with stores:
        for scope, store in _by_scope(stores).items():
            found = store.list_all()
            if found is None:
                unreadable.add(scope)
            entries.update({f"{scope}/{key}": _SCOPES[scope].encode(entry) for key, entry in (found or {}).items()})
    files = {name: state_dir / STATE_DIRECTORY / scope.file_name for name, scope in _SCOPES.items()}
    missing = {name for name, file in files.items() if backend == "local" and not file.exists()}
    return StoredEntries(backend, entries, frozenset(unreadable), frozenset(missing))


def replace_entry(
    project_dir: Path,
    name: str,
    *,
    expected: PlainEntry | None,
    entry: PlainEntry | None,
    reason: str,
    state_dir: Path | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> str | None:
    """Put an entry in place of another one and log that, as a change by hand is logged.

    Args:
        project_dir: the project's directory.
        name: the entry's name.
        expected: what is stored now, None for nothing.
        entry: what is to be stored, None to remove it.
        reason: written into the log.
        state_dir: what stands in for the project's `.pz`; `PZ_STATE_DIR` says it otherwise.
        env: in place of the process environment.
        clock: for the log's time.

    Returns:
        The line that could not be appended to the log, or None.

    Raises:
        PzStateError: `PZ0520`, something else is stored now; `PZ0518`, the store cannot be reached or written.
        ValueError: the name or the entry is none.
    """
    scope_name, _, key = name.partition("/")
    scope = _SCOPES.get(scope_name)
    value = scope.decode(entry) if scope is not None and entry is not None else None
    if scope is None or not key or (entry is not None and value is None):
        raise ValueError(f"'{name}' is no state entry, or its value is none")
    state_dir = open_state(project_dir, state_dir, env)
    stores, _ = _open(project_dir, state_dir, env)
    with stores:
        store = _by_scope(stores)[scope_name]
        before = store.get(key)
        if (None if before is None else scope.encode(before)) != (None if expected is None else dict(expected)):
            raise lost_race(key, "it was not replaced")
        if value is None:
            store.remove(key)
        else:
            store.set(key, value)
    record = _audit_record(key, expected, entry, reason, clock or SystemClock())
    try:
        append_audit(state_dir, record)
    except OSError:
        return audit_line(record)
    return None


def entry_fingerprint(entry: PlainEntry) -> str:
    """Return what tells an entry from every other one: a hash of its stored text."""
    return hashlib.sha256(canonical_json(dict(entry)).encode()).hexdigest()[:32]


def compare_positions(left: PlainEntry, right: PlainEntry) -> int | None:
    """Return -1, 0 or 1 for two watermarks, or None when they are not of one cursor.

    >>> compare_positions({"cursor": "id", "type": "int", "value": "9"}, {"cursor": "id", "type": "int", "value": "10"})
    -1
    """
    kind = left.get("type")
    if kind not in CURSOR_TYPES or (left.get("cursor"), kind) != (right.get("cursor"), right.get("type")):
        return None
    values = [canonicalize(kind, str(each.get("value"))) for each in (left, right)]
    if values[0] is None or values[1] is None:
        return None
    return compare(kind, values[0], values[1])


def has_public_tokens(connector: str) -> bool:
    """Tell whether a connector declares that its sync tokens hold no secret."""
    try:
        found = find_connector(connector)
    except PzError:
        return False
    return found is not None and Capability.PUBLIC_TOKENS in found.capabilities


def _open(project_dir: Path, state_dir: Path, env: Mapping[str, str] | None) -> tuple[StateStores, str]:
    settings = load_state_settings(project_dir, env=os.environ if env is None else env)
    return open_state_stores(settings, state_dir, note=lambda _: None), settings.backend


def _by_scope(stores: StateStores) -> Mapping[str, KeyedStore[Any]]:
    return {WATERMARKS.name: stores.watermarks, SYNC_TOKENS.name: stores.sync_tokens}


def _audit_record(
    key: str, before: PlainEntry | None, after: PlainEntry | None, reason: str, clock: Clock
) -> AuditRecord:
    """Describe the change; a token is opaque and stays out of the log."""
    either = after or before or {}
    return AuditRecord(
        at=format_instant(clock.now()),
        action="set" if after is not None else "clear",
        key=key,
        cursor=either.get("cursor"),
        type=either.get("type"),
        before=(before or {}).get("value"),
        before_run_id=(before or {}).get("runId"),
        after=(after or {}).get("value"),
        target="value" if after is not None else None,
        reason=reason,
    )
