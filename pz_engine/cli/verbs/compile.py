"""`pz compile`."""

from __future__ import annotations

from pathlib import Path

import click

from pz_engine.cli import options, reporting
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render.terminal import Terminal


@click.command("compile")
@options.project_option
@options.vars_option
@options.select_option
@click.option("--lineage", "with_lineage", is_flag=True, help="Also write which columns feed each pipeline's columns.")
@options.log_format_option("one object (ok, errors, warnings, nodes)")
@options.verbosity_options
@click.pass_obj
def command(
    terminal: Terminal,
    project_dir: Path,
    vars_text: str | None,
    select: str | None,
    with_lineage: bool,
    log_format: str,
    quiet: bool,
    verbose: int,
) -> int:
    """Render the SQL and write the graph.

    Writes .pz/target/manifest.json and .pz/target/compiled/*.sql, with --lineage also .pz/target/lineage.json.
    """
    from pz_engine.app.arguments import parse_vars
    from pz_engine.app.compile import compile_project, manifest_nodes, write_compile_artifacts, write_lineage
    from pz_engine.app.selecting import select_nodes

    verbosity = options.verbosity_of(quiet, verbose)
    is_json = log_format == "json"
    with reporting.reported_as(terminal, is_json=is_json) as outcome:
        compiled = compile_project(project_dir, vars=parse_vars(vars_text))
        selected = frozenset() if compiled.problems else select_nodes(compiled, select or None)
        target = None if compiled.problems else write_compile_artifacts(compiled, selected)
        if with_lineage and not compiled.problems:
            write_lineage(compiled, selected)
        outcome.code = reporting.report(
            terminal,
            problems=compiled.problems,
            warnings=compiled.warnings,
            notes=compiled.notes,
            verbosity=verbosity,
            is_json=is_json,
            extra={} if compiled.problems else {"nodes": manifest_nodes(compiled, selected)},
        )
        if outcome.code is ExitCode.OK:
            write = terminal.err if is_json else terminal.out
            write(f"Compiled {len(selected)} nodes -> {target}")
    return outcome.code
