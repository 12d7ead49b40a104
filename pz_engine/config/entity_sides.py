"""The read and the write side of an entity, from YAML or from a call's arguments.

Both surfaces accept the same keys with the same codes; connector options pass through untouched.
"""

from __future__ import annotations

import re
from typing import Any

from pz_engine.config import connection_keys as keys
from pz_engine.config.block_reader import BlockReader
from pz_engine.config.definitions import Block
from pz_engine.config.kinds import ContractType, Malformed
from pz_engine.config.located import Scalar, Table, as_text, kind_of, lines_of, plain
from pz_engine.config.policy_blocks import parse_retry, parse_sync
from pz_engine.config.reporter import Reporter
from pz_engine.model.contract_types import CONTRACT_TYPE_NAMES
from pz_engine.model.entity import ReadSide, WriteSide
from pz_engine.model.policies import Strategy

READ_KEYS = keys.READ_BLOCK.names
"""Keys of a read side that the engine owns."""

WRITE_KEYS = keys.WRITE_BLOCK.names
"""Keys of a write side that the engine owns."""

_ENTITY_NAME = re.compile(keys.ENTITY_NAME)


def entity_name_problem(name: str) -> str | None:
    """Return why a name cannot be an entity's, or None.

    >>> entity_name_problem("dbo.orders") is None, entity_name_problem("a..b")
    (True, 'has an empty part between dots')
    """
    if _ENTITY_NAME.fullmatch(name):
        return None
    if not name:
        return "is empty"
    if any(character.isspace() for character in name):
        return "contains a blank"
    return "has an empty part between dots" if "" in name.split(".") else "contains a control character"


def parse_read_side(table: Table, entity: str, report: Reporter) -> ReadSide:
    """Read a read side.

    Args:
        table: the `read:` block, or the named arguments of `source()`.
        entity: the entity's name, for rewrites shown in hints.
        report: receives every problem, and names the file.
    """
    reader = BlockReader(keys.READ_BLOCK, table, report)
    reader.refuse_other_keys()
    _refuse_qualifiers(table, entity, report)
    columns = _parse_columns(reader)
    sync = parse_sync(reader.read(keys.SYNC), report)
    retry = parse_retry(reader.read(keys.RETRY), report)
    options = _options(table, keys.READ_BLOCK)
    return ReadSide(options, columns, sync, retry, report.file, table.line, lines_of(table))


def parse_write_side(table: Table, entity: str, report: Reporter) -> WriteSide:
    """Read a write side; arguments as for `parse_read_side`."""
    reader = BlockReader(keys.WRITE_BLOCK, table, report)
    reader.refuse_other_keys()
    _refuse_qualifiers(table, entity, report)
    strategy = _parse_strategy(reader)
    on_delete = reader.read(keys.ON_DELETE)
    if on_delete is not None and strategy is not None and strategy is not Strategy.MERGE:
        reader.add(
            "PZ0334", "on_delete needs strategy: merge", keys.ON_DELETE.name,
            "write strategy: merge with keys, or remove on_delete",
        )  # fmt: skip
    return WriteSide(
        strategy or keys.STRATEGY.default,
        reader.read(keys.KEYS),
        reader.read(keys.DUPLICATES) is not None,
        on_delete,
        reader.read(keys.SCHEMA_POLICY),
        _options(table, keys.WRITE_BLOCK),
        parse_retry(reader.read(keys.RETRY), report),
        report.file,
        table.line,
        lines_of(table),
    )


def _options(table: Table, block: Block) -> dict[str, Any]:
    kept = block.kept_names
    return {key: plain(value) for key, value in table.entries.items() if key not in kept}


def _parse_columns(reader: BlockReader) -> dict[str, str] | None:
    table = reader.read(keys.COLUMNS)
    columns: dict[str, str] = {}
    spelled: dict[str, str] = {}
    for name, node in table.entries.items() if table is not None else ():
        line = table.line_of(name) if table is not None else None
        if re.fullmatch(keys.COLUMN_NAME, name) is None:
            reader.report.add("PZ0101", "a column has no name", line=line, hint="write <column>: <type>")
        other = spelled.setdefault(name.lower(), name)
        if other != name:
            cause = f"columns '{other}' and '{name}' differ only in case, and DuckDB takes them for one"
            reader.report.add("PZ0101", cause, line=line, hint="keep one of them")
        try:
            columns[name] = ContractType().parse(node)
        except Malformed as problem:
            cause = (
                f"must have a type name, not {problem.found}"
                if problem.found
                else "has no type that a contract accepts"
            )
            text = node.text if isinstance(node, Scalar) else ""
            reader.report.add("PZ0101", f"column '{name}' {cause}", line=line, hint=_type_hint(text, reader.report))
    return columns or None


def _type_hint(text: str, report: Reporter) -> str:
    if text.startswith("decimal("):
        return "write decimal(10,2), and between braces 'decimal(10,2)' in quotes, or its comma ends the value"
    return report.near_miss(text, CONTRACT_TYPE_NAMES) or f"types: {', '.join(CONTRACT_TYPE_NAMES)}"


def _parse_strategy(reader: BlockReader) -> Strategy | None:
    """Return the strategy; another word is `PZ0228`, anything but a word `PZ0334`."""
    node = reader.table.get(keys.STRATEGY.name)
    text = as_text(node)
    words = [strategy.value for strategy in Strategy]
    if node is None or text in words:
        return reader.read(keys.STRATEGY)
    usage = "use replace, append or merge"
    if text is None:
        reader.add("PZ0334", f"strategy must be a word, not {kind_of(node)}", keys.STRATEGY.name, usage)
    else:
        cause = f"there is no strategy '{text}'" if text else "strategy has no value"
        reader.add("PZ0228", cause, keys.STRATEGY.name, reader.report.near_miss(text, words) or usage)
    return None


def _refuse_qualifiers(table: Table, entity: str, report: Reporter) -> None:
    """Report `schema` and `table` once for both."""
    found = [retired.name for retired in keys.QUALIFIERS if retired.name in table.entries]
    if not found:
        return
    schema, name = as_text(table.get("schema")), as_text(table.get("table")) or entity.rpartition(".")[2]
    joined = f"{schema}.{name}" if schema else name
    report.add(
        "PZ0348", f"{' and '.join(found)} moved into the entity's name", line=table.line_of(found[0]),
        hint=f"name the entity {joined} and remove {' and '.join(found)}",
    )  # fmt: skip
