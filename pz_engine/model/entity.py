"""Entities: named things inside a connection, with a read side and a write side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from pz_engine.base.identifiers import fold
from pz_engine.model.places import Lines, nearest_line
from pz_engine.model.policies import OnDelete, RetryDeclaration, SchemaPolicy, Strategy, Sync


@dataclass(frozen=True, slots=True)
class ReadSide:
    """How an entity is read; the same value whichever surface declared it."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """Connector options, engine-owned keys removed (`partition_column`, `partitions`, `files_per_partition` stay)."""

    columns: Mapping[str, str] | None = None
    """Column contract in declaration order, or None."""

    sync: Sync | None = None
    retry: RetryDeclaration | None = None
    file: str = "connections.yml"
    line: int | None = None
    lines: Lines = field(default_factory=dict, compare=False, repr=False)

    def line_of(self, path: str) -> int | None:
        """Return the line of an option, for example `sync.cursor`."""
        return nearest_line(self.lines, path, self.line)


@dataclass(frozen=True, slots=True)
class WriteSide:
    """How an entity is written; the same value whichever surface declared it."""

    strategy: Strategy = Strategy.APPEND
    keys: tuple[str, ...] = ()
    accepts_duplicates: bool = False
    on_delete: OnDelete | None = None
    schema_policy: SchemaPolicy = SchemaPolicy.FAIL_ON_CHANGE
    options: Mapping[str, Any] = field(default_factory=dict)
    retry: RetryDeclaration | None = None
    file: str = "connections.yml"
    line: int | None = None
    lines: Lines = field(default_factory=dict, compare=False, repr=False)

    def line_of(self, path: str) -> int | None:
        """Return the line of an option, for example `partition_by`."""
        return nearest_line(self.lines, path, self.line)


class Entity(Struct, frozen=True):
    """One key below a connection's `entities:`, or one that a call site declared."""

    name: str
    read: ReadSide | None = None
    write: WriteSide | None = None
    line: int | None = None


def staging_name(connection: str, entity: str) -> str:
    """Return the unqualified staging relation of a source load.

    >>> staging_name("erp", "dbo.orders")
    'src_erp__dbo_orders'
    """
    return f"src_{connection}__{fold(entity)}"
