"""`pz runs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pz_engine.base.clock import format_instant
from pz_engine.base.stable_json import compact_json
from pz_engine.cli import options
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render.tables import table_lines
from pz_engine.cli.render.terminal import Terminal

if TYPE_CHECKING:
    from pz_engine.app.runs import RunRow

_HEADER = ("run", "status", "started", "duration", "ok", "failed", "skipped", "provenance")


@click.command("runs")
@options.project_option
@click.option("--limit", type=int, metavar="N", help="Only the newest N runs.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object per run.")
@options.verbosity_options
@click.pass_obj
def command(terminal: Terminal, project_dir: Path, limit: int | None, is_json: bool, quiet: bool, verbose: int) -> int:
    """List past runs, newest first.

    Works from project.yml alone, so a broken pipeline never stands in the way. A run without an end lives, or died.
    """
    from pz_engine.app.runs import show_runs

    options.verbosity_of(quiet, verbose)
    rows = show_runs(project_dir, limit=limit)
    if is_json:
        for row in rows:
            terminal.out(compact_json(_document(row)))
    elif not rows:
        terminal.out("no runs")
    else:
        for line in table_lines(_HEADER, [_cells(row) for row in rows]):
            terminal.out(line)
    return ExitCode.OK


def _document(row: RunRow) -> dict[str, Any]:
    return {
        "runId": row.run_id,
        "status": row.status.value,
        "startedAt": format_instant(row.started_at),
        "finishedAt": format_instant(row.finished_at) if row.finished_at is not None else None,
        "durationMs": row.duration_ms,
        "succeeded": row.succeeded,
        "failed": row.failed,
        "skipped": row.skipped,
        "reused": row.reused,
        "carriedForward": row.carried_forward,
    }


def _cells(row: RunRow) -> tuple[str, ...]:
    counts = ((row.reused, "reused"), (row.carried_forward, "carried forward"))
    return (
        row.run_id,
        row.status.value,
        format_instant(row.started_at),
        f"{row.duration_ms}ms" if row.duration_ms is not None else "-",
        str(row.succeeded),
        str(row.failed),
        str(row.skipped),
        ", ".join(f"{count} {word}" for count, word in counts if count) or "-",
    )
