"""Compares what a source without a contract landed with its accepted columns.

A baseline is stored the first time, and again when the read asks for something else; a difference is never accepted
by itself. Failing to read or store a baseline is a note, never a node's failure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from pz_engine.compile.dag import SourceLoadNode
from pz_engine.errors.exceptions import PzStateError
from pz_engine.events.types import ColumnChange, SourceDriftDetected
from pz_engine.execute.context import Attempt
from pz_engine.execute.outcome import Execution, NodeFailure
from pz_engine.model.policies import DriftPolicy
from pz_engine.model.run import ColumnType, ObservedSchema
from pz_engine.state.store import SchemaBaseline


def check_drift(attempt: Attempt, node: SourceLoadNode, done: Execution) -> ObservedSchema | None:
    """Return what was observed, or None when the entity is not watched.

    Raises:
        NodeFailure: `PZ0331`, the columns differ and the project's policy is to fail.
    """
    project = attempt.context.compiled.project
    policy = project.on_source_drift if project is not None else DriftPolicy.IGNORE
    if policy is DriftPolicy.IGNORE or node.columns or done.columns is None:
        return None
    observed = ObservedSchema(done.columns, hints_hash(node))
    baseline = _baseline(attempt, node, observed)
    changes = compare_columns(baseline.columns, observed.columns) if baseline is not None else ()
    if not changes:
        return observed
    attempt.warnings.add(
        SourceDriftDetected,
        node_id=node.id,
        connection=node.connection,
        entity=node.entity,
        policy=policy.value,
        changes=changes,
        observed=observed.columns,
        hints_hash=observed.hints_hash,
    )
    if policy is DriftPolicy.FAIL:
        names = ", ".join(f"'{change.column}' {change.kind}" for change in changes)
        raise NodeFailure(
            "PZ0331",
            f"the columns of '{node.key}' differ from the accepted ones: {names}\n"
            f"next step: pz schema accept {node.key}, or correct the source",
            rows=done.rows or 0,
            timings=done.timings,
            observed_schema=observed,
        )
    return observed


def hints_hash(node: SourceLoadNode) -> str:
    """Return the identity of what a read asks for: its pushed columns and predicate."""
    columns = "\x1f".join(node.hints.columns or ())
    text = f"{columns}\x1e{node.hints.predicate_sql or ''}"
    return hashlib.sha256(text.encode()).hexdigest().upper()


def compare_columns(accepted: Sequence[ColumnType], observed: Sequence[ColumnType]) -> tuple[ColumnChange, ...]:
    """Return every difference: added columns in observed order, then removed and retyped ones in accepted order.

    >>> compare_columns([ColumnType("a", "DATE")], [ColumnType("a", "VARCHAR"), ColumnType("b", "DATE")])[0].column
    'b'
    """
    known: Mapping[str, str] = dict(accepted)
    present: Mapping[str, str] = dict(observed)
    added = [ColumnChange("added", name, None, kind) for name, kind in observed if name not in known]
    others = [
        ColumnChange("removed", name, kind, None)
        if name not in present
        else ColumnChange("retyped", name, kind, present[name])
        for name, kind in accepted
        if present.get(name) != kind
    ]
    return (*added, *others)


def _baseline(attempt: Attempt, node: SourceLoadNode, observed: ObservedSchema) -> SchemaBaseline | None:
    """Return what to compare with; without one of the same read, the observed columns become it."""
    context = attempt.context
    try:
        found = context.schemas.get(node.key)
        if found is None or found.hints_hash != observed.hints_hash:
            context.schemas.set(node.key, SchemaBaseline(observed.columns, observed.hints_hash, context.run_id))
            found = None
        attempt.warnings.examine(node.id, SourceDriftDetected)
        return found
    except PzStateError as error:
        context.note(f"the accepted schema of {node.key} could not be read or stored: {error.message}")
    return None
