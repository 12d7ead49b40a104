"""The `pz` command: finds a verb by its name, turns every outcome into an exit code.

A verb's module is imported when the verb is called, so that asking for help loads nothing heavy.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from pz_engine import __version__
from pz_engine.base.near_miss import did_you_mean
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render.terminal import Terminal

VERBS: Final = {
    "init": "Start a project from a template.",
    "validate": "Check a project without running it.",
    "compile": "Render the SQL and write the graph.",
    "plan": "Show which data path each node takes.",
    "run": "Run flows end to end.",
    "retry": "Run again what failed or was skipped in the latest run.",
    "test": "Run checks and what they need; write to no sink.",
    "ls": "List nodes in the order they run.",
    "runs": "List past runs, newest first.",
    "history": "Show what happened in a run, from its journal.",
    "clean": "Free what past runs left on disk.",
    "state": "Show and change what runs remember.",
    "schema": "Accept observed schemas; describe project files to editors.",
}
"""Every verb with its one-line summary."""

CONTEXT: Final = {"help_option_names": ["-h", "--help"], "terminal_width": 100, "max_content_width": 100}


class VerbGroup(click.Group):
    """Loads verbs by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the verbs in reading order."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - same
        """Import one verb."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"pz_engine.cli.verbs.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - same
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or say which one was probably meant."""
        name = args[0] if args else ""
        if name and name not in VERBS and not name.startswith("-"):
            hint = did_you_mean(name, VERBS) or "see 'pz --help'"
            raise click.UsageError(f"there is no verb '{name}' — {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=VerbGroup, context_settings=CONTEXT, subcommand_metavar="VERB [ARGUMENTS]...")
@click.version_option(__version__, prog_name="pz", message="%(prog)s %(version)s")
def group() -> None:
    """Run batch SQL pipelines between connections, on DuckDB.

    A project is a folder with project.yml, connections.yml and pipelines/*.sql. Exit codes: 0 success, 1 a node or
    check failed, 2 the project or the command line was refused, 3 an unexpected failure or a cancelled run.
    """


def main() -> int:
    """Run the command line of this process; the entry point of `pz`."""
    terminal = Terminal(sys.stdout, sys.stderr, os.environ)
    code = run(sys.argv[1:], terminal)
    try:
        is_written = terminal.close()
    except KeyboardInterrupt:
        os._exit(ExitCode.FATAL)
    if not is_written:
        os._exit(code)
    return code if terminal.lost_output is None else _lost_output(terminal.lost_output, terminal, code)


def run(arguments: Sequence[str], terminal: Terminal) -> int:
    """Run one command line and return its exit code; nothing escapes as an exception."""
    try:
        result: Any = group.main(args=list(arguments), prog_name="pz", standalone_mode=False, obj=terminal)
    except click.exceptions.NoArgsIsHelpError as error:
        terminal.err(error.format_message())
        return ExitCode.USAGE
    except click.UsageError as error:
        return _usage(error, terminal)
    except (click.Abort, KeyboardInterrupt):
        terminal.err("cancelled")
        return ExitCode.FATAL
    except BrokenPipeError:
        return ExitCode.OK
    except Exception as error:
        return _failure(error, terminal)
    return result if isinstance(result, int) else ExitCode.OK


def _lost_output(error: OSError, terminal: Terminal, code: int) -> int:
    """Say that results were lost; a run that succeeded has done so whatever became of its lines."""
    from pz_engine.errors.unexpected import diagnose

    is_run = terminal.drain_seconds is not None
    reason = f"standard output could not be written: {error.strerror}"
    terminal.err(f"warning: {reason}" if is_run else f"error {diagnose(error).code}: {reason}")
    terminal.close()
    return code if is_run or code else ExitCode.FATAL


def _usage(error: click.UsageError, terminal: Terminal) -> int:
    if error.ctx is not None:
        terminal.err(error.ctx.get_usage())
    terminal.err(f"error: {error.format_message()}")
    return ExitCode.USAGE


def _failure(error: Exception, terminal: Terminal) -> int:
    from pz_engine.cli.reporting import print_problems, print_trace, problems_of
    from pz_engine.errors.exceptions import PzError
    from pz_engine.errors.unexpected import diagnose

    problems = problems_of(error) if isinstance(error, PzError) else None
    print_problems(terminal, problems if problems is not None else (diagnose(error),))
    if problems is None:
        print_trace(terminal, error)
    return ExitCode.FATAL if problems is None else ExitCode.USAGE
