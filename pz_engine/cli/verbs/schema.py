"""`pz schema`."""

from __future__ import annotations

from pathlib import Path

import click

from pz_engine.app.schema import SCHEMA_NAMES, schema_path, schema_text
from pz_engine.cli import options, reporting
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render.console import column_change
from pz_engine.cli.render.terminal import Terminal


@click.group("schema", subcommand_metavar="ACTION [ARGUMENTS]...")
def command() -> None:
    """Accept observed schemas; describe project files to editors."""


@command.command("json")
@click.argument("kind", type=click.Choice(SCHEMA_NAMES))
@click.option("--path", "wants_path", is_flag=True, help="Print where the schema is installed instead.")
@click.pass_obj
def json(terminal: Terminal, kind: str, *, wants_path: bool) -> int:
    """Print the JSON Schema of a kind of project file.

    It needs no project. An editor takes the path that --path prints: write it into the first line of the file, as
    "# yaml-language-server: $schema=PATH".
    """
    terminal.out(str(schema_path(kind)) if wants_path else schema_text(kind).rstrip("\n"))
    return ExitCode.OK


@command.command("accept")
@click.argument("targets", nargs=-1, metavar="[CONNECTION.ENTITY]...")
@options.project_option
@options.vars_option
@options.verbosity_options
@click.pass_obj
def accept(
    terminal: Terminal, targets: tuple[str, ...], project_dir: Path, vars_text: str | None, quiet: bool, verbose: int
) -> int:
    """Make the schema that the latest run observed the accepted one.

    By default of every entity that differs. No connection is opened. See on_source_drift in project.yml.
    """
    from pz_engine.app.arguments import parse_vars
    from pz_engine.app.schema_accept import accept_schemas

    verbosity = options.verbosity_of(quiet, verbose)
    report = accept_schemas(project_dir, targets, vars=parse_vars(vars_text))
    reporting.print_notes(terminal, report.notes, verbosity)
    changes = 0
    for entity in report.accepted:
        changes += len(entity.changes)
        for change in entity.changes:
            terminal.out(f"{entity.key}: {column_change(change)}")
    if not report.accepted:
        terminal.out("nothing to accept")
    else:
        terminal.out(f"accepted {changes} change(s) of {len(report.accepted)} source(s) from run {report.run_id}")
    return ExitCode.OK
