"""`pz retry`."""

from __future__ import annotations

from pathlib import Path

import click

from pz_engine.cli import options, reporting
from pz_engine.cli.render.terminal import Terminal


@click.command("retry")
@options.project_option
@options.full_refresh_option
@options.fail_fast_option
@options.lock_option
@options.state_url_option
@options.log_format_option("one event per line")
@options.verbosity_options
@click.pass_obj
def command(
    terminal: Terminal,
    project_dir: Path,
    full_refresh: bool,
    fail_fast: bool,
    skip_lock_check: bool,
    state_url: str | None,
    log_format: str,
    quiet: bool,
    verbose: int,
) -> int:
    """Run again what failed or was skipped in the latest run.

    Takes no selection and no variables. Loads that succeeded are taken from that run, sinks that committed are carried
    forward, and pipelines and checks are computed anew, all by the project as it is now. A run that was interrupted or
    ended fatally is refused: pz run starts afresh.
    """
    from pz_engine.app.host import LATEST, Selection
    from pz_engine.cli.run_view import RunOptions, run_and_show

    reporting.warn_lock_check(terminal, skipped=skip_lock_check)
    return run_and_show(
        terminal,
        RunOptions(
            project_dir=project_dir,
            vars={},
            mode="run",
            selection=Selection(),
            verbosity=options.verbosity_of(quiet, verbose),
            is_json=log_format == "json",
            full_refresh=full_refresh,
            fail_fast=fail_fast,
            check_lock=not skip_lock_check,
            state_url=state_url,
            retry_from=LATEST,
        ),
    )
