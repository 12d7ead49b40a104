"""How an op fails: what it says, what it carries, and whether trying again makes sense."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import dagster as dg

from pz_dagster.discretion import Discretion
from pz_dagster.errors import PzDagsterError
from pz_dagster.event_mapping import EventMapper
from pz_dagster.tables import problem_table, table
from pz_engine import (
    Diagnostic,
    NodeResult,
    PzConfigError,
    PzStateError,
    PzValidationError,
    RunOutcome,
    RunStatus,
)

_BREAKER_IS_OPEN = "PZ0506"


def broken_project_error(project: str, problems: Sequence[Diagnostic]) -> PzDagsterError:
    """Refuse to materialize anything of a project that does not compile."""
    lines = "\n".join(str(problem) for problem in problems)
    return PzDagsterError(
        f"PZ0707: project '{project}' does not compile, nothing ran:\n{lines}",
        metadata={"pz/problems": problem_table(problems)},
        problems=problems,
    )


def refused_run_error(error: BaseException, discretion: Discretion) -> PzDagsterError:
    """Report a run that ended without an outcome: refused before a node started, or stopped by the machine."""
    if isinstance(error, PzValidationError):
        problems: tuple[Diagnostic, ...] = tuple(_stale(problem) for problem in error.errors)
    elif isinstance(error, (PzConfigError, PzStateError)):
        problems = (error.diagnostic,)
    else:
        from pz_engine import diagnose

        problems = (diagnose(error),)
        problems = tuple(
            Diagnostic(p.code, discretion.text(p.message) if p.code == "PZ0500" else p.message, hint=p.hint)
            for p in problems
        )
    problems = tuple(discretion.diagnostic(problem) for problem in problems)
    lines = "\n".join(str(problem) for problem in problems)
    return PzDagsterError(
        f"the pz run was refused:\n{lines}", metadata={"pz/problems": problem_table(problems)}, problems=problems
    )


def stale_definitions_error(names: Iterable[str]) -> PzDagsterError:
    """Refuse a selection that the project does not know."""
    problem = Diagnostic("PZ0701", f"not in the project: {', '.join(sorted(names))}", hint="reload the definitions")
    return PzDagsterError(str(problem), metadata={"pz/problems": problem_table([problem])}, problems=[problem])


def _stale(problem: Diagnostic) -> Diagnostic:
    """A node that the loaded definitions have and the files do not: the definitions are older than the files."""
    if problem.code != "PZ0210":
        return problem
    return Diagnostic("PZ0701", f"{problem.message} in the project's files any more", hint="reload the definitions")


def unreported_checks_error(names: Sequence[str]) -> PzDagsterError:
    """Refuse a green run with a check that nobody evaluated."""
    problem = Diagnostic(
        "PZ0708", f"selected check(s) without a result: {', '.join(names)}", hint="reload the definitions"
    )
    return PzDagsterError(str(problem), problems=[problem])


def unwritten_checks_error(names: Iterable[str]) -> PzDagsterError:
    """Refuse checks that are evaluated while a sink is written, when the sink was not selected."""
    problem = Diagnostic(
        "PZ0708",
        f"evaluated only while their sink is written: {', '.join(sorted(names))}",
        hint="select the sink's asset with its check",
    )
    return PzDagsterError(str(problem), metadata={"pz/problems": problem_table([problem])}, problems=[problem])


def run_error(
    outcome: RunOutcome, mapper: EventMapper, discretion: Discretion, *, gating: frozenset[str]
) -> PzDagsterError | None:
    """Return the failure an outcome stands for, or None when the op succeeds.

    Args:
        outcome: how the run ended.
        mapper: what happened in it.
        discretion: what may be shown.
        gating: names of the checks that gate; only their violations fail the op.
    """
    violated = [result for result in mapper.failed_checks if result.name in gating]
    is_fatal = outcome.status is RunStatus.FATAL
    if not (mapper.failed or violated or mapper.skipped or is_fatal):
        return None
    shown = [*mapper.failed, *mapper.failed_checks]
    lines = [f"pz run {outcome.run_id}: {len(shown)} failed, {len(mapper.skipped)} skipped"]
    lines.extend(f"{r.name}: {r.error.code} {discretion.error(r)}" for r in shown if r.error is not None)
    if violated and mapper.skipped:
        lines.append(f"skipped: {', '.join(name for name, _ in mapper.skipped)}")
    if outcome.problem is not None:
        lines.append(f"{outcome.problem.code}: {discretion.relative(outcome.problem.message)}")
    elif is_fatal:
        lines.append("PZ0500: the run stopped before its end; its notes say why")
    metadata: dict[str, dg.MetadataValue] = {
        "pz/run_id": dg.MetadataValue.text(outcome.run_id),
        "pz/failed": _failed_table(shown, discretion),
        "pz/skipped": table(
            [{"node": name, "blocked_by": ", ".join(by)} for name, by in mapper.skipped], ("node", "blocked_by")
        ),
    }
    if outcome.journal_path is not None:
        metadata["pz/journal"] = dg.MetadataValue.path(outcome.journal_path)
    if outcome.results_path is not None:
        metadata["pz/results"] = dg.MetadataValue.path(outcome.results_path)
    if mapper.breaker_opened:
        metadata["pz/breaker_opened"] = dg.MetadataValue.int(mapper.breaker_opened)
    is_transient = bool(mapper.failed) and not violated and all(map(_may_pass_later, mapper.failed))
    return PzDagsterError("\n".join(lines), metadata=metadata, failed_nodes=shown, allow_retries=is_transient)


def _failed_table(results: Sequence[NodeResult], discretion: Discretion) -> dg.MetadataValue:
    rows = [
        {
            "node": result.name,
            "code": result.error.code if result.error is not None else "",
            "message": discretion.error(result),
            "attempts": str(result.stats.attempts) if result.stats.attempts is not None else "",
        }
        for result in results
    ]
    return table(rows, ("node", "code", "message", "attempts"))


def _may_pass_later(result: NodeResult) -> bool:
    """Tell whether trying again has a chance: the connector says so, or a breaker kept the node from trying."""
    return bool(result.stats.is_transient) or (result.error is not None and result.error.code == _BREAKER_IS_OPEN)
