"""Compile a project and write what compile leaves on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pz_engine.app.open_project import open_project
from pz_engine.base.atomic_files import write_atomically
from pz_engine.base.stable_json import pretty_json
from pz_engine.compile.dag import CompiledProject, PipelineNode
from pz_engine.compile.manifest import build_manifest, compiled_sql_text
from pz_engine.compile.selection import resolve_selection
from pz_engine.errors.exceptions import PzValidationError


def compile_project(
    project_dir: Path,
    *,
    vars: Mapping[str, Any] | None = None,  # noqa: A002 - the option's name
    env: Mapping[str, str] | None = None,
    keep_unset_env: bool = False,
) -> CompiledProject:
    """Compile without side effects: no network, no data, no writes; problems are values on the result.

    Args:
        project_dir: the project's directory.
        vars: overrides of `vars:`.
        env: laid over the process environment.
        keep_unset_env: leave an unset `${NAME}` as it is written instead of reporting it; for hosts that only show the
            project and know the values when it runs.
    """
    try:
        return open_project(project_dir, vars=vars, env=env, keep_unset_env=keep_unset_env)
    except PzValidationError as error:
        return CompiledProject(project_dir.absolute(), None, problems=error.errors)


def select_nodes(compiled: CompiledProject, expression: str | None) -> frozenset[str]:
    """Resolve a `--select` expression; None selects everything.

    Raises:
        PzValidationError: `PZ0210`.
    """
    return resolve_selection(compiled, expression=expression, everything=expression is None)


def write_compile_artifacts(compiled: CompiledProject, selected: frozenset[str]) -> Path:
    """Write `manifest.json` and `compiled/*.sql` for the selected nodes and return the target directory.

    Raises:
        OSError: the directory cannot be written.
    """
    target = compiled.project_dir / ".pz" / "target"
    write_atomically(target / "manifest.json", pretty_json(build_manifest(compiled, selected)))
    for node in compiled.nodes:
        if isinstance(node, PipelineNode) and node.id in selected:
            text = compiled_sql_text(compiled, node)
            write_atomically(target / "compiled" / f"{node.name}.sql", text.encode(), durable=False)
    return target


def manifest_nodes(compiled: CompiledProject, selected: frozenset[str]) -> list[Any]:
    """Return the selected nodes as the manifest writes them."""
    return list(build_manifest(compiled, selected)["nodes"])
