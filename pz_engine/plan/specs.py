"""Nodes as the specs that connectors take; planning and execution build them the same way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pz_engine.compile.dag import CompiledProject, SinkWriteNode, SourceLoadNode
from pz_engine.connectors.api import Connector, ReadHints, ReadSpec, WriteAttempt, WriteSpec
from pz_engine.connectors.capabilities import Capability
from pz_engine.connectors.registry import find_connector
from pz_engine.errors.exceptions import PzExecutionError
from pz_engine.model.policies import SyncMode


def connector_of(compiled: CompiledProject, connection: str) -> Connector:
    """Return the connector of a connection.

    Raises:
        PzExecutionError: `PZ0305`, nobody provides it.
    """
    name = compiled.connections[connection].connector
    connector = find_connector(name)
    if connector is None:
        raise PzExecutionError("PZ0305", f"connection '{connection}' names connector '{name}', which is not installed")
    return connector


def connector_config(compiled: CompiledProject, connection: str) -> Mapping[str, Any]:
    """Return the connection's configuration with `base_dir` and `state_dir` added; secret, for its connector only."""
    return {**compiled.connections[connection].config, **project_places(compiled)}


def project_places(compiled: CompiledProject) -> Mapping[str, str]:
    """Return what every connector is told of the project: where its files are, and what it must not write into."""
    return {"base_dir": str(compiled.project_dir), "state_dir": str(compiled.state_dir)}


def read_spec(
    node: SourceLoadNode,
    *,
    watermark: str | None = None,
    lower_inclusive: bool = False,
    upper_bound: str | None = None,
    null_cursor: bool = False,
    prior_token: str | None = None,
) -> ReadSpec:
    """Build the spec of one read; without bounds it is the planning probe."""
    options = dict(node.options)
    if node.columns:
        options["columns"] = dict(node.columns)
    return ReadSpec(
        connection=node.connection,
        entity=node.entity,
        options=options,
        cursor=node.incremental.cursor if node.incremental else None,
        watermark=watermark,
        lower_inclusive=lower_inclusive,
        null_cursor=null_cursor,
        upper_bound=upper_bound,
        prior_token=prior_token,
        change_capture=node.mode is SyncMode.CDC,
    )


def read_hints(node: SourceLoadNode, capabilities: Capability) -> ReadHints:
    """Return the half of the hints that the connector honours."""
    return ReadHints(
        columns=node.hints.columns if Capability.COLUMN_PRUNING in capabilities else None,
        predicate_sql=node.hints.predicate_sql if Capability.PREDICATE_PUSHDOWN in capabilities else None,
    )


def write_spec(node: SinkWriteNode, attempt: WriteAttempt | None = None, *, has_unique_keys: bool = False) -> WriteSpec:
    """Build the spec of one write; the attempt is stamped on the universal path only."""
    return WriteSpec(
        connection=node.connection,
        entity=node.entity,
        strategy=node.strategy,
        schema_policy=node.schema_policy,
        keys=node.keys,
        has_unique_keys=has_unique_keys,
        on_delete=node.on_delete,
        options=node.options,
        attempt=attempt,
    )
