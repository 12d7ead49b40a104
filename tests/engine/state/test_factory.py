"""The factory opens what this version has and says what it has not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pz_engine.errors.exceptions import PzStateError
from pz_engine.model.project import StateSettings
from pz_engine.state.factory import open_state_stores
from pz_engine.state.store import KeyedStore, WatermarkEntry


def test_local_stores_live_below_the_folder(tmp_path: Path) -> None:
    """The default backend writes into the state directory of the folder it is given."""
    stores = open_state_stores(StateSettings(), tmp_path, note=pytest.fail)
    stores.watermarks.set("a.b", WatermarkEntry("id", "bigint", "1", "r"))
    assert (tmp_path / "state/watermarks.json").exists()
    assert not (tmp_path / "state/sync-state.json").exists()


def test_host_decorates_each_scope(tmp_path: Path) -> None:
    """A host's wrapper is applied to every scope's store."""
    wrapped: list[KeyedStore[Any]] = []

    def wrap(store: KeyedStore[Any]) -> KeyedStore[Any]:
        wrapped.append(store)
        return store

    stores = open_state_stores(StateSettings(), tmp_path, note=pytest.fail, wrap=wrap)
    assert wrapped == [stores.watermarks, stores.sync_tokens, stores.schemas]


def test_backend_that_is_not_here_is_named_with_its_origin(tmp_path: Path) -> None:
    """An unknown backend is refused before anything is written, with the way back."""
    settings = StateSettings(backend="http", origin="PZ_STATE_BACKEND", token="secret")
    with pytest.raises(PzStateError) as caught:
        open_state_stores(settings, tmp_path, note=pytest.fail)
    assert caught.value.code == "PZ0518"
    assert "PZ_STATE_BACKEND" in caught.value.message
    assert "secret" not in str(caught.value.diagnostic)
