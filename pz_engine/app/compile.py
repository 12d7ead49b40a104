"""Compile a project and write what compile leaves on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pz_engine.app.open_project import open_project
from pz_engine.app.state_owner import mark_owner
from pz_engine.base.atomic_files import write_atomically
from pz_engine.base.stable_json import pretty_json
from pz_engine.base.state_folder import locate_state
from pz_engine.compile.dag import CompiledProject, PipelineNode
from pz_engine.compile.manifest import build_manifest, compiled_sql_text
from pz_engine.config.project_file import read_project_name
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.errors.exceptions import PzValidationError
from pz_engine.model.project import Project

if TYPE_CHECKING:
    from pz_engine.compile.lineage.values import PipelineLineage


def compile_project(
    project_dir: Path,
    *,
    vars: Mapping[str, Any] | None = None,  # noqa: A002 - the option's name
    env: Mapping[str, str] | None = None,
    keep_env_names: bool = False,
    state_dir: Path | None = None,
) -> CompiledProject:
    """Compile without side effects: no network, no data, no writes; problems are values on the result.

    With problems the graph is empty, and the project holds its name alone, if that can be read.

    Args:
        project_dir: the project's directory.
        vars: overrides of `vars:`.
        env: laid over the process environment.
        keep_env_names: leave every `${NAME}` as it is written, and an `env()` of an unset variable as its name; for
            hosts that only show the project and know the values when it runs. Where the names alone do not compile,
            such as a number in the middle of SQL, those that are set take their values.
        state_dir: what stands in for the project's `.pz`; `PZ_STATE_DIR` says it otherwise.
    """
    modes: tuple[Literal["resolve", "keep", "keep_unset"], ...] = (
        ("keep", "keep_unset") if keep_env_names else ("resolve",)
    )
    problems: tuple[Diagnostic, ...] = ()
    for mode in modes:
        try:
            return open_project(project_dir, vars=vars, env=env, env_names=mode, state_dir=state_dir)
        except PzValidationError as error:
            problems = error.errors
    name = read_project_name(project_dir)
    named = Project(name, "") if name is not None else None
    return CompiledProject(project_dir.absolute(), locate_state(project_dir, state_dir), named, problems=problems)


def write_compile_artifacts(compiled: CompiledProject, selected: frozenset[str]) -> Path:
    """Write `manifest.json` and `compiled/*.sql` for the selected nodes and return the target directory.

    Raises:
        PzStateError: `PZ0518`, the folder is another project's.
        OSError: the directory cannot be written.
    """
    mark_owner(compiled)
    target = compiled.state_dir / "target"
    write_atomically(target / "manifest.json", pretty_json(build_manifest(compiled, selected)))
    for node in compiled.nodes:
        if isinstance(node, PipelineNode) and node.id in selected:
            text = compiled_sql_text(compiled, node)
            write_atomically(target / "compiled" / f"{node.name}.sql", text.encode(), durable=False)
    return target


def column_lineage(compiled: CompiledProject) -> tuple[PipelineLineage, ...]:
    """Tell which columns of which nodes feed each column of every pipeline, in topological order.

    Computed anew at each call, and reading nothing but the project's schema cache. Unknown columns of one source make
    only what depends on them unknown.
    """
    from pz_engine.compile.lineage.project import trace_project
    from pz_engine.validate.schema_cache import read_schema_cache

    return trace_project(compiled, read_schema_cache(compiled.state_dir))


def write_lineage(compiled: CompiledProject, selected: frozenset[str]) -> None:
    """Write `lineage.json` for the selected pipelines.

    Raises:
        OSError: the file cannot be written.
    """
    from pz_engine.compile.lineage.values import build_lineage

    names = {node.name for node in compiled.nodes if node.id in selected and isinstance(node, PipelineNode)}
    found = [pipeline for pipeline in column_lineage(compiled) if pipeline.name in names]
    target = compiled.state_dir / "target"
    write_atomically(target / "lineage.json", pretty_json(build_lineage(found)))


def manifest_nodes(compiled: CompiledProject, selected: frozenset[str]) -> list[Any]:
    """Return the selected nodes as the manifest writes them."""
    return list(build_manifest(compiled, selected)["nodes"])
