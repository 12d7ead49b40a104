"""Opens the state stores of a run from the project's settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pz_engine.errors.exceptions import PzStateError
from pz_engine.model.project import StateSettings
from pz_engine.state.local.keyed_file import KeyedFile
from pz_engine.state.scopes import SCHEMAS, SYNC_TOKENS, WATERMARKS, Scope
from pz_engine.state.store import KeyedStore, StateStores

STATE_DIRECTORY: Final = Path(".pz") / "state"


def open_state_stores(
    settings: StateSettings,
    project_dir: Path,
    *,
    note: Callable[[str], None],
    wrap: Callable[[KeyedStore[Any]], KeyedStore[Any]] | None = None,
) -> StateStores:
    """Open every scope's store; nothing is read or written yet.

    Args:
        settings: the resolved `state:` block.
        project_dir: local state lives below it.
        note: receives sentences about unreadable state.
        wrap: a host's decoration, applied to each scope's store.

    Raises:
        PzStateError: `PZ0518` for a backend this version cannot open.
    """
    if settings.backend != "local":
        raise PzStateError(
            "PZ0518",
            f"this version of pz cannot open the state backend '{settings.backend}' (from {settings.origin})",
            hint="set `state: {backend: local}` in project.yml",
        )
    directory = project_dir / STATE_DIRECTORY

    def open_scope(scope: Scope[Any]) -> KeyedStore[Any]:
        store: KeyedStore[Any] = KeyedFile(directory / scope.file_name, scope, note)
        return store if wrap is None else wrap(store)

    return StateStores(open_scope(WATERMARKS), open_scope(SYNC_TOKENS), open_scope(SCHEMAS))
