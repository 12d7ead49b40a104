"""Column lineage: what the compiler knows of it, and what Dagster calls it.

It is traced when the snapshot is taken and only looked up in a run. An unknown column is left out: an entry without
dependencies says that a column depends on nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import dagster as dg

from pz_dagster.snapshot import ColumnSources, Snapshot
from pz_engine import CompiledProject, PipelineNode, SinkWriteNode

_LOGGER = logging.getLogger("pz_dagster")
_ALL_COLUMNS = "*"


def trace_columns(compiled: CompiledProject) -> dict[str, dict[str, ColumnSources | None]]:
    """Return the columns behind every column of every pipeline; never a reason for a project not to load."""
    from pz_engine import column_lineage, diagnose

    try:
        traced = column_lineage(compiled)
    except Exception as error:
        _LOGGER.warning("column lineage is left out: %s", diagnose(error))
        return {}
    return {
        pipeline.name: {
            column.name: None
            if column.sources is None
            else tuple((source.node, source.column) for source in column.sources)
            for column in pipeline.columns
        }
        for pipeline in traced
        if all(column.name != _ALL_COLUMNS for column in pipeline.columns)
    }


def column_lineage_metadata(
    name: str, snapshot: Snapshot, keys: Mapping[str, dg.AssetKey], hidden: frozenset[str]
) -> dict[str, dg.TableColumnLineage]:
    """Return the lineage of a pipeline's or a sink's columns as metadata; empty when nothing is known.

    Args:
        name: the node.
        snapshot: the project.
        keys: asset key by node name; a column that leads to a node without one is unknown.
        hidden: names of the pipelines that are no assets; what they read takes their place.
    """
    node = snapshot.compiled.graph.by_name.get(name)
    if isinstance(node, SinkWriteNode):
        columns = snapshot.lineage.get(node.pipeline)
        found: Mapping[str, ColumnSources | None] = {column: ((node.pipeline, column),) for column in columns or ()}
    elif isinstance(node, PipelineNode):
        found = snapshot.lineage.get(name, {})
    else:
        return {}
    deps: dict[str, list[dg.TableColumnDep]] = {}
    for column, sources in found.items():
        visible = _visible(sources, snapshot, hidden)
        if visible is not None and all(parent in keys for parent, _ in visible):
            deps[column] = [dg.TableColumnDep(keys[parent], source) for parent, source in visible]
    return {"dagster/column_lineage": dg.TableColumnLineage(deps)} if deps else {}


def _visible(sources: ColumnSources | None, snapshot: Snapshot, hidden: frozenset[str]) -> ColumnSources | None:
    """Look through hidden pipelines; None when one of them does not know."""
    if sources is None:
        return None
    found: dict[tuple[str, str], None] = {}
    for name, column in sources:
        if name not in hidden:
            found[name, column] = None
            continue
        columns = {each.lower(): behind for each, behind in snapshot.lineage.get(name, {}).items()}
        behind = _visible(columns.get(column.lower()), snapshot, hidden)
        if behind is None:
            return None
        found.update(dict.fromkeys(behind))
    return tuple(found)
