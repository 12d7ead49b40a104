"""Column lineage as values, and as the artifact writes it.

Unknown is None and never an empty list: an empty one says that a column depends on no column at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

UNKNOWN_COLUMNS = "*"
"""Name of the only entry of a pipeline whose columns cannot be listed."""


@dataclass(frozen=True, slots=True, order=True)
class ColumnSource:
    """A column of a node that a pipeline reads directly."""

    node: str
    """Name of a source load or of a pipeline."""

    column: str


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """One output column."""

    name: str
    sources: tuple[ColumnSource, ...] | None
    """Sorted; empty for an expression over no column, None when it cannot be known."""


@dataclass(frozen=True, slots=True)
class PipelineLineage:
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
