"""Materializes one pipeline as a staged table or view."""

from __future__ import annotations

from pz_engine.compile.dag import PipelineNode
from pz_engine.duck.quoting import staging_relation
from pz_engine.execute.context import Attempt
from pz_engine.execute.outcome import Execution
from pz_engine.execute.pipeline_sql import pipeline_query
from pz_engine.model.policies import Materialization


def build_pipeline(attempt: Attempt, node: PipelineNode) -> Execution:
    """Run one attempt; a view is not counted.

    Raises:
        DuckStatementError: the query failed.
        Cancelled: the node was cancelled.
    """
    cursor, relation = attempt.cursor, staging_relation(node.name)
    query = pipeline_query(attempt.context, cursor, node)
    is_view = node.materialization is Materialization.VIEW
    rows: int | None = None
    if is_view:
        cursor.execute(f"create or replace view {relation} as (\n{query}\n)")
    else:
        rows = cursor.changed_rows(f"create or replace table {relation} as (\n{query}\n)")
    return Execution(rows=rows, columns=cursor.describe(f"select * from {relation}"), row_count=rows)
