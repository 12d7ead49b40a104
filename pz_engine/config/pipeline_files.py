"""Finds and reads the files below `pipelines/`.

A pipeline is named after its file, never after its folder; files in a folder called `configs` are no pipelines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pz_engine.base.identifiers import is_identifier, suggest_identifier
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.pipeline import PipelineFile

PIPELINES_DIR = "pipelines"
"""Folder of all pipelines."""

CONFIGS_DIR = f"{PIPELINES_DIR}/configs"
"""Folder of all sidecars."""


def load_pipeline_files(project_dir: Path, problems: ProblemCollector) -> tuple[PipelineFile, ...]:
    """Read every pipeline in path order; every problem goes to `problems`."""
    found: dict[str, PipelineFile] = {}
    for file in _sql_files(project_dir):
        name = file.rpartition("/")[2].removesuffix(".sql")
        if not is_identifier(name):
            problems.add(
                "PZ0136", f"pipeline file {file} is not named like an identifier", file=file,
                hint=f"rename it to {suggest_identifier(name)}.sql",
            )  # fmt: skip
            continue
        if name in found:
            problems.add(
                "PZ0110", f"two pipelines are called '{name}': {found[name].file} and {file}", file=file,
                hint="rename one of the files; folders are not part of the name",
            )  # fmt: skip
            continue
        text = _read(project_dir / file, file, problems)
        if text is not None:
            found[name] = PipelineFile(name, file, text)
    return tuple(found.values())


def sidecar_files(project_dir: Path, problems: ProblemCollector) -> tuple[str, ...]:
    """Return the sidecars in order and warn about files with the other YAML extension."""
    names = _file_names(project_dir / CONFIGS_DIR)
    for name in names:
        if name.endswith(".yaml"):
            warn_other_extension(f"{CONFIGS_DIR}/{name}", problems)
    return tuple(f"{CONFIGS_DIR}/{name}" for name in names if name.endswith(".yml"))


def warn_other_extension(file: str, problems: ProblemCollector) -> None:
    """Say that a `.yaml` file is not read (`PZ0135`)."""
    problems.warn(
        "PZ0135", f"{file} is not read, because only .yml files are", file=file,
        hint=f"rename it to {file.removesuffix('.yaml')}.yml",
    )  # fmt: skip


def refuse_retired_folders(project_dir: Path, problems: ProblemCollector) -> None:
    """Report every YAML file below `sources/` and `sinks/` (`PZ0346`)."""
    for folder, side in (("sources", "read"), ("sinks", "write")):
        root = project_dir / folder
        if not root.is_dir():
            continue
        files = [name for name in _file_names(root) if name.endswith((".yml", ".yaml"))]
        for place in [f"{folder}/{name}" for name in files] or [folder]:
            stem = place.rpartition("/")[2].rpartition(".")[0] or "<connection>"
            problems.add(
                "PZ0346", f"{place}: the folder {folder} is retired", file=place,
                hint=f"write in connections.yml:\n{stem}:\n  connector: <name>\n  entities:\n    <entity>:\n      {side}: {{}}",
            )  # fmt: skip


def _sql_files(project_dir: Path) -> list[str]:
    return sorted(_walk(project_dir / PIPELINES_DIR, PIPELINES_DIR))


def _walk(folder: Path, name: str) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        path = f"{name}/{entry.name}"
        if entry.is_dir():
            if entry.name != "configs":
                yield from _walk(folder / entry.name, path)
        elif entry.name.endswith(".sql"):
            yield path


def _file_names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError:
        return []


def _read(path: Path, file: str, problems: ProblemCollector) -> str | None:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        problems.add("PZ0101", f"{file} is not UTF-8 text", file=file, hint="save it as UTF-8")
        return None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        problems.add("PZ0101", f"{file} cannot be read: {reason}", file=file, hint="check its permissions")
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")
