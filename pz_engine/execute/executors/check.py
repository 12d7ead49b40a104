"""Runs one check over its pipeline's relation."""

from __future__ import annotations

from pz_engine.checks import build_check, render_sample
from pz_engine.compile.dag import CheckNode
from pz_engine.duck.quoting import staging_relation
from pz_engine.execute.context import Attempt
from pz_engine.execute.outcome import Execution, NodeFailure


def run_check(attempt: Attempt, node: CheckNode) -> Execution:
    """Count violations.

    Raises:
        NodeFailure: `PZ0510`; the first line of its message holds no value, samples follow on the next.
        DuckStatementError: the check itself could not run.
    """
    context, cursor = attempt.context, attempt.cursor
    query = build_check(node.check, staging_relation(node.pipeline), context.started_at)
    row = cursor.rows(query.violations_sql)[0]
    violations = int(row[0])
    if not violations:
        return Execution(rows=0)
    message = f"check {node.check.type.value} on staging.{node.pipeline} found {violations} violation(s)"
    wants_samples = context.engine.check_samples if node.check.sample_values is None else node.check.sample_values
    if query.describe is not None:
        detail = query.describe(row)
    elif query.sample_sql is None or not wants_samples:
        detail = "samples are disabled"
    else:
        names = [column.name for column in cursor.describe(query.sample_sql)]
        detail = f"sample: {render_sample(names, cursor.rows(query.sample_sql))}"
    raise NodeFailure("PZ0510", f"{message}\n{detail}", rows=violations)
