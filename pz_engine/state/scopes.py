"""The scopes of run state: what a state file is called and how its entries are spelled.

Every field of an entry is text, in a fixed order; one malformed entry makes the whole scope unreadable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pz_engine.state.store import SyncTokenEntry, WatermarkEntry

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Scope(Generic[Entry]):
    """One kind of state."""

    file_name: str
    root: str
    """Key that holds the entries."""

    fields: tuple[tuple[str, str], ...]
    """Stored name and attribute of each field, in file order."""

    make: Callable[..., Entry]

    def encode(self, entry: Entry) -> dict[str, str]:
        """Return an entry as it is stored."""
        return {stored: getattr(entry, attribute) for stored, attribute in self.fields}

    def decode(self, value: Any) -> Entry | None:
        """Return the entry a stored value spells, or None when a field is missing or is no text."""
        if not isinstance(value, Mapping):
            return None
        parts = {attribute: value.get(stored) for stored, attribute in self.fields}
        return self.make(**parts) if all(isinstance(part, str) for part in parts.values()) else None


WATERMARKS: Final = Scope(
    "watermarks.json",
    "watermarks",
    (("cursor", "cursor"), ("type", "type"), ("value", "value"), ("runId", "run_id")),
    WatermarkEntry,
)
SYNC_TOKENS: Final = Scope("sync-state.json", "syncState", (("token", "token"), ("runId", "run_id")), SyncTokenEntry)
