"""What every verb prints around its result: problems, warnings, notes, and the one JSON object."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from msgspec import Struct

from pz_engine.base.stable_json import compact_json
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render import console
from pz_engine.cli.render.terminal import Terminal
from pz_engine.errors.diagnostics import Diagnostic, ordered
from pz_engine.errors.exceptions import PzError, PzValidationError
from pz_engine.errors.unexpected import diagnose


def problems_of(error: PzError) -> tuple[Diagnostic, ...] | None:
    """Return the problems an anticipated error carries; None when it carries none."""
    if isinstance(error, PzValidationError):
        return error.errors
    problem = getattr(error, "diagnostic", None)
    return (problem,) if isinstance(problem, Diagnostic) else None


def print_problems(terminal: Terminal, problems: Sequence[Diagnostic]) -> None:
    """Print all errors, by file then line, on standard error."""
    for problem in ordered(list(problems)):
        terminal.err(console.problem_line(problem))


def print_warnings(terminal: Terminal, warnings: Sequence[Diagnostic], verbosity: int) -> None:
    """Print warnings on standard error, by file then line."""
    if verbosity > console.QUIET:
        for warning in ordered(list(warnings)):
            terminal.err(console.warning_line(warning))


def print_notes(terminal: Terminal, notes: Sequence[str], verbosity: int, *, is_json: bool = False) -> None:
    """Print notes: on standard output in text mode, on standard error beside JSON."""
    if verbosity > console.QUIET:
        write: Callable[[str], None] = terminal.err if is_json else terminal.out
        for note in notes:
            write(console.note_line(note))


def report(
    terminal: Terminal,
    *,
    problems: Sequence[Diagnostic],
    warnings: Sequence[Diagnostic],
    notes: Sequence[str],
    verbosity: int,
    is_json: bool,
    extra: Mapping[str, Any] | None = None,
) -> ExitCode:
    """Print what a phase found, in the format asked for, and return the exit code so far.

    Args:
        terminal: where to.
        problems: errors; any of them makes the exit code 2.
        warnings: never change it.
        notes: never change it.
        verbosity: -1 leaves out warnings and notes.
        is_json: one object on standard output; without problems it also holds `extra`.
        extra: the verb's own result.
    """
    if is_json:
        document: dict[str, Any] = {
            "ok": not problems,
            "errors": [_error_json(problem) for problem in ordered(list(problems))],
            "warnings": [_warning_json(warning) for warning in ordered(list(warnings))],
        }
        if not problems:
            document.update(extra or {})
        terminal.out(compact_json(document))
    else:
        print_problems(terminal, problems)
        print_warnings(terminal, warnings, verbosity)
    print_notes(terminal, notes, verbosity, is_json=is_json)
    return ExitCode.USAGE if problems else ExitCode.OK


def _error_json(problem: Diagnostic) -> dict[str, Any]:
    return {"code": problem.code, "message": problem.message, **_place(problem), "next_step": problem.hint}


def _warning_json(warning: Diagnostic) -> dict[str, Any]:
    return {"code": warning.code, "message": warning.message, **_place(warning), "hint": warning.hint}


def _place(problem: Diagnostic) -> dict[str, Any]:
    place = {"file": problem.file, "line": problem.line}
    return {key: value for key, value in place.items() if value is not None}


class Outcome(Struct):
    """The exit code a verb arrives at."""

    code: ExitCode = ExitCode.OK


@contextmanager
def reported_as(terminal: Terminal, *, is_json: bool) -> Iterator[Outcome]:
    """Report the errors of the block in the format asked for; in text mode, bugs pass through."""
    outcome = Outcome()
    try:
        yield outcome
    except (click.ClickException, click.Abort, BrokenPipeError):
        raise
    except Exception as error:
        problems = problems_of(error) if isinstance(error, PzError) else None
        if problems is None and not is_json:
            raise
        outcome.code = report(
            terminal,
            problems=problems if problems is not None else (diagnose(error),),
            warnings=(),
            notes=(),
            verbosity=console.QUIET,
            is_json=is_json,
        )
        if problems is None:
            outcome.code = ExitCode.FATAL
            print_trace(terminal, error)


def print_trace(terminal: Terminal, error: Exception) -> None:
    """Print where a bug showed itself, on standard error, when PZ_DEBUG asks for it."""
    if os.environ.get("PZ_DEBUG", "0") in {"", "0"}:
        return
    import traceback

    for line in "".join(traceback.format_exception(error)).splitlines():
        terminal.err(line)


def warn_lock_check(terminal: Terminal, *, skipped: bool) -> None:
    """Say that the lock file is not compared with what is installed."""
    if skipped:
        terminal.err("warning: the installed connectors are not compared with pz.lock.json")
