"""`pz plan`."""

from __future__ import annotations

from pathlib import Path

import click

from pz_engine.cli import options, reporting
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render.tables import table_lines
from pz_engine.cli.render.terminal import Terminal


@click.command("plan")
@options.names_argument
@options.project_option
@options.vars_option
@options.select_option
@options.all_option
@options.lock_option
@options.log_format_option("one object (ok, errors, warnings, plan)")
@options.verbosity_options
@click.pass_obj
def command(
    terminal: Terminal,
    names: tuple[str, ...],
    project_dir: Path,
    vars_text: str | None,
    select: str | None,
    everything: bool,
    skip_lock_check: bool,
    log_format: str,
    quiet: bool,
    verbose: int,
) -> int:
    """Show which data path each node takes.

    NAMEs are exact node names; each stands for itself, what it needs and what needs it. Prints the table, the memory
    budget and every declared policy, and writes .pz/target/plan.json for the whole project.
    """
    from pz_engine.app.arguments import parse_vars
    from pz_engine.app.host import Selection
    from pz_engine.app.plan import plan_project

    verbosity = options.verbosity_of(quiet, verbose)
    is_json = log_format == "json"
    reporting.warn_lock_check(terminal, skipped=skip_lock_check)
    with reporting.reported_as(terminal, is_json=is_json) as outcome:
        selection = Selection(names, select or None, everything)
        found = plan_project(project_dir, vars=parse_vars(vars_text), selection=selection)
        outcome.code = reporting.report(
            terminal,
            problems=found.problems,
            warnings=found.warnings,
            notes=found.notes,
            verbosity=verbosity,
            is_json=is_json,
            extra={"plan": found.plan},
        )
        if outcome.code is ExitCode.OK and not is_json:
            rows = [
                (row.strategy, row.node, f"{row.reason} [pushed: {row.pushed}]" if row.pushed else row.reason)
                for row in found.rows
            ]
            for line in table_lines(("strategy", "node", "reason"), rows, minimum=(13, 24)):
                terminal.out(line)
            for line in (*found.budget_lines, *found.policy_lines):
                terminal.out(line)
    return outcome.code
