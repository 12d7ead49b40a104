"""`pz run`."""

from __future__ import annotations

from pathlib import Path

import click

from pz_engine.cli import options, reporting
from pz_engine.cli.render.terminal import Terminal

_DEFAULT_PASSES = 100


@click.command("run")
@options.names_argument
@options.project_option
@options.vars_option
@options.select_option
@options.all_option
@options.full_refresh_option
@options.fail_fast_option
@click.option("--until-caught-up", is_flag=True, help="Run again until every windowed source has reached its stop.")
@click.option(
    "--max-runs", type=click.IntRange(min=1), metavar="N", help="With --until-caught-up: at most N runs. Default: 100."
)
@options.lock_option
@options.state_url_option
@options.log_format_option("one event per line")
@options.verbosity_options
@click.pass_obj
def command(
    terminal: Terminal,
    names: tuple[str, ...],
    project_dir: Path,
    vars_text: str | None,
    select: str | None,
    everything: bool,
    full_refresh: bool,
    fail_fast: bool,
    until_caught_up: bool,
    max_runs: int | None,
    skip_lock_check: bool,
    state_url: str | None,
    log_format: str,
    quiet: bool,
    verbose: int,
) -> int:
    """Run flows end to end.

    NAMEs are exact node names; each stands for itself, what it needs and what needs it. A project with two or more
    independent flows needs a NAME, --select or --all. Results are in .pz/runs/RUN_ID/run_results.json.
    """
    from pz_engine.app.arguments import parse_vars
    from pz_engine.app.host import Selection
    from pz_engine.cli.run_view import RunOptions, run_and_show, run_until_caught_up

    if max_runs is not None and not until_caught_up:
        raise click.UsageError("--max-runs needs --until-caught-up")
    reporting.warn_lock_check(terminal, skipped=skip_lock_check)
    chosen = RunOptions(
        project_dir=project_dir,
        vars=parse_vars(vars_text),
        mode="run",
        selection=Selection(names, select or None, everything),
        verbosity=options.verbosity_of(quiet, verbose),
        is_json=log_format == "json",
        full_refresh=full_refresh,
        fail_fast=fail_fast,
        check_lock=not skip_lock_check,
        state_url=state_url,
    )
    if until_caught_up:
        return run_until_caught_up(terminal, chosen, max_runs or _DEFAULT_PASSES)
    return run_and_show(terminal, chosen)
