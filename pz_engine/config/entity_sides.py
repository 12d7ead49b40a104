"""The read and the write side of an entity, from YAML or from a call's arguments.

Both surfaces accept the same keys with the same codes; connector options pass through untouched.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

from pz_engine.base.near_miss import did_you_mean
from pz_engine.config.located import Scalar, Table, as_text, plain
from pz_engine.config.policy_blocks import parse_retry, parse_sync
from pz_engine.config.reporter import Reporter
from pz_engine.config.shape_check import kind_of, text_list
from pz_engine.model.contract_types import CONTRACT_TYPE_NAMES, duck_type_of
from pz_engine.model.entity import ReadSide, WriteSide
from pz_engine.model.policies import OnDelete, SchemaPolicy, Strategy

READ_KEYS = ("columns", "sync", "retry", "partition_column", "partitions", "files_per_partition")
"""Keys of a read side that the engine owns."""

WRITE_KEYS = ("strategy", "keys", "duplicates", "on_delete", "schema_policy", "retry")
"""Keys of a write side that the engine owns."""

_READ_REMOVED = ("columns", "sync", "retry", "incremental", "schema", "table", "rate_limit", "max_concurrency")
_WRITE_REMOVED = (
    *WRITE_KEYS, "mode", "accept_duplicates", "write", "input", "schema", "table", "rate_limit", "max_concurrency",
)  # fmt: skip
_Choice = TypeVar("_Choice", bound=Enum)


def entity_name_problem(name: str) -> str | None:
    """Return why a name cannot be an entity's, or None.

    >>> entity_name_problem("dbo.orders") is None, entity_name_problem("a..b")
    (True, 'has an empty part between dots')
    """
    if not name:
        return "is empty"
    if any(character.isspace() for character in name):
        return "contains a blank"
    return "has an empty part between dots" if "" in name.split(".") else None


def parse_read_side(table: Table, entity: str, report: Reporter) -> ReadSide:
    """Read a read side.

    Args:
        table: the `read:` block, or the named arguments of `source()`.
        entity: the entity's name, for rewrites shown in hints.
        report: receives every problem, and names the file.
    """
    _refuse_retired_read(table, report)
    _refuse_qualifiers(table, entity, report)
    columns = _parse_columns(table, report)
    sync_node = table.get("sync")
    sync = parse_sync(sync_node, report) if sync_node is not None else None
    retry_node = table.get("retry")
    retry = parse_retry(retry_node, report) if retry_node is not None else None
    return ReadSide(_options(table, _READ_REMOVED), columns, sync, retry, report.file, table.line)


def parse_write_side(table: Table, entity: str, report: Reporter) -> WriteSide:
    """Read a write side; arguments as for `parse_read_side`."""
    _refuse_retired_write(table, report)
    _refuse_qualifiers(table, entity, report)
    strategy = _parse_strategy(table, report)
    keys: tuple[str, ...] = ()
    if "keys" in table.entries:
        found = text_list(table.entries["keys"])
        if found is None:
            report.add(
                "PZ0101", "keys must be a list of column names", line=table.line_of("keys"),
                hint="write keys: [id]",
            )  # fmt: skip
        else:
            keys = found
    if "duplicates" in table.entries and as_text(table.get("duplicates")) != "accept":
        report.add(
            "PZ0334", "duplicates accepts only the word accept", line=table.line_of("duplicates"),
            hint="write duplicates: accept, or remove the key",
        )  # fmt: skip
    on_delete = _choice(table, "on_delete", OnDelete, report)
    if on_delete is not None and strategy is not None and strategy is not Strategy.MERGE:
        report.add(
            "PZ0334", "on_delete needs strategy: merge", line=table.line_of("on_delete"),
            hint="write strategy: merge with keys, or remove on_delete",
        )  # fmt: skip
    policy = _choice(table, "schema_policy", SchemaPolicy, report)
    retry_node = table.get("retry")
    retry = parse_retry(retry_node, report) if retry_node is not None else None
    return WriteSide(
        strategy or Strategy.APPEND, keys, "duplicates" in table.entries, on_delete,
        policy or SchemaPolicy.FAIL_ON_CHANGE, _options(table, _WRITE_REMOVED), retry, report.file, table.line,
    )  # fmt: skip


def _options(table: Table, removed: tuple[str, ...]) -> dict[str, Any]:
    return {key: plain(value) for key, value in table.entries.items() if key not in removed}


def _parse_columns(table: Table, report: Reporter) -> dict[str, str] | None:
    node = table.present("columns")
    if node is None:
        return None
    if not isinstance(node, Table):
        report.add(
            "PZ0101", f"columns must be a mapping of column to type, not {kind_of(node)}",
            line=table.line_of("columns"), hint="write columns: {id: bigint, name: varchar}",
        )  # fmt: skip
        return None
    columns: dict[str, str] = {}
    for name, child in node.entries.items():
        type_name = child.text if isinstance(child, Scalar) else None
        if type_name is not None and duck_type_of(type_name) is not None:
            columns[name] = type_name
            continue
        if type_name is None:
            cause = f"column '{name}' must have a type name, not {kind_of(child)}"
        else:
            cause = f"column '{name}' has no type that a contract accepts"
        report.add(
            "PZ0101", f"{cause}", line=node.line_of(name),
            hint=did_you_mean(type_name or "", CONTRACT_TYPE_NAMES) or f"types: {', '.join(CONTRACT_TYPE_NAMES)}",
        )  # fmt: skip
    return columns or None


def _parse_strategy(table: Table, report: Reporter) -> Strategy | None:
    if "strategy" not in table.entries:
        return Strategy.APPEND
    node = table.entries["strategy"]
    text = as_text(node)
    names = [strategy.value for strategy in Strategy]
    if text in names:
        return Strategy(text)
    line = table.line_of("strategy")
    if text is None or node.is_blank:
        report.add(
            "PZ0334", f"strategy must be a name, not {kind_of(node)}", line=line,
            hint="use replace, append or merge",
        )  # fmt: skip
    else:
        report.add(
            "PZ0228", f"there is no strategy '{text}'", line=line,
            hint=did_you_mean(text, names) or "use replace, append or merge",
        )  # fmt: skip
    return None


def _choice(table: Table, key: str, choices: type[_Choice], report: Reporter) -> _Choice | None:
    if key not in table.entries:
        return None
    text = as_text(table.get(key))
    names = [str(choice.value) for choice in choices]
    if text in names:
        return choices(text)
    report.add(
        "PZ0334", f"{key} must be one of {', '.join(names)}", line=table.line_of(key),
        hint=did_you_mean(text or "", names) or f"write {key}: {names[0]}",
    )  # fmt: skip
    return None


def _refuse_retired_read(table: Table, report: Reporter) -> None:
    if "incremental" in table.entries:
        block = table.entries["incremental"]
        cursor = as_text(block.get("cursor")) if isinstance(block, Table) else as_text(block)
        report.add(
            "PZ0332", "incremental is now sync", line=table.line_of("incremental"),
            hint=f"write sync: {{mode: incremental, cursor: {cursor or '<column>'}}}",
        )  # fmt: skip
    for key in ("rate_limit", "max_concurrency"):
        if key in table.entries:
            report.add(
                "PZ0318", f"{key} belongs to the connection", line=table.line_of(key),
                hint=f"move {key} to the connection in connections.yml",
            )  # fmt: skip


def _refuse_retired_write(table: Table, report: Reporter) -> None:
    renamed = {
        "mode": "write strategy: replace, append or merge",
        "accept_duplicates": "write duplicates: accept",
        "write": "write its keys directly, without the wrapper",
    }
    for key, hint in renamed.items():
        if key in table.entries:
            report.add("PZ0333", f"{key} is retired", line=table.line_of(key), hint=hint)
    for key, code in (("rate_limit", "PZ0318"), ("max_concurrency", "PZ0122")):
        if key in table.entries:
            report.add(
                code, f"{key} belongs to the connection", line=table.line_of(key),
                hint=f"move {key} to the connection in connections.yml",
            )  # fmt: skip
    if "input" in table.entries:
        report.add(
            "PZ0112", "input is removed; the pipeline is the input", line=table.line_of("input"),
            hint="start the pipeline's file with INSERT INTO {{ sink(...) }}",
        )  # fmt: skip


def _refuse_qualifiers(table: Table, entity: str, report: Reporter) -> None:
    found = [key for key in ("schema", "table") if key in table.entries]
    if not found:
        return
    schema, name = as_text(table.get("schema")), as_text(table.get("table")) or entity.rpartition(".")[2]
    joined = f"{schema}.{name}" if schema else name
    report.add(
        "PZ0348", f"{' and '.join(found)} moved into the entity's name", line=table.line_of(found[0]),
        hint=f"name the entity {joined} and remove {' and '.join(found)}",
    )  # fmt: skip
