"""The keyed store that every state backend implements, and its entries.

`list_all` tells an empty store from an unreadable one; `set` is a compare-and-swap against the version this instance
last saw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

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


@dataclass(frozen=True, slots=True)
class WatermarkEntry:
    """A stored cursor value; all texts."""

    cursor: str
    type: str
    """`int`, `bigint`, `decimal`, `date` or `timestamp`."""

    value: str
    """Canonical text."""

    run_id: str


@dataclass(frozen=True, slots=True)
class SyncTokenEntry:
    """A stored opaque token."""

    token: str
    run_id: str


@dataclass(frozen=True, slots=True)
class SchemaBaseline:
    """The accepted columns of an entity without a contract."""

    columns: tuple[ColumnType, ...]
    hints_hash: str
    """Of what the read asked for; under another hash the columns say nothing about the source."""

    run_id: str


@dataclass(frozen=True, slots=True)
class StateStores:
    """The stores of one run."""

    watermarks: KeyedStore[WatermarkEntry]
    sync_tokens: KeyedStore[SyncTokenEntry]
    schemas: KeyedStore[SchemaBaseline]
