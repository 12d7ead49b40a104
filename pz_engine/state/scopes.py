"""The scopes of run state: what a state file is called and how its entries are spelled.

The text of an entry has a fixed order of fields; one malformed entry makes the whole scope unreadable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from pz_engine.model.run import ColumnType
from pz_engine.state.store import SchemaBaseline, SyncTokenEntry, WatermarkEntry

Entry = TypeVar("Entry")


class Scope(Struct, Generic[Entry], frozen=True):
    """One kind of state."""

    name: str
    """How remote stores spell it."""

    file_name: str
    root: str
    """Key that holds the entries of a local file."""

    encode: Callable[[Entry], dict[str, Any]]
    """Return an entry as it is stored."""

    decode: Callable[[Any], Entry | None]
    """Return the entry a stored value spells, or None when a field is missing or of another type."""


def _text_scope(
    name: str, file_name: str, root: str, fields: tuple[tuple[str, str], ...], make: Callable[..., Entry]
) -> Scope[Entry]:
    """Build a scope whose entries hold nothing but texts; `fields` gives stored names and attributes in file order."""

    def encode(entry: Entry) -> dict[str, Any]:
        return {stored: getattr(entry, attribute) for stored, attribute in fields}

    def decode(value: Any) -> Entry | None:
        if not isinstance(value, Mapping):
            return None
        parts = {attribute: value.get(stored) for stored, attribute in fields}
        return make(**parts) if all(isinstance(part, str) for part in parts.values()) else None

    return Scope(name, file_name, root, encode, decode)


def _encode_baseline(entry: SchemaBaseline) -> dict[str, Any]:
    columns = [{"name": column.name, "type": column.type} for column in entry.columns]
    return {"columns": columns, "hintsHash": entry.hints_hash, "runId": entry.run_id}


def _decode_baseline(value: Any) -> SchemaBaseline | None:
    if not isinstance(value, Mapping) or not isinstance(value.get("columns"), list):
        return None
    columns: list[ColumnType] = []
    for column in value["columns"]:
        name, kind = (column.get("name"), column.get("type")) if isinstance(column, Mapping) else (None, None)
        if not isinstance(name, str) or not isinstance(kind, str):
            return None
        columns.append(ColumnType(name, kind))
    hints_hash, run_id = value.get("hintsHash"), value.get("runId")
    if not isinstance(hints_hash, str) or not isinstance(run_id, str):
        return None
    return SchemaBaseline(tuple(columns), hints_hash, run_id)


WATERMARKS: Final = _text_scope(
    "watermarks",
    "watermarks.json",
    "watermarks",
    (("cursor", "cursor"), ("type", "type"), ("value", "value"), ("runId", "run_id")),
    WatermarkEntry,
)
SYNC_TOKENS: Final = _text_scope(
    "sync-state", "sync-state.json", "syncState", (("token", "token"), ("runId", "run_id")), SyncTokenEntry
)
SCHEMAS: Final = Scope("schemas", "schemas.json", "schemas", _encode_baseline, _decode_baseline)
