"""Makes the schema that the latest run observed the accepted one; opens no connection."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from pz_engine.app.state_owner import mark_owner
from pz_engine.compile.dag import SourceLoadNode
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.errors.exceptions import PzValidationError
from pz_engine.events.types import ColumnChange
from pz_engine.execute.gates.drift import compare_columns
from pz_engine.model.run import NodeResult
from pz_engine.state.factory import open_state_stores
from pz_engine.state.run_history import stored_runs
from pz_engine.state.store import SchemaBaseline


class AcceptedSchema(Struct, frozen=True):
    """One entity whose observed schema is the accepted one now."""

    key: str
    changes: tuple[ColumnChange, ...]
    """Empty when only what the read asks for changed."""


class AcceptReport(Struct, frozen=True):
    """What was accepted."""

    accepted: tuple[AcceptedSchema, ...]
    run_id: str | None
    """The run whose observations were taken; None when there is none."""

    notes: tuple[str, ...] = ()


def accept_schemas(
    project_dir: Path,
    keys: Sequence[str] = (),
    *,
    vars: Mapping[str, Any] | None = None,  # noqa: A002 - the option's name
    env: Mapping[str, str] | None = None,
) -> AcceptReport:
    """Store the latest run's observed schemas as baselines.

    Args:
        project_dir: the project's directory.
        keys: `<connection>.<entity>` of each entity; none for all that differ.
        vars: laid over the project's own, as for the run.
        env: laid over the process environment.

    Raises:
        PzValidationError: the project does not compile; `PZ0127`, a named entity was not observed by the latest run.
        PzStateError: the store cannot be reached, or a baseline changed meanwhile.
    """
    from pz_engine.app.open_project import open_project

    compiled = open_project(project_dir, vars=vars, env=env if env is not None else os.environ)
    if compiled.project is None:
        return AcceptReport((), None)
    mark_owner(compiled)
    run = next(stored_runs(compiled.state_dir), None)
    results = {result.id: result for result in run.results.results} if run is not None else {}
    observed = {
        node.key: results[node.id]
        for node in compiled.nodes
        if isinstance(node, SourceLoadNode) and node.id in results and results[node.id].observed_schema is not None
    }
    unknown = [key for key in keys if key not in observed]
    if unknown:
        raise PzValidationError([_not_observed(key) for key in unknown])
    notes: list[str] = []
    accepted: list[AcceptedSchema] = []
    run_id = run.run_id if run is not None else None
    with open_state_stores(compiled.project.state, compiled.state_dir, note=notes.append) as stores:
        for key in sorted(keys or observed):
            entry = _accept(observed[key], stores.schemas.get(key), run_id or "")
            if entry is None:
                continue
            baseline, changes = entry
            stores.schemas.set(key, baseline)
            accepted.append(AcceptedSchema(key, changes))
    return AcceptReport(tuple(accepted), run_id, tuple(notes))


def _accept(
    result: NodeResult, current: SchemaBaseline | None, run_id: str
) -> tuple[SchemaBaseline, tuple[ColumnChange, ...]] | None:
    """Return the new baseline and what differs, or None when it is the current one."""
    schema = result.observed_schema
    if schema is None:
        return None
    is_same_read = current is not None and current.hints_hash == schema.hints_hash
    changes = compare_columns(current.columns if current is not None and is_same_read else (), schema.columns)
    if is_same_read and not changes:
        return None
    return SchemaBaseline(schema.columns, schema.hints_hash, run_id), changes


def _not_observed(key: str) -> Diagnostic:
    return Diagnostic(
        "PZ0127",
        f"the latest run observed no schema of '{key}'",
        hint="run it with on_source_drift: warn or fail; 'pz ls' lists what a project reads",
    )
