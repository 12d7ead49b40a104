"""How an op fails: what it says, what it carries, and whether trying again makes sense."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import dagster as dg

from pz_dagster.errors import PzDagsterError
from pz_dagster.event_mapping import EventMapper
from pz_engine import Diagnostic, PzConfigError, PzError, PzStateError, PzValidationError, RunOutcome, RunStatus


def broken_project_error(project: str, problems: Sequence[Diagnostic]) -> PzDagsterError:
    """Refuse to materialize anything of a project that does not compile."""
    lines = "\n".join(str(problem) for problem in problems)
    return PzDagsterError(
        f"PZ0707: project '{project}' does not compile, nothing ran:\n{lines}",
        metadata={"pz/problems": _problem_table(problems)},
        problems=problems,
    )


def refused_run_error(error: PzError) -> PzDagsterError:
    """Report a run that was refused before a node started."""
    if isinstance(error, PzValidationError):
        problems: tuple[Diagnostic, ...] = tuple(_stale(problem) for problem in error.errors)
    elif isinstance(error, (PzConfigError, PzStateError)):
        problems = (error.diagnostic,)
    else:
        problems = (Diagnostic("PZ0500", str(error)),)
    lines = "\n".join(str(problem) for problem in problems)
    return PzDagsterError(
        f"the pz run was refused:\n{lines}", metadata={"pz/problems": _problem_table(problems)}, problems=problems
    )


def _stale(problem: Diagnostic) -> Diagnostic:
    """A node that the loaded definitions have and the files do not: the definitions are older than the files."""
    if problem.code != "PZ0210":
        return problem
    return Diagnostic("PZ0701", f"{problem.message} in the project's files any more", hint="reload the definitions")


def unreported_checks_error(names: Sequence[str]) -> PzDagsterError:
    """Refuse a green run with a check that nobody evaluated."""
    return PzDagsterError(f"PZ0708: selected check(s) without a result: {', '.join(names)}; reload the definitions")


def run_error(
    outcome: RunOutcome, mapper: EventMapper, error_text: Callable[[str], str], *, is_gate: bool
) -> PzDagsterError | None:
    """Return the failure an outcome stands for, or None when the op succeeds."""
    if outcome.status is RunStatus.SUCCESS:
        return None
    failed = mapper.failed
    if not failed and outcome.status is RunStatus.COMPLETED_WITH_FAILURES and not (is_gate and mapper.skipped):
        return None
    shown = [*failed, *mapper.failed_checks]
    lines = [f"pz run {outcome.run_id}: {len(shown)} failed, {len(mapper.skipped)} skipped"]
    lines.extend(f"{r.name}: {r.error.code} {error_text(r.error.message)}" for r in shown if r.error is not None)
    if outcome.problem is not None:
        lines.append(f"{outcome.problem.code}: {outcome.problem.message}")
    metadata: dict[str, dg.MetadataValue] = {
        "pz/run_id": dg.MetadataValue.text(outcome.run_id),
        "pz/failed": dg.MetadataValue.table(
            [
                dg.TableRecord(
                    {
                        "node": r.name,
                        "code": r.error.code if r.error is not None else "",
                        "message": error_text(r.error.message) if r.error is not None else "",
                        "attempts": r.stats.attempts if r.stats.attempts is not None else "",
                    }
                )
                for r in shown
            ],
            schema=_schema("node", "code", "message", "attempts"),
        ),
        "pz/skipped": dg.MetadataValue.table(
            [dg.TableRecord({"node": name, "blocked_by": ", ".join(by)}) for name, by in mapper.skipped],
            schema=_schema("node", "blocked_by"),
        ),
    }
    if outcome.journal_path is not None:
        metadata["pz/journal"] = dg.MetadataValue.path(outcome.journal_path)
    if outcome.results_path is not None:
        metadata["pz/results"] = dg.MetadataValue.path(outcome.results_path)
    is_transient = bool(failed) and not mapper.failed_checks and all(r.stats.is_transient for r in failed)
    return PzDagsterError("\n".join(lines), metadata=metadata, failed_nodes=shown, allow_retries=is_transient)


def _problem_table(problems: Sequence[Diagnostic]) -> dg.MetadataValue:
    return dg.MetadataValue.table(
        [
            dg.TableRecord({"code": p.code, "place": p.place or "", "message": p.message, "next_step": p.hint or ""})
            for p in problems
        ],
        schema=_schema("code", "place", "message", "next_step"),
    )


def _schema(*names: str) -> dg.TableSchema:
    return dg.TableSchema([dg.TableColumn(name, "string") for name in names])
