"""Column lineage as values, and as the artifact writes it.

Unknown is None and never an empty list: an empty one says that a column depends on no column at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

UNKNOWN_COLUMNS = "*"
"""Name of the only entry of a pipeline whose columns cannot be listed."""


class ColumnSource(Struct, frozen=True, order=True):
    """A column of a node that a pipeline reads directly."""

    node: str
    """Name of a source load or of a pipeline."""

    column: str


class ColumnLineage(Struct, frozen=True):
    """One output column."""

    name: str
    sources: tuple[ColumnSource, ...] | None
    """Sorted; empty for an expression over no column, None when it cannot be known."""


class PipelineLineage(Struct, frozen=True):
    """The output columns of one pipeline, in order; a single unknown `*` when they cannot be listed."""

    name: str
    columns: tuple[ColumnLineage, ...]


def build_lineage(pipelines: Sequence[PipelineLineage]) -> dict[str, Any]:
    """Return the artifact."""
    return {
        "version": 1,
        "pipelines": [
            {"name": pipeline.name, "columns": [_column_entry(column) for column in pipeline.columns]}
            for pipeline in pipelines
        ],
    }


def _column_entry(column: ColumnLineage) -> dict[str, Any]:
    sources = column.sources
    return {
        "name": column.name,
        "from": None if sources is None else [{"node": source.node, "column": source.column} for source in sources],
    }
