"""What the planner refuses: a declaration the connector cannot honour.

Resilience settings never depend on the tier: a setting either works or the plan refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from pz_engine.base.date_tokens import has_date_tokens
from pz_engine.compile.dag import CompiledProject, SinkWriteNode, SourceLoadNode
from pz_engine.connectors.api import Connector
from pz_engine.connectors.capabilities import Capability
from pz_engine.model.policies import OnDelete, SchemaPolicy, Strategy
from pz_engine.model.run import ReadShape


class Refusal(Struct, frozen=True):
    """One reason not to run."""

    code: str
    message: str
    hint: str


def read_refusals(
    compiled: CompiledProject,
    node: SourceLoadNode,
    connector: Connector,
    shape: ReadShape,
    *,
    is_native_only: bool,
    is_feed: bool,
) -> Iterator[Refusal]:
    """Yield what is wrong with one read."""
    flags, name = connector.capabilities, connector.info.name
    connection = compiled.connections[node.connection]
    if node.incremental is not None and node.incremental.window is not None and Capability.BOUNDED_WINDOW not in flags:
        yield Refusal(
            "PZ0313", f"'{node.key}' declares max_window; connector '{name}' has no bounded reads", "remove max_window"
        )
    if _has_date_tokens(node.options.get("path")) and Capability.PATH_TEMPLATING not in flags:
        yield Refusal(
            "PZ0314",
            f"'{node.key}' has a date-templated path; connector '{name}' does not understand one",
            "write the path without date tokens, for example with a glob",
        )
    if shape is ReadShape.CDC and Capability.CHANGE_CAPTURE not in flags:
        yield Refusal(
            "PZ0338",
            f"'{node.key}' declares sync mode cdc; connector '{name}' has no change capture",
            "use mode: incremental",
        )
    if shape is ReadShape.FEED and flags & (Capability.PARTITIONED_READ | Capability.STREAMING_PARTITIONS):
        yield Refusal(
            "PZ0316",
            f"'{node.key}' is a feed; connector '{name}' reads in partitions",
            "declare sync: {mode: incremental}",
        )
    if is_feed and node.incremental is not None:
        yield Refusal(
            "PZ0315",
            f"'{node.key}' declares a cursor, but its options make it a feed that goes on from a token of its own",
            "remove sync, or the option that makes it a feed",
        )
    if shape is ReadShape.FEED and is_native_only:
        yield Refusal(
            "PZ0363",
            f"'{node.key}' is a feed; connector '{name}' reads natively only and cannot hand over a token",
            "declare sync: {mode: incremental}, or read it in full",
        )
    if Capability.CHECKPOINTABLE_READS in flags and Capability.STABLE_PARTITION_IDS not in flags:
        yield Refusal(
            "PZ0319", f"connector '{name}' resumes reads without stable partition ids", "update the connector"
        )
    if connection.rate_limit is not None and (is_native_only or Capability.GATED_OPERATIONS not in flags):
        yield Refusal(
            "PZ0317",
            f"connection '{node.connection}' declares rate_limit; connector '{name}' does not pace its operations",
            "remove rate_limit",
        )
    for option, is_set in (
        ("engine.force_universal", compiled.project is not None and compiled.project.engine.force_universal),
        ("files_per_partition", "files_per_partition" in node.options),
    ):
        if is_set and is_native_only:
            yield Refusal(
                "PZ0312",
                f"{option} needs the universal path; '{node.key}' on connector '{name}' is native only",
                f"remove {option}",
            )


def write_refusals(compiled: CompiledProject, node: SinkWriteNode, connector: Connector) -> Iterator[Refusal]:
    """Yield what is wrong with one write."""
    flags, name = connector.capabilities, connector.info.name
    connection = compiled.connections[node.connection]
    needed = {Strategy.MERGE: Capability.MERGE, Strategy.REPLACE: Capability.REPLACE_WRITES}.get(node.strategy)
    if needed is not None and needed not in flags:
        yield Refusal(
            "PZ0324",
            f"connection '{node.connection}': connector '{name}' does not support strategy {node.strategy.value}",
            f"use {_supported(flags)}",
        )
    if node.schema_policy is SchemaPolicy.EVOLVE and name not in ("postgres", "sqlserver", "duckdb"):
        yield Refusal(
            "PZ0324",
            f"connection '{node.connection}': connector '{name}' does not support schema_policy evolve",
            "use fail_on_change",
        )
    if node.on_delete in (OnDelete.DELETE, OnDelete.SOFT) and Capability.APPLY_DELETES not in flags:
        yield Refusal(
            "PZ0339",
            f"'{node.name}' declares on_delete {node.on_delete.value}; connector '{name}' cannot delete",
            "use on_delete: ignore",
        )
    templated = "partition_by" in node.options or _has_date_tokens(node.options.get("path"))
    if templated:
        tokens = _has_date_tokens(node.options.get("path"))
        flag = Capability.PATH_TEMPLATING if tokens else Capability.COLUMN_PARTITIONED_WRITES
        if flag not in flags:
            yield Refusal(
                "PZ0314",
                f"'{node.name}' declares a partitioned write that connector '{name}' does not support",
                "put date tokens such as {yyyy}/{MM} into path"
                if not tokens
                else "remove partition_by and the date tokens",
            )
    if connection.rate_limit is not None and Capability.GATED_OPERATIONS not in flags:
        yield Refusal(
            "PZ0317",
            f"connection '{node.connection}' declares rate_limit; connector '{name}' does not pace its operations",
            "remove rate_limit",
        )
    native_only = bool(getattr(connector, "native_only_writes", False))
    if native_only and compiled.project is not None and compiled.project.engine.force_universal:
        yield Refusal(
            "PZ0312",
            f"engine.force_universal needs the universal path; '{node.name}' on connector '{name}' is native only",
            "remove engine.force_universal",
        )


def _supported(flags: Capability) -> str:
    names = ["append"]
    if Capability.REPLACE_WRITES in flags:
        names.append("replace")
    if Capability.MERGE in flags:
        names.append("merge")
    return " or ".join(names)


def _has_date_tokens(path: object) -> bool:
    return isinstance(path, str) and has_date_tokens(path)
