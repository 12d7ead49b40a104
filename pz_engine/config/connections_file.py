"""`connections.yml` to connections.

Variables are resolved only in a connection's own configuration, never below `entities:`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from pz_engine.base.identifiers import is_identifier, suggest_identifier
from pz_engine.config import connection_keys as keys
from pz_engine.config.block_reader import BlockReader, refuse_retired
from pz_engine.config.definitions import Key
from pz_engine.config.entity_sides import entity_name_problem, parse_read_side, parse_write_side
from pz_engine.config.env_interpolation import has_reference, interpolate
from pz_engine.config.file_text import is_there
from pz_engine.config.located import Located, Table, kind_of, lines_of, plain, scalars
from pz_engine.config.policy_blocks import parse_rate_limit, parse_retry
from pz_engine.config.reporter import Reporter
from pz_engine.config.yaml_reader import read_yaml_file
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.connection import Connection
from pz_engine.model.entity import Entity

CONNECTIONS_FILE = "connections.yml"
"""Name of the file with every connection; it may be absent."""

RESERVED_KEYS = keys.CONNECTION_BLOCK.names
"""Connection keys that belong to the engine and never reach a connector."""

_NAME = re.compile(keys.CONNECTION_NAME)
_LONGEST_SUGGESTION = 60


class ConnectionsYaml(Struct, frozen=True):
    """A read `connections.yml`."""

    connections: Mapping[str, Connection]
    broken: frozenset[str] = frozenset()
    """Names that are written but have no usable connection; their problem is reported."""


def load_connections_file(
    project_dir: Path, env: Mapping[str, str], problems: ProblemCollector, *, only: str | None = None
) -> ConnectionsYaml | None:
    """Read the file, or just one connection of it.

    Every problem goes to `problems`, and None comes back when the file cannot be read at all.
    """
    path = project_dir / CONNECTIONS_FILE
    if not is_there(path):
        return ConnectionsYaml({})
    table = read_yaml_file(path, CONNECTIONS_FILE, problems)
    if table is None:
        return None
    report = Reporter(problems, CONNECTIONS_FILE, CONNECTIONS_FILE)
    retired = {entry.name: entry for entry in keys.CONNECTIONS.retired}
    connections: dict[str, Connection] = {}
    broken: set[str] = set()
    for name, node in table.entries.items():
        line = table.line_of(name)
        if only not in {None, name}:
            continue
        if name in retired:
            refuse_retired(retired[name], node, line, report)
            continue
        connection = _parse_connection(name, node, line, env, report.at(f"connection '{name}'"))
        if connection is None:
            broken.add(name)
        else:
            connections[name] = connection
    return ConnectionsYaml(connections, frozenset(broken))


def _parse_connection(
    name: str, node: Located, line: int | None, env: Mapping[str, str], report: Reporter
) -> Connection | None:
    _check_name(name, line, report)
    if not isinstance(node, Table):
        report.add(
            "PZ0101", f"must be a mapping, not {kind_of(node)}", line=line, hint="write connector: <name> below it"
        )
        return None
    reader = BlockReader(keys.CONNECTION_BLOCK, Table(node.entries, line, node.key_lines), report)
    return Connection(
        name,
        reader.read(keys.CONNECTOR),
        _parse_config(node, env, report),
        _parse_entities(reader.read(keys.ENTITIES), report),
        reader.read(keys.MAX_CONCURRENCY),
        parse_rate_limit(reader.read(keys.RATE_LIMIT), report),
        parse_retry(reader.read(keys.RETRY), report),
        reader.read(keys.ALLOW_UNSIGNED_EXTENSIONS),
        line,
        lines_of(Table({key: value for key, value in node.entries.items() if key != "entities"}, line, node.key_lines)),
    )


def _check_name(name: str, line: int | None, report: Reporter) -> None:
    if _NAME.fullmatch(name):
        return
    suggestion = re.sub("__+", "_", suggest_identifier(name[:_LONGEST_SUGGESTION]))
    cause = "its name may not hold two underscores in a row" if is_identifier(name) else "its name is not an identifier"
    report.add("PZ0136", cause, line=line, hint=f"rename it to {suggestion}")


def _parse_config(node: Table, env: Mapping[str, str], report: Reporter) -> dict[str, Any]:
    own = {key: value for key, value in node.entries.items() if key not in RESERVED_KEYS}
    value: dict[str, Any] = plain(interpolate(Table(own, node.line, node.key_lines), env, report.problems, report.file))
    return value


def _parse_entities(block: Table | None, report: Reporter) -> dict[str, Entity]:
    if block is None:
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
    if not isinstance(node, Table) or len(node.entries) < keys.ENTITY_BLOCK.least:
        report.add(
            "PZ0101", "it has neither read: nor write:", line=line, hint="write read: or write: below it; both may be empty"
        )  # fmt: skip
        return None
    reader = BlockReader(keys.ENTITY_BLOCK, node, report)
    reader.refuse_other_keys()
    read, write = _side(reader, keys.READ), _side(reader, keys.WRITE)
    return Entity(
        name,
        parse_read_side(read, name, report.at(f"{report.where}, read")) if read is not None else None,
        parse_write_side(write, name, report.at(f"{report.where}, write")) if write is not None else None,
        line,
    )


def _side(reader: BlockReader, key: Key[Table | None]) -> Table | None:
    """Return a side placed on the line of its key; a key with no body declares it too."""
    if key.name not in reader.table.entries:
        return None
    found = reader.read(key) or Table({})
    return Table(found.entries, reader.table.line_of(key.name), found.key_lines)


def _warn_about_references(block: Table, report: Reporter) -> None:
    seen: set[int] = set()
    for scalar in scalars(block):
        if has_reference(scalar.text) and id(scalar) not in seen:
            seen.add(id(scalar))
            report.warn(
                "PZ0133", "a ${NAME} below entities stays literal text", line=scalar.line,
                hint="move the value to the connection's own keys",
            )  # fmt: skip
