"""`project.yml` to a project.

Only values below `vars:` are interpolated; everything else is literal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pz_engine.base.near_miss import did_you_mean
from pz_engine.config.engine_settings import parse_engine, parse_retention
from pz_engine.config.env_interpolation import interpolate
from pz_engine.config.located import Listing, Located, Scalar, Table, as_text, plain
from pz_engine.config.reporter import Reporter
from pz_engine.config.shape_check import kind_of, refuse_unknown
from pz_engine.config.state_settings import parse_state, state_connection_line
from pz_engine.config.yaml_reader import read_yaml_file
from pz_engine.errors.collector import ProblemCollector
from pz_engine.errors.exceptions import PzConfigError
from pz_engine.model.policies import DriftPolicy
from pz_engine.model.project import ConnectorRequirement, Project

PROJECT_FILE = "project.yml"
"""Name of the file that makes a folder a project."""

_KEYS = ("name", "version", "pz", "connectors", "vars", "engine", "retention", "state", "on_source_drift")


@dataclass(frozen=True, slots=True)
class ProjectYaml:
    """A read `project.yml`."""

    project: Project
    state_connection_line: int | None


def read_project_table(project_dir: Path) -> Table:
    """Read the file's mapping.

    Raises:
        PzConfigError: `PZ0101`, also when there is no such file.
    """
    path = project_dir / PROJECT_FILE
    if not path.is_file():
        raise PzConfigError(
            "PZ0101", f"there is no {PROJECT_FILE} in the project folder", file=PROJECT_FILE,
            hint="run inside a project, pass --project <dir>, or start one with `pz init <name>`",
        )  # fmt: skip
    return read_yaml_file(path, PROJECT_FILE)


def load_project_file(
    project_dir: Path, env: Mapping[str, str], vars_overrides: Mapping[str, Any], problems: ProblemCollector
) -> ProjectYaml | None:
    """Read the file; every problem goes to `problems`, and None comes back when it cannot be read at all."""
    try:
        table = read_project_table(project_dir)
    except PzConfigError as error:
        problems.errors.append(error.diagnostic)
        return None
    report = Reporter(problems, PROJECT_FILE, PROJECT_FILE)
    _refuse_keys(table, report)
    project = Project(
        name=_required_text(table, "name", report),
        version=_required_text(table, "version", report),
        pz=_optional_text(table, "pz"),
        connectors=_parse_connectors(table.present("connectors"), report),
        vars={**_parse_vars(table.present("vars"), env, report), **vars_overrides},
        engine=parse_engine(table.present("engine"), report),
        retention_keep_last=parse_retention(table.get("retention"), report),
        state=parse_state(table.get("state"), env, report),
        on_source_drift=_parse_drift(table, report),
    )
    return ProjectYaml(project, state_connection_line(table.get("state")))


def _refuse_keys(table: Table, report: Reporter) -> None:
    retired = {
        "outputs": ("PZ0347", "outputs is retired", "declare the connection in connections.yml and write with sink()"),
        "feeds": ("PZ0352", "feeds is retired", "remove it; connectors are installed with pip"),
    }
    for key, (code, cause, hint) in retired.items():
        if key in table.entries:
            report.add(code, cause, line=table.line_of(key), hint=hint)
    known = Table(
        {key: value for key, value in table.entries.items() if key not in retired}, table.line, table.key_lines
    )
    refuse_unknown(known, _KEYS, report, code="PZ0101")


def _required_text(table: Table, key: str, report: Reporter) -> str:
    node = table.get(key)
    if isinstance(node, Scalar) and node.text.strip() and not isinstance(node.value, bool):
        return node.text
    cause = f"the required key {key} is missing" if node is None else f"{key} must be text"
    line = None if node is None else table.line_of(key)
    report.add("PZ0101", cause, line=line, hint=f"write {key}: <{key}>")
    return ""


def _optional_text(table: Table, key: str) -> str | None:
    node = table.present(key)
    return node.text if isinstance(node, Scalar) else None


def _parse_vars(node: Located | None, env: Mapping[str, str], report: Reporter) -> dict[str, Any]:
    if node is None:
        return {}
    if not isinstance(node, Table):
        report.add(
            "PZ0102", f"vars must be a mapping, not {kind_of(node)}", line=node.line, hint="write vars: {name: value}"
        )
        return {}
    value: dict[str, Any] = plain(interpolate(node, env, report.problems, report.file))
    return value


def _parse_drift(table: Table, report: Reporter) -> DriftPolicy:
    if "on_source_drift" not in table.entries:
        return DriftPolicy.IGNORE
    text = as_text(table.get("on_source_drift"))
    names = [policy.value for policy in DriftPolicy]
    if text in names:
        return DriftPolicy(text)
    report.add(
        "PZ0126", "on_source_drift must be ignore, warn or fail", line=table.line_of("on_source_drift"),
        hint=did_you_mean(text or "", names) or "write on_source_drift: warn",
    )  # fmt: skip
    return DriftPolicy.IGNORE


def _parse_connectors(node: Located | None, report: Reporter) -> tuple[ConnectorRequirement, ...]:
    if node is None:
        return ()
    if not isinstance(node, Listing):
        report.add(
            "PZ0101", f"connectors must be a list, not {kind_of(node)}", line=node.line,
            hint='write connectors: [{package: <name>, version: "1.0.0"}]',
        )  # fmt: skip
        return ()
    found: dict[str, ConnectorRequirement] = {}
    for item in node.items:
        requirement = _parse_connector(item, report)
        if requirement is None:
            continue
        if requirement.package in found:
            report.add(
                "PZ0110", f"connector package {requirement.package} is listed twice", line=item.line,
                hint="keep one entry, with one version",
            )  # fmt: skip
        found.setdefault(requirement.package, requirement)
    return tuple(found.values())


def _parse_connector(node: Located, report: Reporter) -> ConnectorRequirement | None:
    if not isinstance(node, Table):
        report.add(
            "PZ0101", f"an entry of connectors must be a mapping, not {kind_of(node)}", line=node.line,
            hint='write {package: <name>, version: "1.0.0"}',
        )  # fmt: skip
        return None
    refuse_unknown(node, ("package", "version"), report, code="PZ0101", block="a connectors entry")
    package, version = as_text(node.get("package")), node.get("version")
    if isinstance(version, Scalar) and isinstance(version.value, (float, int)) and not isinstance(version.value, bool):
        report.add(
            "PZ0101", "a connector's version must be quoted, or its digits change", line=node.line_of("version"),
            hint=f'write version: "{version.text}"',
        )  # fmt: skip
        return None
    for key, text in (("package", package), ("version", as_text(version))):
        if not text:
            report.add("PZ0101", f"a connectors entry needs {key}", line=node.line, hint=f"add {key}: <text>")
    return ConnectorRequirement(package, as_text(version) or "", node.line) if package and as_text(version) else None


def read_project_name(project_dir: Path) -> str | None:
    """Return the project's name even when the rest of the file is wrong; None when it cannot be told."""
    try:
        found = read_project_table(project_dir).get("name")
    except PzConfigError:
        return None
    return found.value if isinstance(found, Scalar) and isinstance(found.value, str) and found.value else None
