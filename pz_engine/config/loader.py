"""Every file of a project, read once.

A problem in one file never keeps another from being read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from pz_engine.base.printable import printable
from pz_engine.config.connections_file import CONNECTIONS_FILE, load_connections_file
from pz_engine.config.file_text import is_there
from pz_engine.config.pipeline_files import (
    load_pipeline_files,
    refuse_retired_folders,
    sidecar_files,
    warn_other_extension,
)
from pz_engine.config.project_file import PROJECT_FILE, load_project_file
from pz_engine.config.reporter import Reporter
from pz_engine.config.sidecars import load_sidecars
from pz_engine.config.state_settings import check_state_connection
from pz_engine.errors.collector import ProblemCollector
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.errors.exceptions import PzInternalError
from pz_engine.model.connection import Connection
from pz_engine.model.pipeline import PipelineFile, Sidecar
from pz_engine.model.project import Project


class ProjectFiles(Struct, frozen=True):
    """A project as its files say it."""

    project_dir: Path
    project: Project
    connections: Mapping[str, Connection] = field(default_factory=dict)
    pipelines: tuple[PipelineFile, ...] = ()
    """In path order."""

    sidecars: Mapping[str, Sidecar] = field(default_factory=dict)
    """By pipeline."""

    warnings: tuple[Diagnostic, ...] = ()


def load_project(
    project_dir: Path, *, env: Mapping[str, str], vars_overrides: Mapping[str, Any] | None = None
) -> ProjectFiles:
    """Read and check every file.

    Args:
        project_dir: the folder of `project.yml`.
        env: snapshot of the environment.
        vars_overrides: laid over `vars:`, name by name.

    Raises:
        PzValidationError: every problem of every file.
    """
    problems = ProblemCollector()
    _check_folder_name(project_dir, problems)
    loaded = load_project_file(project_dir, env, vars_overrides or {}, problems)
    for file in (PROJECT_FILE, CONNECTIONS_FILE):
        other = file.replace(".yml", ".yaml")
        if is_there(project_dir / other):
            warn_other_extension(other, problems)
    connections = load_connections_file(project_dir, env, problems)
    if loaded is not None:
        report = Reporter(problems, PROJECT_FILE, PROJECT_FILE)
        check_state_connection(loaded.project.state, connections, report, loaded.state_connection_line)
    refuse_retired_folders(project_dir, problems)
    found = load_pipeline_files(project_dir, problems)
    sidecars = load_sidecars(project_dir, sidecar_files(project_dir, problems), found.names, problems)
    problems.raise_if_any()
    if loaded is None or connections is None:
        raise PzInternalError("a project file was not loaded and no problem was reported")
    return ProjectFiles(
        project_dir, loaded.project, connections.connections, found.pipelines, sidecars, tuple(problems.warnings)
    )


def _check_folder_name(project_dir: Path, problems: ProblemCollector) -> None:
    try:
        str(project_dir).encode()
    except UnicodeEncodeError:
        problems.add(
            "PZ0101", f"the path of the project folder is not UTF-8: {printable(str(project_dir))}",
            hint="rename its folders, or move the project",
        )  # fmt: skip
    if set(str(project_dir.absolute())) & set("*?"):
        problems.add(
            "PZ0101", f"the path of the project folder has a * or a ?, which stand for other names: {project_dir}",
            hint="rename its folders, or move the project",
        )  # fmt: skip
