"""`dg scaffold defs pz_dagster.PzProjectComponent`: a component with a pz project of its own, or around an existing one."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import dagster as dg
from pydantic import BaseModel, Field


class PzScaffoldParams(BaseModel):
    """Options of the command."""

    project_path: str | None = Field(
        default=None, description="Directory of an existing pz project, relative to the working directory."
    )
    template: str | None = Field(
        default=None,
        description="Template of a new project below the component; 'pz init --list-templates' lists them.",
    )


class PzProjectScaffolder(dg.Scaffolder[PzScaffoldParams]):
    """Writes `defs.yaml` and, unless a project is named, a new project beside it."""

    @classmethod
    def get_scaffold_params(cls) -> type[PzScaffoldParams]:
        """Return the options."""
        return PzScaffoldParams

    def scaffold(self, request: dg.ScaffoldRequest[PzScaffoldParams]) -> None:
        """Write the files; a refusal leaves nothing behind.

        Raises:
            click.ClickException: both options are given, the project is not there, or the template is refused.
        """
        try:
            self._write(request)
        except ValueError as error:
            with suppress(OSError):
                request.target_path.rmdir()  # made before this is called; anything in it keeps it
            raise click.ClickException(str(error)) from None

    def _write(self, request: dg.ScaffoldRequest[PzScaffoldParams]) -> None:
        params: Any = request.params
        template, existing = getattr(params, "template", None), getattr(params, "project_path", None)
        if existing is not None:
            if template is not None:
                raise ValueError("project_path and template exclude each other: a template makes a new project")
            directory = Path(existing).absolute()
            if not (directory / "project.yml").is_file():
                raise ValueError(f"there is no project.yml in {existing}; name the directory of a pz project")
            place = os.path.relpath(directory, request.target_path.absolute())
        else:
            place = request.target_path.name
            _make_project(request.target_path / place, template or "minimal")
        dg.scaffold_component(request, {"project": Path(place).as_posix()})


def _make_project(directory: Path, template: str) -> None:
    """Run `pz init`; the command line is the public way to a new project."""
    command = [sys.executable, "-m", "pz_engine", "init", directory.name, "--template", template]
    done = subprocess.run(command, cwd=directory.parent, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if done.returncode != 0:
        raise ValueError(done.stderr.strip() or done.stdout.strip())
