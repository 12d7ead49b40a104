"""The local store keeps its bytes, its locks and its promises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pz_engine.base.file_locks import FileLock
from pz_engine.errors.exceptions import PzStateError
from pz_engine.state.local.keyed_file import KeyedFile
from pz_engine.state.scopes import SYNC_TOKENS, WATERMARKS
from pz_engine.state.store import SyncTokenEntry, WatermarkEntry

GOLDEN = """{
  "version": 1,
  "watermarks": {
    "Shop.tickets": {
      "cursor": "id",
      "type": "bigint",
      "value": "7",
      "runId": "run-2"
    },
    "shop.tickets": {
      "cursor": "changed_at",
      "type": "timestamp",
      "value": "2026-11-03T06:02:17.000000",
      "runId": "run-1"
    }
  }
}
"""
TICKETS = WatermarkEntry("changed_at", "timestamp", "2026-11-03T06:02:17.000000", "run-1")
UPPER = WatermarkEntry("id", "bigint", "7", "run-2")


def entry(value: int) -> WatermarkEntry:
    return WatermarkEntry("id", "bigint", str(value), "run")


def open_file(path: Path, notes: list[str] | None = None, lock_wait: float = 30.0) -> KeyedFile[WatermarkEntry]:
    return KeyedFile(path, WATERMARKS, (notes if notes is not None else []).append, lock_wait=lock_wait)


def test_file_bytes_are_stable(tmp_path: Path) -> None:
    """Keys come in ordinal order whatever the order of writing, and the same content has the same bytes."""
    path = tmp_path / "state" / "watermarks.json"
    store = open_file(path)
    store.set("shop.tickets", TICKETS)
    store.set("Shop.tickets", UPPER)
    assert path.read_text(encoding="utf-8") == GOLDEN
    before = path.read_bytes()
    store.set("shop.tickets", TICKETS)
    assert path.read_bytes() == before
    assert list(store.list_all() or {}) == ["Shop.tickets", "shop.tickets"]
    assert sorted(item.name for item in path.parent.iterdir()) == ["watermarks.json", "watermarks.json.lock"]


def test_sync_tokens_have_their_own_shape(tmp_path: Path) -> None:
    """A token's file names its own root and fields."""
    path = tmp_path / "sync-state.json"
    store = KeyedFile(path, SYNC_TOKENS, lambda _: None)
    store.set("crm.public.orders", SyncTokenEntry("0/1A2B3C4", "run-1"))
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "version": 1,
        "syncState": {"crm.public.orders": {"token": "0/1A2B3C4", "runId": "run-1"}},
    }


def test_missing_file_is_empty_and_reading_makes_nothing(tmp_path: Path) -> None:
    """Nothing stored is an empty mapping, and looking leaves no file behind."""
    path = tmp_path / "state" / "watermarks.json"
    store = open_file(path)
    assert store.list_all() == {}
    assert store.get("a.b") is None
    store.remove("a.b")
    assert not path.parent.exists()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"version": 1}',
        '{"watermarks": {}}',
        '{"version": 1, "watermarks": {"a.b": null}}',
        '{"version": 1, "watermarks": {"a.b": {"cursor": "c", "type": "int", "value": "1"}}}',
        '{"version": 1, "watermarks": {"a.b": {"cursor": "c", "type": "int", "value": 1, "runId": "r"}}}',
        b"\xff\xfe".decode("latin-1"),
    ],
)
def test_unreadable_content_is_none_with_one_note(tmp_path: Path, content: str) -> None:
    """Bad content never raises: it reads as nothing with a note, lists as None, and a write starts anew."""
    path = tmp_path / "watermarks.json"
    path.write_text(content, encoding="latin-1")
    notes: list[str] = []
    store = open_file(path, notes)
    assert store.get("a.b") is None
    assert store.list_all() is None
    assert len(notes) == 1
    store.remove("a.b")
    assert path.read_text(encoding="latin-1") == content
    store.set("a.b", entry(1))
    assert open_file(path).list_all() == {"a.b": entry(1)}


def test_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    """A file a newer pz wrote is refused instead of overwritten."""
    path = tmp_path / "watermarks.json"
    path.write_text('{"version": 2, "watermarks": {}}', encoding="utf-8")
    store = open_file(path)
    for action in (lambda: store.get("a.b"), store.list_all, lambda: store.set("a.b", entry(1))):
        with pytest.raises(PzStateError) as caught:
            action()
        assert caught.value.code == "PZ0519"
    assert "2" in path.read_text(encoding="utf-8")


def test_moved_version_is_a_conflict(tmp_path: Path) -> None:
    """The later of two runs on one key loses and its value is not stored."""
    path = tmp_path / "watermarks.json"
    first, second = open_file(path), open_file(path)
    assert first.get("a.b") is None
    assert second.get("a.b") is None
    first.set("a.b", entry(1))
    with pytest.raises(PzStateError) as caught:
        second.set("a.b", entry(2))
    assert caught.value.code == "PZ0520"
    assert open_file(path).get("a.b") == entry(1)
    first.set("a.b", entry(3))
    second.set("x.y", entry(9))
    assert open_file(path).list_all() == {"a.b": entry(3), "x.y": entry(9)}


def test_removed_entry_is_a_conflict_for_whoever_saw_it(tmp_path: Path) -> None:
    """An entry that vanished meanwhile has moved too; the remover itself may store again."""
    path = tmp_path / "watermarks.json"
    first, second = open_file(path), open_file(path)
    first.set("a.b", entry(1))
    second.get("a.b")
    first.remove("a.b")
    first.remove("a.b")
    with pytest.raises(PzStateError, match="changed by another run"):
        second.set("a.b", entry(2))
    first.set("a.b", entry(4))
    assert open_file(path).get("a.b") == entry(4)


def test_lock_held_too_long_is_unavailable(tmp_path: Path) -> None:
    """A store whose lock never comes free is unavailable, and its file unchanged."""
    path = tmp_path / "watermarks.json"
    with FileLock(tmp_path / "watermarks.json.lock"), pytest.raises(PzStateError) as caught:
        open_file(path, lock_wait=0.03).set("a.b", entry(1))
    assert caught.value.code == "PZ0518"
    assert not path.exists()


def test_directory_in_the_way_is_unavailable(tmp_path: Path) -> None:
    """A store that cannot be opened at all raises instead of reading as empty."""
    path = tmp_path / "watermarks.json"
    path.mkdir()
    for action in (lambda: open_file(path).get("a.b"), lambda: open_file(path).set("a.b", entry(1))):
        with pytest.raises(PzStateError) as caught:
            action()
        assert caught.value.code == "PZ0518"
