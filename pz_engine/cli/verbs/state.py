"""`pz state`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from pz_engine.cli import options, reporting
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render.tables import table_lines
from pz_engine.cli.render.terminal import Terminal
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.errors.exceptions import PzStateError

if TYPE_CHECKING:
    from pz_engine.app.state import KeyHistory, StateOverview, StoredWatermark
    from pz_engine.app.state_edits import PlannedEdit

_FILES: Final = {"watermarks": ".pz/state/watermarks.json", "sync tokens": ".pz/state/sync-state.json"}


@click.group("state", subcommand_metavar="ACTION [ARGUMENTS]...")
def command() -> None:
    """Show and change what runs remember.

    Works from project.yml alone, so a broken pipeline never stands in the way.
    """


@command.command("show")
@click.argument("key", required=False, metavar="[KEY]")
@options.project_option
@options.verbosity_options
@click.pass_obj
def show(terminal: Terminal, key: str | None, project_dir: Path, quiet: bool, verbose: int) -> int:
    """Show stored watermarks and sync tokens.

    With KEY (connection.entity): its present value, what each run captured, and the last changes made by hand. Exits 1
    when a state file cannot be read.
    """
    from pz_engine.app.state import show_key, show_state

    verbosity = options.verbosity_of(quiet, verbose)
    if key is None:
        overview = show_state(project_dir)
        reporting.print_notes(terminal, overview.notes, verbosity)
        return _print_overview(terminal, overview)
    history = show_key(project_dir, key)
    reporting.print_notes(terminal, history.notes, verbosity)
    return _print_key(terminal, key, history)


def edit_options(command: options.Command) -> options.Command:
    """Add the options of every change."""
    reason = click.option("--reason", metavar="TEXT", help="Why; kept in the log of manual changes.")
    dry_run = click.option("--dry-run", is_flag=True, help="Only show what would change.")
    yes = click.option("--yes", is_flag=True, help="Do not ask.")
    return options.project_option(options.verbosity_options(reason(dry_run(yes(command)))))


@command.command("rollback")
@click.argument("key", required=False, metavar="KEY")
@click.option("--to-run", metavar="ID", help="The run whose captured value is wanted.")
@edit_options
@click.pass_obj
def rollback(terminal: Terminal, /, key: str | None, to_run: str | None, **chosen: Any) -> int:
    """Go back to the value that a run captured.

    Backward only; the next run reads everything after that value again.
    """
    return _edit(terminal, "rollback", key, to_run=to_run, **chosen)


@command.command("set")
@click.argument("key", required=False, metavar="KEY")
@click.option("--value", metavar="VALUE", help="The new value, spelled as it is stored.")
@edit_options
@click.pass_obj
def set_value(terminal: Terminal, /, key: str | None, value: str | None, **chosen: Any) -> int:
    """Set a stored watermark to a value, in either direction."""
    return _edit(terminal, "set", key, value=value, **chosen)


@command.command("clear")
@click.argument("key", required=False, metavar="KEY")
@edit_options
@click.pass_obj
def clear(terminal: Terminal, /, key: str | None, **chosen: Any) -> int:
    """Forget a watermark; the next run reads the entity in full."""
    return _edit(terminal, "clear", key, **chosen)


def _edit(
    terminal: Terminal,
    action: Literal["rollback", "set", "clear"],
    key: str | None,
    *,
    project_dir: Path,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    quiet: bool,
    verbose: int,
    value: str | None = None,
    to_run: str | None = None,
) -> int:
    from pz_engine.app.state_edits import EditRequest, StateUnreadableError, plan_edit

    verbosity = options.verbosity_of(quiet, verbose)
    try:
        planned = plan_edit(project_dir, EditRequest(action, key, value, to_run, reason))
    except StateUnreadableError as error:
        return _unreadable(terminal, "watermarks", error.backend)
    try:
        terminal.out(f"{planned.key}: {action} {planned.before.cursor}")
        terminal.out(f"  from {planned.before.value} (run {planned.before.run_id})")
        terminal.out(f"  to   {planned.after.value if planned.after is not None else 'nothing'}")
        reporting.print_notes(terminal, planned.notes, verbosity)
        terminal.out(planned.effect)
        if dry_run:
            terminal.out("nothing was changed")
            return ExitCode.OK
        return ExitCode.OK if not yes and not _agrees(terminal) else _apply(terminal, planned)
    finally:
        planned.close()


def _agrees(terminal: Terminal) -> bool:
    """Ask; anything but yes changes nothing.

    Raises:
        PzStateError: `PZ0516`, there is nobody to ask.
    """
    answer = terminal.ask("proceed? [y/N]")
    if answer is None:
        raise PzStateError("PZ0516", "there is no terminal to ask on", hint="add --yes")
    is_yes = answer.strip().lower() in {"y", "yes"}
    if not is_yes:
        terminal.out("nothing was changed")
    return is_yes


def _apply(terminal: Terminal, planned: PlannedEdit) -> ExitCode:
    from pz_engine.app.state_edits import apply_edit

    applied = apply_edit(planned)
    terminal.out("done")
    if applied.unwritten_audit_line is None:
        return ExitCode.OK
    terminal.err(f"error: the change was made but could not be logged: {applied.audit_problem}")
    terminal.err(f"append this line to .pz/state/audit.jsonl: {applied.unwritten_audit_line}")
    return ExitCode.NODE_FAILURES


def _print_overview(terminal: Terminal, overview: StateOverview) -> int:
    terminal.out(f"state backend: {overview.backend} (from {overview.origin})")
    code = ExitCode.OK
    if overview.watermarks is None:
        code = _unreadable(terminal, "watermarks", overview.backend)
    else:
        rows = [(item.key, *_cells(item), item.entry.run_id) for item in overview.watermarks]
        _print_table(terminal, "watermarks", ("key", "cursor", "type", "value", "run"), rows)
    if overview.tokens is None:
        code = _unreadable(terminal, "sync tokens", overview.backend)
    else:
        tokens = [(key, entry.token, entry.run_id) for key, entry in overview.tokens]
        _print_table(terminal, "sync tokens", ("key", "token", "run"), tokens)
    return code


def _print_key(terminal: Terminal, key: str, history: KeyHistory) -> int:
    terminal.out(f"state backend: {history.backend} (from {history.origin})")
    if history.current is None:
        return _unreadable(terminal, "watermarks", history.backend)
    cursor, kind, value = _cells(history.current)
    terminal.out(f"{key}: {cursor} {kind} {value} (run {history.current.entry.run_id})")
    if history.captured.is_ambiguous:
        terminal.out("history: none, because two entities of one run could have this key")
    else:
        runs = [(run.run_id, run.status.value, run.cursor, run.value) for run in history.captured.runs]
        _print_table(terminal, "history", ("run", "status", "cursor", "captured"), runs)
    changes = [
        (change.at, change.action, change.before or "-", change.after or "-", change.reason or "-")
        for change in history.changes
    ]
    _print_table(terminal, "manual changes", ("at", "action", "from", "to", "reason"), changes)
    return ExitCode.OK


def _cells(item: StoredWatermark) -> tuple[str, str, str]:
    flag = "" if item.health == "ok" else f" [{item.health}]"
    return item.entry.cursor, item.entry.type, f"{item.entry.value}{flag}"


def _print_table(terminal: Terminal, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        terminal.out(f"{title}: none")
        return
    terminal.out(f"{title}:")
    for line in table_lines(header, rows):
        terminal.out(f"  {line}")


def _unreadable(terminal: Terminal, what: str, backend: str) -> ExitCode:
    place = f"{_FILES[what]}, or delete it" if backend == "local" else "the entry on the state server"
    problem = Diagnostic("PZ0518", f"the stored {what} cannot be read", hint=f"correct {place}")
    reporting.print_problems(terminal, [problem])
    return ExitCode.NODE_FAILURES
