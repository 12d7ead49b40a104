"""Finds out what a project declares about a stored cursor, as far as the project compiles.

State must stay repairable in a broken project, so there is no contract where it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pz_engine.errors.exceptions import PzError
from pz_engine.model.contract_types import cursor_type_of_contract
from pz_engine.state.store import WatermarkEntry


def declared_cursor_type(
    project_dir: Path, key: str, entry: WatermarkEntry, *, env: Mapping[str, str] | None = None
) -> str | None:
    """Return the contract type of a stored cursor's column, or None when it is not known or says no more than the entry.

    Only a decimal's says more: how many digits there may be. A contract of another kind is the next run's to refuse.
    """
    if entry.type != "decimal":
        return None
    from pz_engine.app.open_project import open_project
    from pz_engine.compile.dag import SourceLoadNode

    try:
        nodes = open_project(project_dir, env=env, env_names="keep").graph.nodes
    except (PzError, OSError):
        return None
    columns = next((node.columns for node in nodes if isinstance(node, SourceLoadNode) and node.key == key), None) or {}
    declared = next((kind for name, kind in columns.items() if name.lower() == entry.cursor.lower()), None)
    return declared if declared is not None and cursor_type_of_contract(declared) == entry.type else None
