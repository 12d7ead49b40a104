"""`pz clean`."""

from __future__ import annotations

from pathlib import Path

import click

from pz_engine.base.byte_sizes import format_byte_size
from pz_engine.cli import options
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render.console import QUIET
from pz_engine.cli.render.terminal import Terminal


@click.command("clean")
@options.project_option
@click.option("--keep-last", metavar="N", help="Leave the newest N runs alone; 0 takes every run. Default: 1.")
@click.option(
    "--older-than", metavar="DUR", help="Only runs that started longer ago, for example 7d; never the newest."
)
@click.option("--purge", is_flag=True, help="Delete whole run folders, results included.")
@click.option("--dry-run", is_flag=True, help="Only tell what would be deleted.")
@options.verbosity_options
@click.pass_obj
def command(
    terminal: Terminal,
    project_dir: Path,
    keep_last: str | None,
    older_than: str | None,
    purge: bool,
    dry_run: bool,
    quiet: bool,
    verbose: int,
) -> int:
    """Free what past runs left on disk.

    Deletes the staging databases of past runs, and work folders that no process holds. A live run is left alone. State,
    artifacts and journals are never touched. Exits 1 when something could not be deleted.
    """
    from pz_engine.app.clean import clean_runs

    verbosity = options.verbosity_of(quiet, verbose)
    report = clean_runs(project_dir, keep_last=keep_last, older_than=older_than, purge=purge, dry_run=dry_run)
    noun = ("run" if purge else "staging database") + ("" if len(report.swept) == 1 else "s")
    verb, freeing = ("would clean", "would free") if dry_run else ("cleaned", "freed")
    if verbosity > QUIET:
        for run_id in report.swept:
            terminal.out(f"{verb} {run_id}")
        for run_id in report.live:
            terminal.out(f"skipped {run_id}, which is in flight")
    for failure in report.failures:
        terminal.err(f"warning: {failure}")
    terminal.out(
        f"{verb} {len(report.swept)} {noun}, kept {report.kept}, skipped {len(report.live)}, "
        f"{freeing} {format_byte_size(report.bytes_freed)}"
    )
    if purge and not dry_run and report.swept and not report.kept and not report.live and verbosity > QUIET:
        terminal.out("no run is left, so there is nothing that a retry could go on from")
    return ExitCode.NODE_FAILURES if report.failures else ExitCode.OK
