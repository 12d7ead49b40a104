"""`connections.yml` to connections.

Variables are resolved only in a connection's own configuration, never below `entities:`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pz_engine.base.identifiers import is_identifier, suggest_identifier
from pz_engine.config.entity_sides import entity_name_problem, parse_read_side, parse_write_side
from pz_engine.config.env_interpolation import has_reference, interpolate
from pz_engine.config.located import Located, Scalar, Table, as_bool, as_int, as_text, plain, scalars
from pz_engine.config.policy_blocks import parse_rate_limit, parse_retry
from pz_engine.config.reporter import Reporter
from pz_engine.config.shape_check import kind_of
from pz_engine.config.yaml_reader import read_yaml_file
from pz_engine.errors.collector import ProblemCollector
from pz_engine.errors.exceptions import PzConfigError
from pz_engine.model.connection import Connection
from pz_engine.model.entity import Entity

CONNECTIONS_FILE = "connections.yml"
"""Name of the file with every connection; it may be absent."""

RESERVED_KEYS = ("connector", "entities", "max_concurrency", "rate_limit", "retry", "allow_unsigned_extensions")
"""Connection keys that belong to the engine and never reach a connector."""


def load_connections_file(
    project_dir: Path, env: Mapping[str, str], problems: ProblemCollector, *, only: str | None = None
) -> dict[str, Connection] | None:
    """Read the file, or just one connection of it.

    Every problem goes to `problems`, and None comes back when the file cannot be read at all.
    """
    path = project_dir / CONNECTIONS_FILE
    if not path.is_file():
        return {}
    try:
        table = read_yaml_file(path, CONNECTIONS_FILE)
    except PzConfigError as error:
        problems.errors.append(error.diagnostic)
        return None
    report = Reporter(problems, CONNECTIONS_FILE, CONNECTIONS_FILE)
    connections: dict[str, Connection] = {}
    for name, node in table.entries.items():
        line = table.line_of(name)
        if only not in {None, name}:
            continue
        if name == "outputs":
            report.add(
                "PZ0347", "outputs is retired", line=line,
                hint="declare a connection and write with INSERT INTO {{ sink('<connection>', '<entity>') }}",
            )  # fmt: skip
            continue
        connection = _parse_connection(name, node, line, env, report.at(f"connection '{name}'"))
        if connection is not None:
            connections[name] = connection
    return connections


def _parse_connection(
    name: str, node: Located, line: int | None, env: Mapping[str, str], report: Reporter
) -> Connection | None:
    _check_name(name, line, report)
    if not isinstance(node, Table):
        report.add(
            "PZ0101", f"must be a mapping, not {kind_of(node)}", line=line, hint="write connector: <name> below it"
        )
        return None
    connector = as_text(node.get("connector"))
    if not connector:
        report.add(
            "PZ0101", "the required key connector is missing" if "connector" not in node.entries else
            "connector must be a name", line=node.line_of("connector") if "connector" in node.entries else line,
            hint="write connector: localfiles, or another one of `pz connectors`",
        )  # fmt: skip
    rate_limit, retry = node.get("rate_limit"), node.get("retry")
    return Connection(
        name,
        connector or "",
        _parse_config(node, env, report),
        _parse_entities(node, report),
        _parse_max_concurrency(node, report),
        parse_rate_limit(rate_limit, report) if rate_limit is not None else None,
        parse_retry(retry, report) if retry is not None else None,
        _parse_allow_unsigned(node, report),
        line,
    )


def _check_name(name: str, line: int | None, report: Reporter) -> None:
    if is_identifier(name) and "__" not in name:
        return
    suggestion = suggest_identifier(name)
    while "__" in suggestion:
        suggestion = suggestion.replace("__", "_")
    cause = "its name may not hold two underscores in a row" if is_identifier(name) else "its name is not an identifier"
    report.add("PZ0136", cause, line=line, hint=f"rename it to {suggestion}")


def _parse_config(node: Table, env: Mapping[str, str], report: Reporter) -> dict[str, Any]:
    own = {key: value for key, value in node.entries.items() if key not in RESERVED_KEYS}
    value: dict[str, Any] = plain(interpolate(Table(own, node.line, node.key_lines), env, report.problems, report.file))
    return value


def _parse_max_concurrency(node: Table, report: Reporter) -> int | None:
    if "max_concurrency" not in node.entries:
        return None
    limit = as_int(node.get("max_concurrency"))
    if limit is None or limit < 1:
        report.add(
            "PZ0122", "max_concurrency must be a whole number of at least 1", line=node.line_of("max_concurrency"),
            hint="write max_concurrency: 4",
        )  # fmt: skip
        return None
    return limit


def _parse_allow_unsigned(node: Table, report: Reporter) -> bool:
    child = node.present("allow_unsigned_extensions")
    if child is None:
        return False
    value = as_bool(child)
    if value is None:
        report.add(
            "PZ0101", "allow_unsigned_extensions must be true or false", line=node.line_of("allow_unsigned_extensions"),
            hint="write allow_unsigned_extensions: true",
        )  # fmt: skip
    return bool(value)


def _parse_entities(node: Table, report: Reporter) -> dict[str, Entity]:
    block = node.present("entities")
    if block is None:
        return {}
    if not isinstance(block, Table):
        report.add(
            "PZ0101", f"entities must be a mapping, not {kind_of(block)}", line=node.line_of("entities"),
            hint="write <entity>: {read: {...}} below it",
        )  # fmt: skip
        return {}
    _warn_about_references(block, report)
    found: dict[str, Entity] = {}
    for name, child in block.entries.items():
        line = block.line_of(name)
        at_entity = report.at(f"{report.where}, entity '{name}'")
        problem = entity_name_problem(name)
        if problem is not None:
            at_entity.add("PZ0344", f"its name {problem}", line=line, hint="spell it as the remote system does")
            continue
        entity = _parse_entity(name, child, line, at_entity)
        if entity is not None:
            found[name] = entity
    return found


def _parse_entity(name: str, node: Located, line: int | None, report: Reporter) -> Entity | None:
    if not isinstance(node, Table) or not node.entries:
        report.add(
            "PZ0101", "it has neither read: nor write:", line=line, hint="write read: or write: below it; both may be empty"
        )  # fmt: skip
        return None
    sides: dict[str, Table] = {}
    for key, child in node.entries.items():
        key_line = node.line_of(key)
        if key not in {"read", "write"}:
            report.add(
                "PZ0101", f"has an unknown key '{key}'", line=key_line, hint="only read and write belong here; options go below them"
            )  # fmt: skip
        elif isinstance(child, Table):
            sides[key] = Table(child.entries, key_line, child.key_lines)
        elif child.is_blank:
            sides[key] = Table({}, key_line)
        else:
            report.add(
                "PZ0101", f"{key} must be a mapping, not {kind_of(child)}", line=key_line, hint=f"write {key}: {{}}"
            )
    return Entity(
        name,
        parse_read_side(sides["read"], name, report.at(f"{report.where}, read")) if "read" in sides else None,
        parse_write_side(sides["write"], name, report.at(f"{report.where}, write")) if "write" in sides else None,
        line,
    )  # fmt: skip


def _warn_about_references(block: Table, report: Reporter) -> None:
    for scalar in scalars(block):
        if isinstance(scalar, Scalar) and has_reference(scalar.text):
            report.problems.warn(
                "PZ0133", f"{report.where}: a ${{NAME}} below entities stays literal text", file=report.file,
                line=scalar.line, hint="move the value to the connection's own keys",
            )  # fmt: skip
