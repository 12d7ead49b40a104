"""Everything before a run may start: load, compile, select, validate, plan, and decide what an earlier run gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field, structs

from pz_engine.app.hiding import hiding_values
from pz_engine.app.host import LATEST, RunRequest, Selection
from pz_engine.app.open_project import open_project
from pz_engine.app.plan import resolve, write_plan
from pz_engine.app.request_windows import check_windows
from pz_engine.app.state_owner import refuse_other_owner
from pz_engine.app.validate import check_compiled
from pz_engine.compile.builder import RunIdentity
from pz_engine.compile.dag import CheckNode, CompiledProject
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.errors.exceptions import PzInternalError, PzStateError
from pz_engine.execute.resume_plan import CARRIED_FORWARD, ResumePlan, plan_resume
from pz_engine.execute.run_windows import RunWindows
from pz_engine.model.project import EngineSettings, Project
from pz_engine.model.run import NodeKind, NodeResult, NodeStatus, RunStatus
from pz_engine.plan.planner import plan_project
from pz_engine.plan.strategies import ExecutionPlan
from pz_engine.state.retention import STAGING_DATABASE
from pz_engine.state.run_history import StoredRun, run_directories, stored_runs

if TYPE_CHECKING:
    from pz_engine.duck.instance import DuckInstance

_AGAIN = frozenset({NodeStatus.FAILED, NodeStatus.SKIPPED})


class PreparedRun(Struct, frozen=True):
    """A run that may start."""

    compiled: CompiledProject
    project: Project
    plan: ExecutionPlan
    effective: frozenset[str]
    warnings: tuple[Diagnostic, ...]
    resume: ResumePlan | None = None
    """What the run that is continued gives; None for a run that continues nothing."""

    notes: tuple[str, ...] = ()
    nothing_to_retry: bool = False
    windows: RunWindows = field(default_factory=RunWindows)

    @property
    def continues(self) -> str | None:
        """Return the run that is continued, whether or not there is anything to take from it."""
        return self.resume.run_id if self.resume is not None else None


def prepare_run(request: RunRequest, identity: RunIdentity, instance: DuckInstance) -> PreparedRun:
    """Do everything that may refuse a run before it leaves a trace.

    Args:
        request: the run.
        identity: its id and start.
        instance: the DuckDB to parse and bind with.

    Raises:
        PzValidationError: the project, the selection, a window or the plan was refused.
        PzStateError: `PZ0502` to `PZ0504`, the run to continue cannot be continued; `PZ0518`, the folder for runs and
            state belongs to another project.
    """
    compiled = open_project(
        request.project_dir,
        vars=request.vars,
        env=request.env,
        identity=identity,
        state_url=request.state_url,
        state_dir=request.state_dir,
        instance=instance,
    )
    refuse_other_owner(compiled)
    if compiled.project is None:
        raise PzInternalError("compile returned no project")
    project = structs.replace(compiled.project, engine=_engine(compiled.project.engine, request))
    compiled = replace(compiled, project=project)
    warnings, _ = check_compiled(compiled, instance=instance)
    windows = check_windows(compiled, request)
    notes: list[str] = []
    prior = _prior_run(compiled.state_dir, request.retry_from, notes) if request.retry_from is not None else None
    selected = _selected(compiled, request, prior, notes)
    effective = selected | compiled.graph.ancestors(selected)
    is_empty_retry = prior is not None and not effective
    with hiding_values(compiled):
        plan = plan_project(compiled, effective)
    if not is_empty_retry:
        write_plan(compiled, plan)
    resume = _resume(compiled, plan, effective, prior, request) if prior is not None else None
    return PreparedRun(compiled, project, plan, effective, warnings, resume, tuple(notes), is_empty_retry, windows)


def _selected(
    compiled: CompiledProject, request: RunRequest, prior: StoredRun | None, notes: list[str]
) -> frozenset[str]:
    if prior is not None and request.selection == Selection():
        return _to_run_again(compiled, prior, notes)
    selected = resolve(compiled, request.selection, require_choice=request.mode == "run")
    if request.mode == "test":
        selected = frozenset(n for n in selected if isinstance(compiled.graph.by_id[n], CheckNode))
    return selected


def _to_run_again(compiled: CompiledProject, prior: StoredRun, notes: list[str]) -> frozenset[str]:
    """Return what failed or was skipped and is still the same node."""
    if prior.results.status is RunStatus.SUCCESS:
        notes.append(f"nothing to retry: run {prior.run_id} succeeded")
        return frozenset()
    again = [result for result in prior.results.results if result.status in _AGAIN]
    present = frozenset(result.id for result in again if result.id in compiled.graph.by_id)
    notes.extend(
        f"'{result.name}' has changed since run {prior.run_id} and is not retried"
        for result in again
        if result.id not in present
    )
    if not present:
        notes.append(f"nothing to retry: the project has changed since run {prior.run_id}")
    return present


def _prior_run(state_dir: Path, run_id: str, notes: list[str]) -> StoredRun:
    """Return the run to continue; notes name newer ones that left nothing to go by.

    Raises:
        PzStateError: there is none (`PZ0502`), it was interrupted (`PZ0503`) or ended fatally (`PZ0504`).
    """
    runs = stored_runs(state_dir)
    found = next((run for run in runs if run_id in (LATEST, run.run_id)), None)
    if run_id == LATEST:
        notes.extend(
            f"run {directory.name} is passed over, because it left no results that can be read; what it did not deliver "
            "is left to 'pz run'"
            for directory in takewhile(
                lambda each: found is None or each != found.directory, run_directories(state_dir)
            )
        )
    if found is None:
        which = "no run" if run_id == LATEST else f"no readable run '{run_id}'"
        passed = "; ".join(notes)
        raise PzStateError("PZ0502", f"there is {which} to retry{f': {passed}' if passed else ''}", hint="pz run")
    if found.results.status is RunStatus.RUNNING:
        raise PzStateError(
            "PZ0503", f"run {found.run_id} did not reach its end, so nothing is known of it", hint="pz run"
        )
    if found.results.status is RunStatus.FATAL:
        raise PzStateError("PZ0504", f"run {found.run_id} ended fatally or was cancelled", hint="pz run")
    return found


def _resume(
    compiled: CompiledProject,
    plan: ExecutionPlan,
    effective: frozenset[str],
    prior: StoredRun,
    request: RunRequest,
) -> ResumePlan:
    database = prior.directory / STAGING_DATABASE[0]
    if request.full_refresh:
        return ResumePlan(prior.run_id, database)
    recorded = [*prior.results.results, *_computed_earlier(compiled.state_dir, prior)]
    found = plan_resume(compiled.graph, plan, effective, recorded, run_id=prior.run_id, database=database)
    return structs.replace(found, is_shared=prior.results.status is RunStatus.SUCCESS)


def _computed_earlier(state_dir: Path, prior: StoredRun) -> Iterator[NodeResult]:
    """Yield the pipelines above sinks that the prior run carried forward: it did not compute them, the run that did tells.

    Without them a second retry could not tell whether a sink that committed before the first one is still the same.
    """
    carried = {result.id for result in prior.results.results if result.provenance == CARRIED_FORWARD}
    if not carried:
        return
    for run in dropwhile(lambda each: each.run_id != prior.run_id, stored_runs(state_dir)):
        committed = {result.id for result in run.results.results if _is_commit(result)}
        if carried & committed:
            yield from (result for result in run.results.results if result.kind is NodeKind.PIPELINE)
        carried -= committed
        if not carried:
            return


def _is_commit(result: NodeResult) -> bool:
    return result.kind is NodeKind.SINK_WRITE and result.status is NodeStatus.SUCCESS and result.provenance is None


def _engine(engine: EngineSettings, request: RunRequest) -> EngineSettings:
    overrides = request.overrides
    duckdb = structs.replace(
        engine.duckdb,
        memory_limit=overrides.memory_limit or engine.duckdb.memory_limit,
        threads=overrides.duckdb_threads or engine.duckdb.threads,
    )
    return structs.replace(engine, threads=overrides.threads or engine.threads, duckdb=duckdb)
