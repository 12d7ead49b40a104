"""A pipeline's SQL with its watermarks filled in, as the statement runs it."""

from __future__ import annotations

from pz_engine.compile.dag import PipelineNode, SourceLoadNode
from pz_engine.compile.watermark_sql import substitute_watermarks
from pz_engine.duck.quoting import staging_relation
from pz_engine.duck.session import DuckCursor
from pz_engine.execute.capture import landed_cursor_type
from pz_engine.execute.context import RunContext
from pz_engine.execute.outcome import NodeFailure
from pz_engine.model.cursor_values import duck_literal, typed_null
from pz_engine.model.entity import staging_name


def pipeline_query(context: RunContext, cursor: DuckCursor, node: PipelineNode) -> str:
    """Replace every sentinel by the stored value as a typed literal, or by a typed NULL on a first run.

    Raises:
        NodeFailure: `PZ0505`, the landed cursor column has no usable type or another one than the stored value.
    """
    literals: dict[str, str] = {}
    for use in node.watermarks:
        source = context.compiled.graph.by_name.get(staging_name(use.connection, use.entity))
        if not isinstance(source, SourceLoadNode) or source.incremental is None:
            continue
        columns = cursor.describe(f"select * from {staging_relation(source.name)}")
        kind = landed_cursor_type(source, columns)
        stored = context.stored(use.key)
        if stored is not None and stored.type != kind:
            raise NodeFailure(
                "PZ0505",
                f"the stored watermark of '{use.key}' has type {stored.type}, column '{source.incremental.cursor}' landed "
                f"as {kind}; run with --full-refresh, or declare the column's type",
            )
        literals[use.sentinel] = typed_null(kind) if stored is None else duck_literal(kind, stored.value)
    return substitute_watermarks(node.sql, literals) if literals else node.sql
