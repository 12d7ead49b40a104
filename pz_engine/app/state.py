"""Shows what runs remember, also when pipelines and connections no longer load."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from pz_engine.app.state_owner import open_state
from pz_engine.config.state_only import load_state_settings
from pz_engine.errors.exceptions import PzStateError
from pz_engine.model.cursor_values import CURSOR_TYPES, canonicalize
from pz_engine.model.entity import staging_name
from pz_engine.model.run import NodeKind, NodeResult, RunStatus
from pz_engine.state.audit_log import AuditRecord, read_audit
from pz_engine.state.factory import open_state_stores
from pz_engine.state.run_history import stored_runs
from pz_engine.state.store import StateStores, SyncTokenEntry, WatermarkEntry

CHANGES_SHOWN: Final = 5

Health = Literal["ok", "non-canonical", "unknown type"]


class StoredWatermark(Struct, frozen=True):
    """A watermark and whether it can be worked with."""

    key: str
    entry: WatermarkEntry
    health: Health


class StateOverview(Struct, frozen=True):
    """Everything stored."""

    backend: str
    origin: str
    """Where the backend's name came from."""

    watermarks: tuple[StoredWatermark, ...] | None
    """None when the file is unreadable."""

    tokens: tuple[tuple[str, SyncTokenEntry], ...] | None
    """None when the file is unreadable."""

    notes: tuple[str, ...] = ()


class HistoryEntry(Struct, frozen=True):
    """What one run captured for a key."""

    run_id: str
    status: RunStatus
    cursor: str
    type: str
    value: str


class KeyRuns(Struct, frozen=True):
    """What runs captured for a key."""

    runs: tuple[HistoryEntry, ...] = ()
    """Newest first."""

    is_ambiguous: bool = False
    """Two entities of one run could have this key, so there is no history."""


class KeyHistory(Struct, frozen=True):
    """One key: now, by run, and by hand."""

    backend: str
    origin: str
    current: StoredWatermark | None
    """None when the file is unreadable."""

    captured: KeyRuns = KeyRuns()
    changes: tuple[AuditRecord, ...] = ()
    """The last manual changes, newest first."""

    notes: tuple[str, ...] = ()


def show_state(project_dir: Path, *, env: Mapping[str, str] | None = None) -> StateOverview:
    """Return every watermark and token.

    Raises:
        PzValidationError: `project.yml` is missing or its `state:` is wrong.
        PzStateError: the store cannot be reached.
    """
    stores, backend, origin, notes = _open(project_dir, env)
    with stores:
        watermarks, tokens = stores.watermarks.list_all(), stores.sync_tokens.list_all()
    return StateOverview(
        backend,
        origin,
        None if watermarks is None else tuple(checked(key, entry) for key, entry in watermarks.items()),
        None if tokens is None else tuple(tokens.items()),
        tuple(notes),
    )


def show_key(project_dir: Path, key: str, *, env: Mapping[str, str] | None = None) -> KeyHistory:
    """Return one watermark with its history.

    Raises:
        PzValidationError: `project.yml` is missing or its `state:` is wrong.
        PzStateError: `PZ0513` when nothing is stored for the key; the store cannot be reached.
    """
    stores, backend, origin, notes = _open(project_dir, env)
    with stores:
        watermarks = stores.watermarks.list_all()
        tokens = stores.sync_tokens.list_all() or {}
    if watermarks is None:
        return KeyHistory(backend, origin, None, notes=tuple(notes))
    entry = watermarks.get(key)
    if entry is None:
        message = f"no watermark is stored for '{key}'"
        raise PzStateError(
            "PZ0513",
            f"{message}; it has a sync token" if key in tokens else message,
            hint="see every key with 'pz state show'",
        )
    state_dir = open_state(project_dir, env=env)
    changes = read_audit(state_dir, key)[-CHANGES_SHOWN:]
    return KeyHistory(
        backend,
        origin,
        checked(key, entry),
        key_runs(state_dir, key),
        tuple(reversed(changes)),
        tuple(notes),
    )


def _open(project_dir: Path, env: Mapping[str, str] | None) -> tuple[StateStores, str, str, list[str]]:
    settings = load_state_settings(project_dir, env=os.environ if env is None else env)
    notes: list[str] = []
    return (
        open_state_stores(settings, open_state(project_dir, env=env), note=notes.append),
        settings.backend,
        settings.origin,
        notes,
    )


def checked(key: str, entry: WatermarkEntry) -> StoredWatermark:
    """Tell whether a stored value can be worked with, without doing arithmetic on it."""
    if entry.type not in CURSOR_TYPES:
        return StoredWatermark(key, entry, "unknown type")
    is_canonical = canonicalize(entry.type, entry.value) == entry.value
    return StoredWatermark(key, entry, "ok" if is_canonical else "non-canonical")


def key_runs(state_dir: Path, key: str) -> KeyRuns:
    """Return what runs captured for a key; nothing when a run holds two entities that could have it."""
    parts = key.split(".")
    names = {staging_name(".".join(parts[:cut]), ".".join(parts[cut:])) for cut in range(1, len(parts))}
    found: list[HistoryEntry] = []
    for run in stored_runs(state_dir):
        matches = [result for result in run.results.results if _is_capture(result) and result.name in names]
        if len(matches) > 1:
            return KeyRuns(is_ambiguous=True)
        for result in matches:
            candidate = result.watermark
            if candidate is not None:
                found.append(
                    HistoryEntry(run.run_id, run.results.status, candidate.cursor, candidate.type, candidate.value)
                )
    return KeyRuns(tuple(found))


def _is_capture(result: NodeResult) -> bool:
    return result.kind is NodeKind.SOURCE_LOAD and result.watermark is not None
