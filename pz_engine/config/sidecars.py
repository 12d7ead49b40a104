"""Sidecars: YAML that configures one pipeline.

The key `pipeline:` decides the target, not the file's name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from pz_engine.base.near_miss import did_you_mean
from pz_engine.config.check_blocks import parse_checks
from pz_engine.config.located import Listing, Scalar, Table, as_text
from pz_engine.config.reporter import Reporter
from pz_engine.config.shape_check import kind_of, refuse_unknown
from pz_engine.config.yaml_reader import read_yaml_file
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.pipeline import Sidecar
from pz_engine.model.policies import Materialization


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
    for file in files:
        with problems.catching():
            table = read_yaml_file(project_dir / file, file)
            sidecar = _parse_sidecar(table, pipelines, Reporter(problems, file, f"sidecar {file}"))
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
    refuse_unknown(table, ("pipeline", "materialization", "tags", "checks"), report, code="PZ0101")
    materialization = _parse_materialization(table, report)
    tags = _parse_tags(table, report)
    checks = parse_checks(table.get("checks"), report)
    name = as_text(table.get("pipeline"))
    line = table.line_of("pipeline") if "pipeline" in table.entries else None
    if name is None or name not in pipelines:
        cause = f"there is no pipeline '{name}'" if name else "the required key pipeline is missing"
        report.add("PZ0111", cause, line=line, hint=did_you_mean(name or "", pipelines) or _pipeline_hint(pipelines))
        return None
    return Sidecar(
        name, report.file, line, materialization or Materialization.TABLE, materialization is not None, tags, checks
    )


def _pipeline_hint(pipelines: Collection[str]) -> str:
    return f"write pipeline: {min(pipelines)}, or delete the file" if pipelines else "delete the file"


def _parse_materialization(table: Table, report: Reporter) -> Materialization | None:
    if "materialization" not in table.entries:
        return None
    text = as_text(table.get("materialization"))
    names = [choice.value for choice in Materialization]
    if text in names:
        return Materialization(text)
    report.add(
        "PZ0134", "materialization must be table, view or ephemeral", line=table.line_of("materialization"),
        hint=did_you_mean(text or "", names) or "write materialization: table",
    )  # fmt: skip
    return None


def _parse_tags(table: Table, report: Reporter) -> tuple[str, ...]:
    node = table.present("tags")
    if node is None:
        return ()
    if not isinstance(node, Listing):
        report.add("PZ0101", f"tags must be a list, not {kind_of(node)}", line=node.line, hint="write tags: [daily]")
        return ()
    tags: list[str] = []
    for item in node.items:
        if isinstance(item, Scalar) and item.text:
            tags.append(item.text)
        else:
            report.add("PZ0101", f"a tag must be text, not {kind_of(item)}", line=item.line, hint="write tags: [daily]")
    return tuple(dict.fromkeys(tags))
