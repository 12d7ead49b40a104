"""Takes a load's rows from an earlier run instead of its source.

They are in this run's database already, which began as a copy of that run's; here they are compared with what that run
recorded. Reuse is never a new way to fail: on any doubt the load is extracted.
"""

from __future__ import annotations

from collections.abc import Iterable

from pz_engine.compile.dag import SourceLoadNode
from pz_engine.duck.quoting import staging_relation
from pz_engine.execute.context import Attempt
from pz_engine.execute.outcome import Execution
from pz_engine.execute.resume_plan import REUSED
from pz_engine.model.run import NodeResult


def reused_tables(loads: Iterable[SourceLoadNode]) -> frozenset[str]:
    """Return the tables of staging that loads leave behind."""
    return frozenset(name for node in loads for name in (node.name, f"{node.name}__rejects"))


def try_reuse(attempt: Attempt, node: SourceLoadNode) -> Execution | None:
    """Take a load's staged rows over from the run that is continued; None when it has to be extracted.

    Raises:
        Cancelled: the node was cancelled.
        DuckStatementError: the rows cannot be counted.
    """
    resume = attempt.context.resume
    recorded = resume.reuse.get(node.id) if resume is not None else None
    if resume is None or recorded is None or attempt.ordinal > 1:
        return None
    relation, why = staging_relation(node.name), "its rows are not there any more"
    if node.name in attempt.context.taken_over:
        rows = attempt.cursor.count(relation)
        if rows == recorded.rows:
            return _execution(attempt, node, recorded, rows)
        why = f"{rows} row(s) are there, {recorded.rows} were recorded"
        for name in reused_tables([node]):
            attempt.cursor.execute(f"drop table if exists {staging_relation(name)}")
    if attempt.context.prior is not None:
        attempt.context.prior.say_unusable(f"{node.key} is extracted again", why)
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
