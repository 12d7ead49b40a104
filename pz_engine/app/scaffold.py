"""Starts a project from a built-in template.

A template is a real project that runs where it lies; a copy differs only in its name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from pz_engine.base.near_miss import did_you_mean
from pz_engine.errors.exceptions import PzConfigError

DEFAULT_TEMPLATE: Final = "minimal"
_TEMPLATES: Final = Path(__file__).parents[1] / "templates"
_IGNORE_FILE: Final = "gitignore"
"""Stored without its dot, so that the template's own folder is not subject to it."""

_NAME_LINE = re.compile(rb"^name:.*$", re.MULTILINE)
_SKIPPED = frozenset({"__pycache__", ".pz", "output", ".DS_Store"})


class Template(Struct, frozen=True):
    """One entry of the catalogue."""

    id: str
    summary: str
    needs: str
    """What it takes to run it."""

    next_steps: tuple[str, ...]
    """Commands to type inside the new project."""


CATALOGUE: Final = (
    Template(
        "minimal",
        "commented project and connections files, nothing else",
        "nothing to run yet",
        ("pz validate",),
    ),
    Template(
        "sample",
        "four pipelines over three small CSV files, with checks and two output formats",
        "runs offline",
        ("pz plan", "pz run --all"),
    ),
    Template(
        "dagster",
        "the sample with Dagster definitions beside it",
        "runs offline",
        ("pz run --all", "pip install dagster-webserver", "dagster dev"),
    ),
)
"""Every template, in the order they are listed."""


class Scaffolded(Struct, frozen=True):
    """A new project."""

    directory: Path
    template: Template
    project_name: str
    wanted_name: str
    """The folder's name; differs from the project's when that had to change."""

    files: tuple[str, ...]
    """Paths inside the project, sorted."""


def scaffold(target: Path, template_id: str | None = None) -> Scaffolded:
    """Copy a template into a new or empty folder.

    Args:
        target: the project's folder.
        template_id: an id of the catalogue; None takes the default.

    Raises:
        PzConfigError: `PZ0130` when the target holds something, `PZ0131` for an unknown template.
        OSError: the target cannot be written; what was written until then is removed.
    """
    template = _find(template_id or DEFAULT_TEMPLATE)
    directory = target.absolute()
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        what = "is not empty" if directory.is_dir() else "is a file"
        raise PzConfigError("PZ0130", f"'{target}' {what}", hint="choose a new folder, or empty this one")
    if set(str(directory)) & set("*?"):
        raise PzConfigError(
            "PZ0130",
            f"the path of '{target}' has a * or a ?, which stand for other names",
            hint="choose another folder",
        )
    wanted = directory.resolve().name
    name = project_name(wanted)
    source = _TEMPLATES / template.id
    files = {_target_name(path): content for path, content in _contents(source)}
    files["project.yml"] = _NAME_LINE.sub(f"name: {name}".encode(), files["project.yml"], count=1)
    _write(directory, files)
    return Scaffolded(directory, template, name, wanted, tuple(sorted(files)))


def project_name(folder: str) -> str:
    """Derive a project's name from its folder's.

    >>> project_name("My Shop"), project_name("2026-report"), project_name("shop")
    ('my_shop', 'p_2026_report', 'shop')
    """
    name = re.sub(r"[^a-z0-9]+", "_", folder.lower())
    return name if name[:1].isalpha() else re.sub(r"_+", "_", f"p_{name}")


def template_files(template_id: str) -> tuple[str, ...]:
    """Return the files a template would write, sorted."""
    source = _TEMPLATES / _find(template_id).id
    return tuple(sorted(_target_name(path) for path, _ in _contents(source)))


def _find(template_id: str) -> Template:
    known = {template.id: template for template in CATALOGUE}
    if template_id not in known:
        near = did_you_mean(template_id, known)
        raise PzConfigError(
            "PZ0131",
            f"there is no template '{template_id}'; known: {', '.join(known)}",
            hint=near or "see them with 'pz init --list-templates'",
        )
    return known[template_id]


def _contents(folder: Path) -> list[tuple[str, bytes]]:
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    kept = (path for path in paths if not _SKIPPED & set(path.parts))
    return [(path.as_posix(), (folder / path).read_bytes()) for path in kept]


def _target_name(path: str) -> str:
    return f".{path}" if path == _IGNORE_FILE else path


def _write(directory: Path, files: dict[str, bytes]) -> None:
    made: list[Path] = []
    try:
        for relative, content in sorted(files.items()):
            path = directory / relative
            for parent in reversed(path.parents):
                if not parent.exists():
                    parent.mkdir()
                    made.append(parent)
            made.append(path)
            path.write_bytes(content)
    except BaseException:
        for path in reversed(made):
            _remove(path)
        raise


def _remove(path: Path) -> None:
    try:
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
    except OSError:
        return
