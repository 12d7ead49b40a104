"""JSON Schemas of project files, for editors; no project is needed."""

from __future__ import annotations

from pathlib import Path

from pz_engine.config.json_schema import SCHEMA_NAMES, schema_file

__all__ = ["SCHEMA_NAMES", "schema_path", "schema_text"]


def schema_path(name: str) -> Path:
    """Return where the schema of a kind of file is installed."""
    return schema_file(name)


def schema_text(name: str) -> str:
    """Return the schema of a kind of file."""
    return schema_file(name).read_text(encoding="utf-8")
