"""Plan a project: which data path each node takes; writes `plan.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from pz_engine.app.hiding import hiding_values
from pz_engine.app.host import Selection
from pz_engine.app.open_project import open_project
from pz_engine.app.state_owner import mark_owner
from pz_engine.app.validate import check_compiled
from pz_engine.base.atomic_files import write_atomically
from pz_engine.base.stable_json import pretty_json
from pz_engine.compile.dag import CompiledProject
from pz_engine.compile.selection import resolve_selection
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.errors.exceptions import PzValidationError
from pz_engine.plan.effective_policies import policy_lines
from pz_engine.plan.plan_file import plan_document
from pz_engine.plan.planner import plan_project as plan_nodes
from pz_engine.plan.strategies import ExecutionPlan, NodePlan


class PlanRow(Struct, frozen=True):
    """One row of the table."""

    strategy: str
    node: str
    reason: str
    pushed: str | None = None
    """For example `3 columns + filter`; counts only."""


class PlanReport(Struct, frozen=True):
    """What planning found."""

    problems: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    rows: tuple[PlanRow, ...] = ()
    budget_lines: tuple[str, ...] = ()
    """The budget's sentence, then its disclaimers."""

    policy_lines: tuple[str, ...] = ()
    plan: Mapping[str, Any] | None = None
    """The document of `plan.json`."""


def plan_project(
    project_dir: Path,
    *,
    vars: Mapping[str, Any] | None = None,  # noqa: A002 - the option's name
    env: Mapping[str, str] | None = None,
    selection: Selection = Selection(),  # noqa: B008 - frozen
) -> PlanReport:
    """Run tiers 1 to 3, plan the whole project and write `plan.json`; problems are values.

    Raises:
        OSError: `plan.json` cannot be written.
    """
    try:
        compiled = open_project(project_dir, vars=vars, env=env)
        selected = resolve(compiled, selection, require_choice=False)
        warnings, notes = check_compiled(compiled, with_sql=False)
        effective = selected | compiled.graph.ancestors(selected)
        with hiding_values(compiled):
            plan = plan_nodes(compiled, effective)
    except PzValidationError as error:
        return PlanReport(problems=error.errors)
    write_plan(compiled, plan)
    is_filtered = len(selected) < len(compiled.nodes)
    if is_filtered:
        notes = (*notes, "only the table is filtered; plan.json covers the whole project")
    budget = plan.memory_budget
    disclaimers = [text for text in (budget.duckdb_disclaimer, budget.threads_disclaimer) if text]
    return PlanReport(
        (),
        warnings,
        notes,
        tuple(_row(entry) for entry in plan.nodes if entry.node_id in selected),
        (budget.line(), *(f"note: {text}" for text in disclaimers)),
        policy_lines(compiled),
        plan_document(plan),
    )


def resolve(compiled: CompiledProject, selection: Selection, *, require_choice: bool) -> frozenset[str]:
    """Resolve a selection to node ids.

    Raises:
        PzValidationError: `PZ0210`, `PZ0215` or `PZ0216`.
    """
    if selection.node_names is not None:
        return _by_name(compiled, selection.node_names)
    return resolve_selection(
        compiled,
        names=selection.names,
        expression=selection.expression,
        everything=selection.everything,
        node_ids=selection.node_ids,
        require_choice=require_choice,
    )


def _by_name(compiled: CompiledProject, names: frozenset[str]) -> frozenset[str]:
    known = compiled.graph.by_name
    missing = [Diagnostic("PZ0210", f"no node is called '{name}'", hint="pz ls") for name in sorted(names - set(known))]
    if missing:
        raise PzValidationError(missing)
    return frozenset(known[name].id for name in names)


def write_plan(compiled: CompiledProject, plan: ExecutionPlan) -> None:
    """Write `plan.json`.

    Raises:
        PzStateError: `PZ0518`, the folder is another project's.
        OSError: the directory cannot be written.
    """
    mark_owner(compiled)
    path = compiled.state_dir / "target" / "plan.json"
    write_atomically(path, pretty_json(plan_document(plan)), durable=False)


def _row(entry: NodePlan) -> PlanRow:
    pushed = [f"{entry.columns_pushed} columns"] if entry.columns_pushed is not None else []
    pushed += ["filter"] if entry.predicate_pushed else []
    return PlanRow(entry.strategy.value, entry.name, entry.reason, " + ".join(pushed) or None)
