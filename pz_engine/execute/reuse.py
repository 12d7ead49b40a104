"""Takes a load's rows from an earlier run instead of its source.

The copy is checked against what that run recorded. Reuse is never a new way to fail: on any doubt the load is extracted.
"""

from __future__ import annotations

from pz_engine.compile.dag import SourceLoadNode
from pz_engine.duck.quoting import STAGING_SCHEMA, staging_relation
from pz_engine.duck.session import DuckCursor
from pz_engine.execute.context import Attempt
from pz_engine.execute.outcome import Execution
from pz_engine.execute.prior_database import PriorDatabase
from pz_engine.execute.resume_plan import REUSED
from pz_engine.model.run import NodeResult


def try_reuse(attempt: Attempt, node: SourceLoadNode) -> Execution | None:
    """Copy a load's staged rows from the run that is continued; None when it has to be extracted.

    Raises:
        Cancelled: the node was cancelled.
    """
    context = attempt.context
    resume, prior = context.resume, context.prior
    recorded = resume.reuse.get(node.id) if resume is not None else None
    if recorded is None or prior is None or not prior.is_usable(attempt.cursor):
        return None
    what = f"{node.key} is extracted again"
    with prior.falling_back(what):
        if not prior.has_table(attempt.cursor, STAGING_SCHEMA, node.name):
            prior.say_unusable(what, "its rows are not there any more")
            return None
        rows = _copy(attempt.cursor, prior, node.name)
        if rows == recorded.rows:
            _copy_side_table(attempt.cursor, prior, f"{node.name}__rejects")
            return _execution(attempt, node, recorded, rows)
        prior.say_unusable(what, f"{rows} row(s) are there, {recorded.rows} were recorded")
    attempt.cursor.execute(f"drop table if exists {staging_relation(node.name)}")
    return None


def _execution(attempt: Attempt, node: SourceLoadNode, recorded: NodeResult, rows: int) -> Execution:
    stored = attempt.context.stored(node.key)
    return Execution(
        rows=rows,
        columns=attempt.cursor.describe(f"select * from {staging_relation(node.name)}"),
        row_count=rows,
        watermark=recorded.watermark,
        watermark_from=stored.value if stored is not None else None,
        caught_up=recorded.caught_up,
        rejected=recorded.rejected,
        provenance=REUSED,
    )


def _copy(cursor: DuckCursor, prior: PriorDatabase, name: str) -> int:
    source = prior.relation(STAGING_SCHEMA, name)
    return cursor.changed_rows(f"create or replace table {staging_relation(name)} as select * from {source}")


def _copy_side_table(cursor: DuckCursor, prior: PriorDatabase, name: str) -> None:
    if prior.has_table(cursor, STAGING_SCHEMA, name):
        _copy(cursor, prior, name)
