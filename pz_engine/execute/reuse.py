"""Takes a load's rows from an earlier run instead of its source.

They are in this run's database already, which began as a copy of that run's; here they are compared with what that run
recorded. Reuse is never a new way to fail: on any doubt the load is extracted.
"""

from __future__ import annotations

from collections.abc import Iterable

from pz_engine.compile.dag import SourceLoadNode
from pz_engine.duck.quoting import staging_relation
from pz_engine.execute.bounds import plan_bounds
from pz_engine.execute.capture import landed_cursor_type
from pz_engine.execute.context import Attempt
from pz_engine.execute.ledgers.read_ledger import RecordedRead, record_read
from pz_engine.execute.outcome import Execution
from pz_engine.execute.resume_plan import REUSED
from pz_engine.execute.run_windows import given_part_rows
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
    problem = _problem(attempt, node, recorded)
    if problem is None:
        return _execution(attempt, node, recorded)
    for name in reused_tables([node]):
        attempt.cursor.execute(f"drop table if exists {staging_relation(name)}")
    if attempt.context.prior is not None:
        attempt.context.prior.say_unusable(f"{node.key} is extracted again", problem)
    return None


def _problem(attempt: Attempt, node: SourceLoadNode, recorded: NodeResult) -> str | None:
    """Return why the rows may not stand for what this run would read."""
    context = attempt.context
    if node.name not in context.taken_over.tables:
        return "its rows are not there any more"
    rows = attempt.cursor.count(staging_relation(node.name))
    if rows != recorded.rows:
        return f"{rows} row(s) are there, {recorded.rows} were recorded"
    if node.incremental is None:
        return None
    read = context.taken_over.reads.get(node.id, RecordedRead())
    bounds = plan_bounds(context, attempt.cursor, node)
    if read.lower != bounds.lower:
        return "it read from another watermark than the one that is stored now"
    if read.upper != bounds.upper and (bounds.is_given or bounds.upper is None):
        return "it read another slice than this run"
    candidate = recorded.watermark
    if read.watermark != (candidate.value if candidate is not None else None):
        return "its results name another watermark than its rows"
    if candidate is not None:
        columns = attempt.cursor.describe(f"select * from {staging_relation(node.name)}")
        if (candidate.cursor, candidate.type) != (node.incremental.cursor, landed_cursor_type(node, columns)):
            return "its results name another cursor than its rows"
    return None


def _execution(attempt: Attempt, node: SourceLoadNode, recorded: NodeResult) -> Execution:
    context, bounds = attempt.context, plan_bounds(attempt.context, attempt.cursor, node)
    if node.incremental is not None:
        value = recorded.watermark.value if recorded.watermark is not None else None
        context.ledgers.ensure(attempt.cursor)
        record_read(attempt.cursor, node.id, bounds.window, value)
    stored = context.stored(node.key)
    return Execution(
        rows=recorded.rows,
        columns=attempt.cursor.describe(f"select * from {staging_relation(node.name)}"),
        row_count=recorded.rows,
        watermark=recorded.watermark,
        window=bounds.slice,
        part_rows=given_part_rows(context.windows, attempt.cursor, node, staging_relation(node.name)),
        watermark_from=stored.value if stored is not None else None,
        caught_up=recorded.caught_up,
        rejected=recorded.rejected,
        provenance=REUSED,
    )
