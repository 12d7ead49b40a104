"""`pz init`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from pz_engine.cli import options
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render.console import QUIET
from pz_engine.cli.render.tables import table_lines
from pz_engine.cli.render.terminal import Terminal


@click.command("init")
@click.argument("name", required=False, metavar="[NAME]")
@click.option("-t", "--template", "template_id", metavar="ID", help="Template to start from. Default: minimal.")
@click.option("--list-templates", is_flag=True, help="List the templates and what each needs.")
@options.verbosity_options
@click.pass_obj
def command(
    terminal: Terminal, name: str | None, template_id: str | None, list_templates: bool, quiet: bool, verbose: int
) -> int:
    """Start a project from a template.

    NAME is the folder to make, or . for the current one; it must be new or empty.
    """
    from pz_engine.app.scaffold import CATALOGUE, scaffold
    from pz_engine.errors.exceptions import PzConfigError

    verbosity = options.verbosity_of(quiet, verbose)
    if (name is None) != list_templates or (list_templates and template_id is not None):
        raise PzConfigError(
            "PZ0132", "give either a name or --list-templates", hint="pz init my_project --template sample"
        )
    if name is None:
        rows = [(template.id, template.summary, template.needs) for template in CATALOGUE]
        for line in table_lines(("template", "contents", "needs"), rows):
            terminal.out(line)
        return ExitCode.OK
    made = scaffold(Path(name), template_id)
    if made.project_name != made.wanted_name and verbosity > QUIET:
        terminal.err(
            f"warning: the project is called '{made.project_name}', because '{made.wanted_name}' is no project name"
            " — change name: in project.yml if you like"
        )
    terminal.out(f"created '{made.template.id}' project '{made.project_name}' in {name} ({len(made.files)} files)")
    steps = list(made.template.next_steps)
    if made.directory != Path.cwd():
        steps.insert(0, f"cd {shlex.quote(name)}")
    terminal.out(f"next: {' && '.join(steps)}")
    return ExitCode.OK
