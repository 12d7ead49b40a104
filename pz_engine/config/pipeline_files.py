"""Finds and reads the files below `pipelines/`.

A pipeline is named after its file, never after its folder; files in a folder called `configs` are no pipelines. What
cannot be read is a problem, never silently left out.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from pz_engine.base.identifiers import is_identifier, suggest_identifier
from pz_engine.base.printable import is_printable, printable
from pz_engine.config.file_text import MAX_SQL_BYTES, cannot_read, is_there, not_a_file, read_file_text
from pz_engine.errors.collector import ProblemCollector
from pz_engine.errors.exceptions import PzConfigError
from pz_engine.model.pipeline import PipelineFile

PIPELINES_DIR = "pipelines"
"""Folder of all pipelines."""

CONFIGS_DIR = f"{PIPELINES_DIR}/configs"
"""Folder of all sidecars."""

_YAML_ENDINGS = (".yml", ".yaml")


class PipelineFiles(Struct, frozen=True):
    """The pipelines of a project."""

    pipelines: tuple[PipelineFile, ...]
    """In path order; what could not be read is left out, and a second file of one name."""

    names: frozenset[str]
    """Names of all files, readable or not, and of folders that are called like one."""


def load_pipeline_files(project_dir: Path, problems: ProblemCollector) -> PipelineFiles:
    """Read every pipeline; every problem goes to `problems`."""
    found: dict[str, PipelineFile] = {}
    walk = _Walk(project_dir, problems)
    files = sorted(walk.files())
    suggested: set[str] = set(map(pipeline_name, files))
    for file in files:
        name = pipeline_name(file)
        if not is_identifier(name):
            problems.add(
                "PZ0136", f"pipeline file {printable(file)} is not named like an identifier", file=printable(file),
                hint=f"rename it to {_free_name(suggest_identifier(name), suggested)}.sql",
            )  # fmt: skip
            continue
        if name in found:
            problems.add(
                "PZ0110", f"two pipelines are called '{name}': {found[name].file} and {file}", file=file,
                hint="rename one of the files; folders are not part of the name",
            )  # fmt: skip
            continue
        with problems.catching():
            found[name] = PipelineFile(name, file, read_file_text(project_dir / file, file, MAX_SQL_BYTES))
    return PipelineFiles(tuple(found.values()), frozenset(map(pipeline_name, [*files, *walk.folders])))


def _free_name(name: str, taken: set[str]) -> str:
    """Return a name that nothing has and that was not proposed before, and keep it."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


def pipeline_name(file: str) -> str:
    """Return the name of a pipeline's file.

    >>> pipeline_name("pipelines/marts/orders.sql")
    'orders'
    """
    return file.rpartition("/")[2].removesuffix(".sql")


def sidecar_files(project_dir: Path, problems: ProblemCollector) -> tuple[str, ...]:
    """Return the sidecars in order and warn about files with the other YAML extension."""
    folder = project_dir / CONFIGS_DIR
    names: list[str] = []
    with problems.catching():
        names = _names_in(folder, CONFIGS_DIR) if is_there(folder) else []
    for name in names:
        if name.endswith(".yaml"):
            warn_other_extension(f"{CONFIGS_DIR}/{printable(name)}", problems)
    return tuple(f"{CONFIGS_DIR}/{name}" for name in names if name.endswith(".yml"))


def warn_other_extension(file: str, problems: ProblemCollector) -> None:
    """Say that a `.yaml` file is not read (`PZ0135`)."""
    problems.warn(
        "PZ0135", f"{file} is not read, because only .yml files are", file=file,
        hint=f"rename it to {file.removesuffix('.yaml')}.yml",
    )  # fmt: skip


def warn_misplaced_sidecar(file: str, problems: ProblemCollector) -> None:
    """Say that a YAML file beside the pipelines is not read (`PZ0135`); its checks would never run."""
    stem = file.rpartition("/")[2].rpartition(".")[0]
    problems.warn(
        "PZ0135", f"{file} is not read, because sidecars stand in {CONFIGS_DIR}", file=file,
        hint=f"move it to {CONFIGS_DIR}/{stem}.yml",
    )  # fmt: skip


