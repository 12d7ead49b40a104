"""Rules that one entity can break on its own: keys, cursors, windows, dated paths, partitioning.

Every entity is checked, read or not, whichever surface declared it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec import structs

from pz_engine.base.date_tokens import date_token_problem, has_date_tokens
from pz_engine.compile.windows import check_window
from pz_engine.config.reporter import Reporter
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.connection import Connection
from pz_engine.model.contract_types import cursor_type_of_contract
from pz_engine.model.cursor_values import CURSOR_TYPES
from pz_engine.model.entity import Entity, ReadSide, WriteSide
from pz_engine.model.policies import Strategy, Sync, SyncMode

_CURSOR_TYPES = ", ".join(CURSOR_TYPES)


def check_entities(
    connections: Mapping[str, Connection], problems: ProblemCollector, notes: list[str]
) -> dict[str, Connection]:
    """Check every entity and return the connections with window limits in canonical form."""
    checked: dict[str, Connection] = {}
    for name, connection in connections.items():
        entities: dict[str, Entity] = {}
        for entity in connection.entities.values():
            read = _check_read(name, entity, problems, notes)
            if entity.write is not None:
                _check_write(name, entity.name, entity.write, problems)
            entities[entity.name] = structs.replace(entity, read=read)
        checked[name] = replace(connection, entities=entities)
    return checked


def contract_spelling(read: ReadSide, cursor: str) -> str:
    """Return a cursor as the contract spells it; DuckDB knows no case."""
    return next((column for column in read.columns or () if column.lower() == cursor.lower()), cursor)


def declared_cursor_type(read: ReadSide, cursor: str) -> str | None:
    """Return the cursor's type as the contract, or the connector's options, declare it; None when unknown."""
    if read.columns:
        contract_type = read.columns.get(cursor)
        return cursor_type_of_contract(contract_type) if contract_type is not None else None
    declared = read.options.get("cursor_type")
    return declared if read.options.get("cursor") == cursor and declared in CURSOR_TYPES else None


def _check_read(connection: str, entity: Entity, problems: ProblemCollector, notes: list[str]) -> ReadSide | None:
    read = entity.read
    if read is None:
        return None
    report = Reporter(problems, read.file, f"entity '{connection}.{entity.name}'")
    sync = read.sync
    if sync is not None and sync.cursor is not None:
        sync = structs.replace(sync, cursor=contract_spelling(read, sync.cursor))
    if sync is not None and sync.mode is SyncMode.INCREMENTAL:
        sync = _check_incremental(f"{connection}.{entity.name}", read, sync, report, notes)
    _check_dated_read(replace(read, sync=sync), report)
    _check_files_per_partition(read.options, read.line_of("files_per_partition"), report)
    return replace(read, sync=sync)


def _check_incremental(key: str, read: ReadSide, sync: Sync, report: Reporter, notes: list[str]) -> Sync:
    cursor = sync.cursor or ""
    if read.columns is None:
        notes.append(f"the cursor '{cursor}' of {key} is not verified: the entity has no column contract")
    elif sync.max_window is None:
        _check_contract_cursor(read, cursor, report)
    if "max_pages" in read.options:
        if read.options.get("cursor_order") == "desc":
            report.add(
                "PZ0229", "max_pages with a descending cursor would skip rows for good", line=read.line_of("max_pages"),
                hint="remove max_pages, or write cursor_order: asc",
            )  # fmt: skip
        elif "cursor_order" not in read.options:
            notes.append(
                f"{key} has max_pages but no cursor_order: rows beyond the limit are read next time only if pages ascend"
            )
    if not sync.is_windowed:
        notes.append(
            f"{key} is read above its stored cursor: rows that arrive later with the stored value are not read; "
            f"a watermark() filter with >= and a merge reads them"
        )
        return sync
    return check_window(read, sync, declared_cursor_type(read, cursor), report)


def _check_contract_cursor(read: ReadSide, cursor: str, report: Reporter) -> None:
    columns, line = read.columns or {}, read.line_of("sync.cursor")
    if cursor not in columns:
        report.add(
            "PZ0212", f"the cursor '{cursor}' is not in its column contract", line=line,
            hint=f"add {cursor} to columns, with one of the types {_CURSOR_TYPES}",
        )  # fmt: skip
    elif cursor_type_of_contract(columns[cursor]) is None:
        report.add(
            "PZ0212", f"the cursor '{cursor}' has type {columns[cursor]}, which cannot be a cursor", line=line,
            hint=f"give it one of the types {_CURSOR_TYPES}",
        )  # fmt: skip


def _check_dated_read(read: ReadSide, report: Reporter) -> None:
    path = read.options.get("path")
    if not isinstance(path, str) or not has_date_tokens(path):
        return
    problem = date_token_problem(path)
    if problem is not None:
        report.add(
            "PZ0218",
            problem,
            line=read.line_of("path"),
            hint="order tokens as {yyyy}, {MM}, {dd}, {HH}, {mm}, without gaps",
        )
    sync = read.sync
    cursor = sync.cursor if sync is not None and sync.mode is SyncMode.INCREMENTAL else None
    if sync is None or cursor is None or declared_cursor_type(read, cursor) not in {"date", "timestamp"}:
        report.add(
            "PZ0217", "a dated path needs an incremental cursor of type date or timestamp", line=read.line_of("path"),
            hint="declare sync: {mode: incremental, cursor: <column>, ...} and the column's type in columns",
        )  # fmt: skip
    elif sync.max_window is None or sync.initial is None:
        report.add(
            "PZ0221", "a dated path needs a bounded window", line=read.line_of("sync"),
            hint="add initial and max_window to sync",
        )  # fmt: skip


def _check_files_per_partition(options: Mapping[str, Any], line: int | None, report: Reporter) -> None:
    value = options.get("files_per_partition", 1)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        report.add(
            "PZ0222", "files_per_partition must be a whole number of at least 1", line=line,
            hint="write files_per_partition: 100, or remove it",
        )  # fmt: skip


def _check_write(connection: str, entity: str, write: WriteSide, problems: ProblemCollector) -> None:
    report = Reporter(problems, write.file, f"output '{connection}.{entity}'")
    if write.strategy is Strategy.MERGE and not write.keys:
        report.add("PZ0209", "a merge needs keys", line=write.line_of("strategy"), hint="add keys: [<column>]")
    if write.keys and write.strategy is not Strategy.MERGE:
        report.add(
            "PZ0211", f"keys have no meaning with strategy {write.strategy.value}", line=write.line_of("keys"),
            hint="write strategy: merge, or remove keys",
        )  # fmt: skip
    _check_partition_by(write, report)


def _check_partition_by(write: WriteSide, report: Reporter) -> None:
    path = write.options.get("path")
    is_dated = isinstance(path, str) and has_date_tokens(path)
    if is_dated and isinstance(path, str):
        problem = date_token_problem(path)
        if problem is not None:
            report.add(
                "PZ0218",
                problem,
                line=write.line_of("path"),
                hint="order tokens as {yyyy}, {MM}, {dd}, {HH}, {mm}, without gaps",
            )
    if "partition_by" not in write.options:
        if is_dated:
            report.add(
                "PZ0219",
                "a dated path needs partition_by",
                line=write.line_of("path"),
                hint="add partition_by: <date column>",
            )
        return
    value = write.options["partition_by"]
    columns = [value] if isinstance(value, str) else value
    is_valid = isinstance(columns, list) and columns and all(isinstance(item, str) and item for item in columns)
    if not is_valid:
        report.add(
            "PZ0219", "partition_by must be a column or a list of columns", line=write.line_of("partition_by"),
            hint="write partition_by: [<column>]",
        )  # fmt: skip
    elif is_dated and len(columns) > 1:
        report.add(
            "PZ0219", "a dated path is partitioned by exactly one column", line=write.line_of("partition_by"),
            hint="keep the one date column in partition_by",
        )  # fmt: skip
