"""`pz schema`."""

from __future__ import annotations

import click

from pz_engine.app.schema import SCHEMA_NAMES, schema_path, schema_text
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render.terminal import Terminal


@click.group("schema", subcommand_metavar="ACTION [ARGUMENTS]...")
def command() -> None:
    """Describe project files to editors."""


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
