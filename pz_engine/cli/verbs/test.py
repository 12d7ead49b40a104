"""`pz test`."""

from __future__ import annotations

from pathlib import Path

import click

from pz_engine.cli import options, reporting
from pz_engine.cli.render.terminal import Terminal


@click.command("test")
@options.project_option
@options.vars_option
@options.select_option
@options.lock_option
@options.state_url_option
@options.log_format_option("one event per line")
@options.verbosity_options
@click.pass_obj
def command(
    terminal: Terminal,
    project_dir: Path,
    vars_text: str | None,
    select: str | None,
    skip_lock_check: bool,
    state_url: str | None,
    log_format: str,
    quiet: bool,
    verbose: int,
) -> int:
    """Run checks and what they need; write to no sink.

    Checks of pz run are alarms that let sinks of the same run write. To gate on them: pz test && pz run.
    """
    from pz_engine.app.arguments import parse_vars
    from pz_engine.app.host import Selection
    from pz_engine.cli.run_view import RunOptions, run_and_show

    reporting.warn_lock_check(terminal, skipped=skip_lock_check)
    return run_and_show(
        terminal,
        RunOptions(
            project_dir=project_dir,
            vars=parse_vars(vars_text),
            mode="test",
            selection=Selection(expression=select or None, everything=not select),
            verbosity=options.verbosity_of(quiet, verbose),
            is_json=log_format == "json",
            check_lock=not skip_lock_check,
            state_url=state_url,
        ),
    )
