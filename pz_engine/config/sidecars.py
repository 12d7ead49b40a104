"""Sidecars: YAML that configures one pipeline.

The key `pipeline:` decides the target, not the file's name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from pz_engine.base.printable import printable
from pz_engine.config import sidecar_keys as keys
from pz_engine.config.block_reader import BlockReader
from pz_engine.config.check_blocks import parse_checks
from pz_engine.config.located import Table
from pz_engine.config.reporter import Reporter
from pz_engine.config.yaml_reader import read_yaml_file
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.pipeline import Sidecar


def load_sidecars(
    project_dir: Path, files: Sequence[str], pipelines: Collection[str], problems: ProblemCollector
) -> dict[str, Sidecar]:
    """Read every sidecar; every problem goes to `problems`.

    Args:
        project_dir: the project.
        files: project-relative names, in order.
        pipelines: names that a sidecar may target.
        problems: receives every problem.
    """
    found: dict[str, Sidecar] = {}
    for path in files:
        file = printable(path)
        table = read_yaml_file(project_dir / path, file, problems)
        sidecar = _parse_sidecar(table, pipelines, Reporter(problems, file, f"sidecar {file}")) if table else None
        if sidecar is None:
            continue
        first = found.setdefault(sidecar.pipeline, sidecar)
        if first is not sidecar:
            problems.add(
                "PZ0110", f"pipeline '{sidecar.pipeline}' has two sidecars, {first.file} and {file}", file=file,
                line=sidecar.line, hint="merge them into one file",
            )  # fmt: skip
    return found


def _parse_sidecar(table: Table, pipelines: Collection[str], report: Reporter) -> Sidecar | None:
    reader = BlockReader(keys.SIDECAR, table, report)
    reader.refuse_other_keys()
    materialization, tags = reader.read(keys.MATERIALIZATION), reader.read(keys.TAGS)
    checks = parse_checks(reader.read(keys.CHECK_LIST), report)
    name = reader.read(keys.PIPELINE)
    if not name:
        return None
    line = table.line_of(keys.PIPELINE.name)
    if name not in pipelines:
        hint = report.near_miss(name, pipelines) or _pipeline_hint(pipelines)
        report.add("PZ0111", f"there is no pipeline '{name}'", line=line, hint=hint)
        return None
    is_explicit = keys.MATERIALIZATION.name in table.entries
    return Sidecar(name, report.file, line, materialization, is_explicit, tuple(dict.fromkeys(tags)), checks)


def _pipeline_hint(pipelines: Collection[str]) -> str:
    return f"write pipeline: {min(pipelines)}, or delete the file" if pipelines else "delete the file"
