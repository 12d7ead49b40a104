"""`project.yml` to a project.

Only values below `vars:` are interpolated; everything else is literal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from pz_engine.config import project_keys as keys
from pz_engine.config.block_reader import BlockReader
from pz_engine.config.engine_settings import parse_engine, parse_retention
from pz_engine.config.env_interpolation import interpolate
from pz_engine.config.file_text import is_there
from pz_engine.config.located import Listing, Located, Scalar, Table, kind_of, plain
from pz_engine.config.reporter import Reporter
from pz_engine.config.state_settings import parse_state, state_connection_line
from pz_engine.config.yaml_reader import read_yaml_file
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.project import ConnectorRequirement, Project

PROJECT_FILE = "project.yml"
"""Name of the file that makes a folder a project."""


class ProjectYaml(Struct, frozen=True):
    """A read `project.yml`."""

    project: Project
    state_connection_line: int | None


def read_project_table(project_dir: Path, problems: ProblemCollector) -> Table | None:
    """Read the file's mapping; None after reporting why there is none."""
    path = project_dir / PROJECT_FILE
    if is_there(path):
        return read_yaml_file(path, PROJECT_FILE, problems)
    other = PROJECT_FILE.replace(".yml", ".yaml")
    is_misnamed = is_there(project_dir / other)
    problems.add(
        "PZ0101", f"there is no {PROJECT_FILE} in the project folder", file=PROJECT_FILE,
        hint=f"rename {other} to {PROJECT_FILE}" if is_misnamed else
        "run inside a project, pass --project <dir>, or start one with `pz init <name>`",
    )  # fmt: skip
    return None


def load_project_file(
    project_dir: Path, env: Mapping[str, str], vars_overrides: Mapping[str, Any], problems: ProblemCollector
) -> ProjectYaml | None:
    """Read the file; every problem goes to `problems`, and None comes back when it cannot be read at all."""
    table = read_project_table(project_dir, problems)
    if table is None:
        return None
    report = Reporter(problems, PROJECT_FILE, PROJECT_FILE)
    reader = BlockReader(keys.PROJECT, table, report)
    reader.refuse_other_keys()
    project = Project(
        name=reader.read(keys.NAME),
        version=reader.read(keys.VERSION),
        pz=reader.read(keys.PZ),
        connectors=_parse_connectors(reader.read(keys.CONNECTORS), report),
        vars={**_parse_vars(reader.read(keys.VARS), env, report), **vars_overrides},
        engine=parse_engine(reader.read(keys.ENGINE), report),
        retention_keep_last=parse_retention(reader),
        state=parse_state(table.get(keys.STATE.name), env, report),
        on_source_drift=reader.read(keys.ON_SOURCE_DRIFT),
    )
    return ProjectYaml(project, state_connection_line(table.get(keys.STATE.name)))


def read_project_name(project_dir: Path) -> str | None:
    """Return the project's name even when the rest of the file is wrong; None when it cannot be told."""
    table = read_project_table(project_dir, ProblemCollector())
    found = table.get(keys.NAME.name) if table is not None else None
    return found.value if isinstance(found, Scalar) and isinstance(found.value, str) and found.value else None


def _parse_vars(table: Table | None, env: Mapping[str, str], report: Reporter) -> dict[str, Any]:
    if table is None:
        return {}
    value: dict[str, Any] = plain(interpolate(table, env, report.problems, report.file))
    return value


def _parse_connectors(listing: Listing | None, report: Reporter) -> tuple[ConnectorRequirement, ...]:
    found: dict[str, ConnectorRequirement] = {}
    for item in listing.items if listing is not None else ():
        requirement = _parse_connector(item, report)
        if requirement is None:
            continue
        name = re.sub(r"[-_.]+", "-", requirement.package).lower()  # how package indexes compare names
        if name in found:
            report.add(
                "PZ0110", f"connector package {requirement.package} is listed twice", line=item.line,
                hint="keep one entry, with one version",
            )  # fmt: skip
        found.setdefault(name, requirement)
    return tuple(found.values())


def _parse_connector(node: Located, report: Reporter) -> ConnectorRequirement | None:
    if not isinstance(node, Table):
        report.add(
            "PZ0101", f"an entry of connectors must be a mapping, not {kind_of(node)}", line=node.line,
            hint='write {package: <name>, version: "1.0.0"}',
        )  # fmt: skip
        return None
    reader = BlockReader(keys.CONNECTOR_ENTRY, node, report)
    reader.refuse_other_keys()
    package = reader.read(keys.PACKAGE)
    version = node.get(keys.PACKAGE_VERSION.name)
    if isinstance(version, Scalar) and isinstance(version.value, (int, float)) and not isinstance(version.value, bool):
        reader.add(
            "PZ0101", "a connector's version must be quoted, or its digits change", keys.PACKAGE_VERSION.name,
            f'write version: "{version.text}"',
        )  # fmt: skip
        return None
    text = reader.read(keys.PACKAGE_VERSION)
    return ConnectorRequirement(package, text, node.line) if package and text else None
