"""Opens the state stores of a run from the project's settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pz_engine.base.cancellation import CancelToken
from pz_engine.errors.exceptions import PzStateError
from pz_engine.model.project import StateSettings
from pz_engine.state.http.client import StateClient
from pz_engine.state.http.keyed_endpoint import KeyedEndpoint
from pz_engine.state.local.keyed_file import KeyedFile
from pz_engine.state.scopes import SCHEMAS, SYNC_TOKENS, WATERMARKS, Scope
from pz_engine.state.store import KeyedStore, ScopedStore, StateStores

STATE_DIRECTORY: Final = "state"


def open_state_stores(
    settings: StateSettings,
    state_dir: Path,
    *,
    note: Callable[[str], None],
    wrap: Callable[[ScopedStore[Any]], KeyedStore[Any]] | None = None,
    cancel: CancelToken | None = None,
) -> StateStores:
    """Open every scope's store; nothing is read or written yet.

    Args:
        settings: the resolved `state:` block.
        state_dir: the project's `.pz`, wherever it is; local state lives below it.
        note: receives sentences about unreadable state.
        wrap: a host's decoration, applied to each scope's store.
        cancel: ends waits for a remote store.

    Raises:
        PzStateError: `PZ0518` for a backend this version cannot open.
    """
    if settings.backend == "http" and settings.url is not None:
        client = StateClient(settings.url, settings.token, settings.timeout_seconds, cancel)
        return _build(lambda scope: KeyedEndpoint(client, scope, note), settings.backend, wrap, client)
    if settings.backend == "local":
        directory = state_dir / STATE_DIRECTORY
        return _build(lambda scope: KeyedFile(directory / scope.file_name, scope, note), settings.backend, wrap)
    raise PzStateError(
        "PZ0518",
        f"this version of pz cannot open the state backend '{settings.backend}' (from {settings.origin})",
        hint="set `state: {backend: local}` in project.yml",
    )


def _build(
    open_scope: Callable[[Scope[Any]], KeyedStore[Any]],
    backend: str,
    wrap: Callable[[ScopedStore[Any]], KeyedStore[Any]] | None,
    client: StateClient | None = None,
) -> StateStores:
    scopes: tuple[Scope[Any], ...] = (WATERMARKS, SYNC_TOKENS, SCHEMAS)
    stores: list[KeyedStore[Any]] = [open_scope(scope) for scope in scopes]
    if wrap is not None:
        described = zip(scopes, stores, strict=True)
        stores = [wrap(ScopedStore(scope.name, backend, store, scope.encode)) for scope, store in described]
    watermarks, sync_tokens, schemas = stores
    if client is None:
        return StateStores(watermarks, sync_tokens, schemas)
    return StateStores(watermarks, sync_tokens, schemas, release=client.close, settle=client.ignore_cancellation)
