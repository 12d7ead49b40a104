"""The keyed store that every state backend implements, and its entries.

`list_all` tells an empty store from an unreadable one; `set` is a compare-and-swap against the version this instance
last saw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from pz_engine.errors.exceptions import PzStateError
from pz_engine.model.run import ColumnType

Entry = TypeVar("Entry")


class KeyedStore(Protocol[Entry]):
    """Entries of one scope, by key `<connection>.<entity>`."""

    def get(self, key: str) -> Entry | None:
        """Return the entry and remember its version; unreadable content gives None and a note, never an exception."""

    def list_all(self) -> Mapping[str, Entry] | None:
        """Return every entry ordered by key; empty when nothing is stored, None when unreadable."""

    def set(self, key: str, value: Entry) -> None:
        """Store an entry.

        Raises:
            PzStateError: `PZ0520` when the stored version moved, `PZ0518` when the store is unreachable.
        """

    def remove(self, key: str) -> None:
        """Remove an entry and forget its version; idempotent."""


class ScopedStore(Struct, Generic[Entry], frozen=True):
    """A store that tells a host which state it holds; this is what a host decorates."""

    scope: str
    """`watermarks`, `sync-state` or `schemas`."""

    backend: str
    store: KeyedStore[Entry]
    encode: Callable[[Entry], Mapping[str, Any]]
    """Return an entry as the state files spell it."""

    def get(self, key: str) -> Entry | None:
        """Pass on to the store."""
        return self.store.get(key)

    def list_all(self) -> Mapping[str, Entry] | None:
        """Pass on to the store."""
        return self.store.list_all()

    def set(self, key: str, value: Entry) -> None:
        """Pass on to the store."""
        self.store.set(key, value)

    def remove(self, key: str) -> None:
        """Pass on to the store."""
        self.store.remove(key)


class WatermarkEntry(Struct, frozen=True):
    """A stored cursor value; all texts."""

    cursor: str
    type: str
    """`int`, `bigint`, `decimal`, `date` or `timestamp`."""

    value: str
    """Canonical text."""

    run_id: str


class SyncTokenEntry(Struct, frozen=True):
    """A stored opaque token."""

    token: str
    run_id: str


class SchemaBaseline(Struct, frozen=True):
    """The accepted columns of an entity without a contract."""

    columns: tuple[ColumnType, ...]
    hints_hash: str
    """Of what the read asked for; under another hash the columns say nothing about the source."""

    run_id: str


def lost_race(key: str, ending: str) -> PzStateError:
    """Return the error of a compare-and-swap that lost; `ending` says what did not happen."""
    return PzStateError(
        "PZ0520",
        f"the state of '{key}' was changed by another run meanwhile; {ending}",
        hint="do not run the same entity twice at the same time",
    )


class StateStores(Struct, frozen=True):
    """The stores of one run; close them when it ends."""

    watermarks: KeyedStore[WatermarkEntry]
    sync_tokens: KeyedStore[SyncTokenEntry]
    schemas: KeyedStore[SchemaBaseline]
    release: Callable[[], None] = lambda: None
    settle: Callable[[], None] = lambda: None
    """From here on the run's cancellation no longer ends a wait: what was delivered must be recorded."""

    def close(self) -> None:
        """Close whatever the stores hold open; safe to call twice."""
        self.release()

    def __enter__(self) -> StateStores:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
