"""`pz ls`."""

from __future__ import annotations

from pathlib import Path

import click

from pz_engine.cli import options, reporting
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render.tables import table_lines
from pz_engine.cli.render.terminal import Terminal


@click.command("ls")
@options.project_option
@options.vars_option
@options.select_option
@options.log_format_option("one object (ok, errors, warnings, nodes)")
@options.verbosity_options
@click.pass_obj
def command(
    terminal: Terminal,
    project_dir: Path,
    vars_text: str | None,
    select: str | None,
    log_format: str,
    quiet: bool,
    verbose: int,
) -> int:
    """List nodes in the order they run.

    Columns: kind, name, tags. Nothing is written.
    """
    from pz_engine.app.arguments import parse_vars
    from pz_engine.app.listing import list_nodes

    verbosity = options.verbosity_of(quiet, verbose)
    is_json = log_format == "json"
    with reporting.reported_as(terminal, is_json=is_json) as outcome:
        found = list_nodes(project_dir, vars=parse_vars(vars_text), expression=select or None)
        outcome.code = reporting.report(
            terminal,
            problems=found.problems,
            warnings=found.warnings,
            notes=found.notes,
            verbosity=verbosity,
            is_json=is_json,
            extra={"nodes": list(found.documents)},
        )
        if outcome.code is ExitCode.OK and not is_json:
            rows = [(node.kind, node.name, ",".join(node.tags) or "-") for node in found.nodes]
            for line in table_lines(("kind", "name", "tags"), rows):
                terminal.out(line)
    return outcome.code
