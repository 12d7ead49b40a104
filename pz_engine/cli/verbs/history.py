"""`pz history`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pz_engine.base.stable_json import compact_json
from pz_engine.cli import options, reporting
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render.history import history_lines, journal_rows, record_line
from pz_engine.cli.render.tables import table_lines
from pz_engine.cli.render.terminal import Terminal

if TYPE_CHECKING:
    from pz_engine.events.journal_reader import JournalEnds

_HEADER = ("run", "mode", "status", "started", "nodes")
_TAIL_NOTES = {
    "stopped": "the run seems to have died: its process is gone, or it has reported nothing for ten minutes",
    "replaced": "the journal was replaced or cut while it was followed",
}


@click.command("history")
@click.argument("run_id", required=False, metavar="[RUN_ID]")
@options.project_option
@click.option("--follow", is_flag=True, help="Print events as they happen, until the run ends.")
@click.option("--json", "is_json", is_flag=True, help="The same as JSON, one object per line.")
@options.verbosity_options
@click.pass_obj
def command(
    terminal: Terminal,
    run_id: str | None,
    project_dir: Path,
    follow: bool,
    is_json: bool,
    quiet: bool,
    verbose: int,
) -> int:
    """Show what happened in a run, from its journal.

    Without RUN_ID: the runs that left a journal, newest first. A number nobody reported is shown as missing, and a total
    over missing numbers as "at least". Works from project.yml alone.
    """
    from pz_engine.app.history import follow_run, list_journals, show_run

    verbosity = options.verbosity_of(quiet, verbose)
    if follow and run_id is None:
        raise click.UsageError("--follow needs a RUN_ID")
    if run_id is None:
        return _print_journals(terminal, list_journals(project_dir), is_json=is_json)
    if follow:
        tail = follow_run(project_dir, run_id, stop=_sleep)
        for record in tail.records():
            terminal.out(compact_json(record) if is_json else record_line(record))
        if tail.end in _TAIL_NOTES:
            reporting.print_notes(terminal, [_TAIL_NOTES[tail.end]], verbosity, is_json=is_json)
        return ExitCode.OK
    history = show_run(project_dir, run_id)
    if is_json:
        from pz_engine.events.run_stats import summary_json

        terminal.out(compact_json(summary_json(history.summary)))
    else:
        for line in history_lines(history.summary):
            terminal.out(line)
    notes = []
    if history.journal_problem is not None:
        notes.append(f"the journal of this run {history.journal_problem}; this is what its results hold")
    if history.unreadable:
        notes.append(f"{history.unreadable} journal line(s) could not be read")
    reporting.print_notes(terminal, notes, verbosity, is_json=is_json)
    return ExitCode.OK


def _print_journals(terminal: Terminal, journals: Sequence[JournalEnds], *, is_json: bool) -> int:
    if is_json:
        for journal in journals:
            terminal.out(
                compact_json(
                    {
                        "runId": journal.run_id,
                        "mode": journal.mode,
                        "status": journal.status,
                        "startedAt": journal.started_at,
                        "finishedAt": journal.finished_at,
                        "nodes": journal.nodes,
                    }
                )
            )
    elif not journals:
        terminal.out("no journals")
    else:
        for line in table_lines(_HEADER, journal_rows(journals)):
            terminal.out(line)
    return ExitCode.OK


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False
