"""`pz state`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pz_engine.cli import options, reporting
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render.tables import table_lines
from pz_engine.cli.render.terminal import Terminal

if TYPE_CHECKING:
    from pz_engine.app.state import KeyHistory, StateOverview, StoredWatermark


@click.group("state", subcommand_metavar="ACTION [ARGUMENTS]...")
def command() -> None:
    """Show what runs remember.

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


def _print_overview(terminal: Terminal, overview: StateOverview) -> int:
    terminal.out(f"state backend: {overview.backend} (from {overview.origin})")
    code = ExitCode.OK
    if overview.watermarks is None:
        code = _unreadable(terminal, "watermarks")
    else:
        rows = [(item.key, *_cells(item), item.entry.run_id) for item in overview.watermarks]
        _print_table(terminal, "watermarks", ("key", "cursor", "type", "value", "run"), rows)
    if overview.tokens is None:
        code = _unreadable(terminal, "sync tokens")
    else:
        tokens = [(key, entry.token, entry.run_id) for key, entry in overview.tokens]
        _print_table(terminal, "sync tokens", ("key", "token", "run"), tokens)
    return code


def _print_key(terminal: Terminal, key: str, history: KeyHistory) -> int:
    terminal.out(f"state backend: {history.backend} (from {history.origin})")
    if history.current is None:
        return _unreadable(terminal, "watermarks")
    cursor, kind, value = _cells(history.current)
    terminal.out(f"{key}: {cursor} {kind} {value} (run {history.current.entry.run_id})")
    if history.is_ambiguous:
        terminal.out("history: none, because two entities of one run could have this key")
    else:
        runs = [(run.run_id, run.status.value, run.cursor, run.value) for run in history.runs]
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


def _unreadable(terminal: Terminal, what: str) -> ExitCode:
    terminal.err(f"error: the stored {what} cannot be read — hint: correct the file below .pz/state, or delete it")
    return ExitCode.NODE_FAILURES