def refuse_retired_folders(project_dir: Path, problems: ProblemCollector) -> None:
    """Report every YAML file below `sources/` and `sinks/` (`PZ0346`)."""
    for folder, side in (("sources", "read"), ("sinks", "write")):
        root = project_dir / folder
        if not root.is_dir():
            continue
        names: list[str] = []
        with problems.catching():
            names = [name for name in _names_in(root, folder) if name.endswith(_YAML_ENDINGS)]
        for place in [f"{folder}/{printable(name)}" for name in names] or [folder]:
            stem = place.rpartition("/")[2].rpartition(".")[0]
            name = suggest_identifier(stem) if stem else "<connection>"
            problems.add(
                "PZ0346", f"{place}: the folder {folder} is retired", file=place,
                hint=f"write in connections.yml:\n{name}:\n  connector: <name>\n  entities:\n    <entity>:\n      {side}: {{}}",
            )  # fmt: skip


class _Walk:
    """Finds the pipelines of one project; follows links, but not back up."""

    def __init__(self, project_dir: Path, problems: ProblemCollector) -> None:
        self._project_dir = project_dir
        self._problems = problems
        self.folders: list[str] = []
        """Folders that are called like a pipeline's file."""

    def files(self) -> Iterator[str]:
        """Yield every pipeline's file, in no particular order."""
        if not is_there(self._project_dir / PIPELINES_DIR):
            return
        real = self._project_dir.resolve()
        pending = [(PIPELINES_DIR, frozenset(_identity(folder, str(folder)) for folder in (real, *real.parents)))]
        while pending:
            folder, above = pending.pop()
            with self._problems.catching():
                names = _names_in(self._project_dir / folder, folder)
                own = _identity(self._project_dir / folder, folder)
                _check_folder(folder, is_above=own in above)
                for entry in names:
                    path = f"{folder}/{entry}"
                    if entry == "configs":
                        self._warn_misplaced_sidecars(path)
                        continue
                    is_folder = _is_folder(self._project_dir / path)
                    if is_folder and entry.endswith(".sql"):
                        self.folders.append(path)
                        self._problems.errors.append(not_a_file(stat.S_IFDIR, printable(path)).diagnostic)
                    elif is_folder:
                        pending.append((path, above | {own}))
                    elif entry.endswith(".sql"):
                        yield path
                    elif entry.endswith(_YAML_ENDINGS):
                        warn_misplaced_sidecar(printable(path), self._problems)
                    elif not entry.startswith(".") and not _leads_somewhere(self._project_dir / path):
                        self._problems.errors.append(_dead_link(printable(path)).diagnostic)

    def _warn_misplaced_sidecars(self, folder: str) -> None:
        if folder == CONFIGS_DIR or not _is_folder(self._project_dir / folder):
            return
        for name in _names_in(self._project_dir / folder, folder):
            if name.endswith(_YAML_ENDINGS):
                warn_misplaced_sidecar(printable(f"{folder}/{name}"), self._problems)


def _identity(folder: Path, name: str) -> tuple[int, int]:
    """Return what tells a folder from every other, whichever way leads to it."""
    try:
        found = folder.stat()
    except OSError as error:
        raise cannot_read(error, name) from None
    return found.st_dev, found.st_ino


def _check_folder(folder: str, *, is_above: bool) -> None:
    if is_above:
        raise PzConfigError(
            "PZ0101", f"{folder} is a link to a folder that it lies in", file=folder, hint="remove the link"
        )
    if not is_printable(folder):
        raise PzConfigError(
            "PZ0136", f"the folder {printable(folder)} has a name that cannot be printed", file=printable(folder),
            hint=f"rename it to {suggest_identifier(folder.rpartition('/')[2])}",
        )  # fmt: skip


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a link to itself
        return False


def _leads_somewhere(path: Path) -> bool:
    try:
        path.stat()
    except OSError:
        return not path.is_symlink()
    return True


def _dead_link(name: str) -> PzConfigError:
    return PzConfigError(
        "PZ0101", f"{name} is a link that leads nowhere", file=name, hint="correct the link, or remove it"
    )


def _names_in(folder: Path, name: str) -> list[str]:
    """Return the names in a folder, in order.

    Raises:
        PzConfigError: `PZ0101`, it cannot be read or is no folder.
    """
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise cannot_read(error, name) from None
