"""Options that several verbs share, spelled and described once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

project_option = click.option(
    "--project",
    "project_dir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=".",
    help="Project directory; relative paths in its files start there. Default: the current one.",
)
vars_option = click.option(
    "--vars", "vars_text", metavar="JSON", help="JSON object laid over vars: of project.yml for this call."
)
select_option = click.option(
    "--select",
    metavar="EXPR",
    help="Nodes to take: name, name+, +name, tag:x, source:conn.*; a blank unites, a comma intersects.",
)
all_option = click.option("--all", "everything", is_flag=True, help="Take the whole project.")
names_argument = click.argument("names", nargs=-1, metavar="[NAME]...")
lock_option = click.option(
    "--no-lock-check",
    "skip_lock_check",
    is_flag=True,
    help="Do not compare pz.lock.json with what is installed.",
)
state_url_option = click.option(
    "--state-url",
    metavar="URL",
    help="Keep state behind this endpoint for this call; a token comes from PZ_STATE_TOKEN.",
)
full_refresh_option = click.option(
    "--full-refresh", is_flag=True, help="Read in full: stored watermarks are ignored, then stored anew."
)
fail_fast_option = click.option("--fail-fast", is_flag=True, help="Cancel everything else at the first failed node.")


def log_format_option(what: str) -> Callable[[Command], Command]:
    """Return the option for text or JSON; `what` says what JSON consists of."""
    return click.option(
        "--log-format",
        type=click.Choice(["text", "json"], case_sensitive=False),
        default="text",
        show_default=True,
        help=f"json writes {what} to standard output and everything else to standard error.",
    )


def verbosity_options(command: Command) -> Command:
    """Add -q and -v."""
    quiet = click.option("-q", "--quiet", is_flag=True, help="Only errors, failures and the summary.")
    verbose = click.option(
        "-v", "--verbose", count=True, help="Also starts and progress; twice: also what connectors say."
    )
    return quiet(verbose(command))


def verbosity_of(quiet: bool, verbose: int) -> int:
    """Return -1 for quiet, else the number of -v, at most 2.

    Raises:
        click.UsageError: both were given.
    """
    if quiet and verbose:
        raise click.UsageError("-q and -v exclude each other")
    return -1 if quiet else min(verbose, 2)
