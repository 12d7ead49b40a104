"""The schemas of entities without a contract, as `pz validate --connect` last saw them.

The cache only helps column lineage to expand stars; without it, or when it cannot be read, those columns are unknown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pz_engine.base.atomic_files import write_atomically
from pz_engine.base.stable_json import pretty_json
from pz_engine.model.run import ColumnType

Schemas = Mapping[str, Sequence[ColumnType]]
"""Columns in order, with DuckDB types, by `<connection>.<entity>`."""

_VERSION = 1


def cache_path(state_dir: Path) -> Path:
    """Return where a project's cache lies."""
    return state_dir / "target" / "schemas.json"


def read_schema_cache(state_dir: Path) -> Schemas:
    """Return what is cached; nothing when there is no cache or it cannot be read."""
    try:
        content = json.loads(cache_path(state_dir).read_bytes())
        if content["version"] != _VERSION:
            return {}
        return {str(key): _columns(entry) for key, entry in content["schemas"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def write_schema_cache(state_dir: Path, schemas: Schemas) -> Path:
    """Replace the cache.

    Raises:
        OSError: it cannot be written.
    """
    path = cache_path(state_dir)
    entries = {key: [{"name": column.name, "type": column.type} for column in schemas[key]] for key in sorted(schemas)}
    write_atomically(path, pretty_json({"version": _VERSION, "schemas": entries}))
    return path


def _columns(entry: Sequence[Mapping[str, Any]]) -> tuple[ColumnType, ...]:
    return tuple(ColumnType(str(column["name"]), str(column["type"])) for column in entry)
