"""`pz validate`."""

from __future__ import annotations

from pathlib import Path

import click

from pz_engine.cli import options, reporting
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render.terminal import Terminal


@click.command("validate")
@options.project_option
@options.vars_option
@click.option(
    "--connect", is_flag=True, help="Also reach every connection, and compare contracts with what is really there."
)
@options.lock_option
@options.log_format_option("one object (ok, errors, warnings)")
@options.verbosity_options
@click.pass_obj
def command(
    terminal: Terminal,
    project_dir: Path,
    vars_text: str | None,
    connect: bool,
    skip_lock_check: bool,
    log_format: str,
    quiet: bool,
    verbose: int,
) -> int:
    """Check a project without running it.

    Reads every file, compiles the graph, checks connector options, and binds each pipeline's SQL against empty tables.
    Nothing is written and no network is used, unless --connect asks for it: then every connection is probed, schemas
    are compared with contracts, destinations are asked whether they may be written, and schemas without a contract are
    stored in .pz/target/schemas.json. All problems are printed together; any of them exits 2.
    """
    from pz_engine.app.arguments import parse_vars
    from pz_engine.app.validate import validate_project

    verbosity = options.verbosity_of(quiet, verbose)
    is_json = log_format == "json"
    reporting.warn_lock_check(terminal, skipped=skip_lock_check)
    with reporting.reported_as(terminal, is_json=is_json) as outcome:
        found = validate_project(project_dir, vars=parse_vars(vars_text), connect=connect)
        outcome.code = reporting.report(
            terminal,
            problems=found.problems,
            warnings=found.warnings,
            notes=found.notes,
            verbosity=verbosity,
            is_json=is_json,
        )
        if outcome.code is ExitCode.OK:
            write = terminal.err if is_json else terminal.out
            write(f"validation passed ({found.pipelines} pipelines, {found.connections} connections checked)")
    return outcome.code
