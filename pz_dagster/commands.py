"""The `pz-dagster` command: what a deployment of a project needs beside Dagster's own commands."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import click
import dagster as dg

from pz_dagster import doctor as examination
from pz_dagster.errors import PzDefinitionError
from pz_dagster.project import PzProject
from pz_dagster.state_records import CopyUnavailableError
from pz_dagster.state_report import outcome_lines, state_findings, state_lines
from pz_dagster.state_restore import compare, reconcile
from pz_engine import PzConfigError, PzStateError, PzValidationError, __version__

CONTEXT = {"help_option_names": ["-h", "--help"], "terminal_width": 100, "max_content_width": 100}

_project_option = click.option(
    "--project",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    show_default="the working directory",
    help="Directory of the pz project.",
)
_vars_option = click.option(
    "--vars", "vars_text", metavar="JSON", help="What the definitions pass as vars; it is part of the snapshot."
)

_prefix_option = click.option(
    "--prefix", default="", metavar="A/B", help="The key_prefix of the translator's settings, its parts joined by /."
)


@click.group(context_settings=CONTEXT)
@click.version_option(__version__, prog_name="pz-dagster", message="%(prog)s %(version)s")
def group() -> None:
    """Prepare and examine deployments of pz projects in Dagster.

    Exit codes: 0 all is well, 1 something could be better, 2 the project or the command line was refused, 3 a file or the
    instance could not be used.
    """


@group.command()
@_project_option
@_vars_option
def prepare(directory: Path, vars_text: str | None) -> None:
    """Compile a project and write its snapshot, so that loading definitions compiles nothing.

    For image builds. No connection is opened and no secret is read. A project that does not compile leaves the last
    snapshot as it is.
    """
    project = _project(directory, vars_text)
    try:
        project.prepare()
    except PzDefinitionError as error:
        _refuse(str(problem) for problem in error.problems)
    except OSError as error:
        _fail(f"the snapshot cannot be written: {error.strerror}")
    click.echo(f"wrote {project.snapshot_path.relative_to(project.root)}")


@group.command()
@_project_option
@_vars_option
@_prefix_option
@click.option(
    "--pool", "pools", multiple=True, metavar="NAME", help="A pool of yours; by default those of the project's units."
)
def doctor(directory: Path, vars_text: str | None, pools: tuple[str, ...], prefix: str) -> None:
    """Look at versions, the instance in DAGSTER_HOME, pool limits, the snapshot and the copy of the state.

    Nothing is changed. Exits 1 when anything is not as it should be.
    """
    project = _project(directory, vars_text)
    prefixes = tuple(part for part in prefix.split("/") if part)
    findings = [*examination.version_findings(), *examination.snapshot_findings(project)]
    is_broken = any(finding.status == "problem" and finding.subject == "project" for finding in findings)
    findings.extend(
        _of_instance(
            pools or (() if is_broken else [f"pz_{unit.name}" for unit in project.units]),
            None if is_broken else project,
            prefixes,
        )
    )
    for finding in findings:
        click.echo(str(finding))
    if any(finding.status != "ok" for finding in findings):
        sys.exit(1)


@group.command()
@_project_option
@_vars_option
@_prefix_option
@click.option(
    "--reconcile",
    "is_reconciling",
    is_flag=True,
    help="Make both agree, by the rules of a run's start, and say what was done.",
)
def state(directory: Path, vars_text: str | None, prefix: str, is_reconciling: bool) -> None:
    """Show what the project remembers beside its copy in the instance in DAGSTER_HOME.

    Nothing is changed without --reconcile. Exits 1 when the two differ and nothing is done about it.
    """
    project, prefixes = _project(directory, vars_text), tuple(part for part in prefix.split("/") if part)
    if not os.environ.get("DAGSTER_HOME"):
        _refuse(["error: DAGSTER_HOME is not set — hint: set it to the directory of the instance that holds the copy"])
    with _instance() as instance:
        try:
            found = compare(instance, project, prefix=prefixes)
            done = reconcile(instance, project, prefix=prefixes) if is_reconciling else None
        except CopyUnavailableError as error:
            _fail(str(error.diagnostic))
        except (PzStateError, PzConfigError) as error:
            _refuse([str(error.diagnostic)])
        except PzValidationError as error:
            _refuse(str(problem) for problem in error.errors)
    for line in state_lines(found):
        click.echo(line)
    if done is not None:
        for line in outcome_lines(done):
            click.echo(line)
    elif any(each.decision.action != "none" for each in found):
        sys.exit(1)


def main() -> None:
    """Run the command."""
    group(prog_name="pz-dagster")


def _of_instance(
    pools: Sequence[str], project: PzProject | None, prefixes: tuple[str, ...]
) -> Iterator[examination.Finding]:
    if not os.environ.get("DAGSTER_HOME"):
        yield examination.Finding(
            "advice", "instance", "DAGSTER_HOME is not set, so nothing outlives a command", "set it to a directory"
        )
        return
    with suppress(OSError):
        text = (Path(os.environ["DAGSTER_HOME"]) / "dagster.yaml").read_text(encoding="utf-8", errors="replace")
        yield from examination.storage_findings(text)
    with _instance() as instance:
        yield from examination.instance_findings(instance)
        yield from examination.pool_findings(instance, pools)
        if project is not None:
            yield from state_findings(instance, project, prefixes)


def _instance() -> dg.DagsterInstance:
    """Open the instance; what is wrong with it is said without its configuration."""
    try:
        return dg.DagsterInstance.get()
    except Exception as error:
        _fail(f"the Dagster instance in DAGSTER_HOME cannot be opened ({type(error).__name__}); see dagster.yaml")


def _project(directory: Path, vars_text: str | None) -> PzProject:
    if not (directory / "project.yml").is_file():
        _refuse([f"error: there is no project.yml in {directory} — hint: name the project with --project"])
    variables: Any = {}
    if vars_text is not None:
        try:
            variables = json.loads(vars_text)
        except ValueError:
            variables = None
        if not isinstance(variables, dict):
            _refuse(['error: --vars is not a JSON object — hint: for example --vars \'{"day": "2026-01-01"}\''])
    return PzProject(directory, vars=variables)


def _refuse(lines: Iterable[str]) -> NoReturn:
    for line in lines:
        click.echo(line, err=True)
    sys.exit(2)


def _fail(message: str) -> NoReturn:
    click.echo(f"error: {message}", err=True)
    sys.exit(3)
