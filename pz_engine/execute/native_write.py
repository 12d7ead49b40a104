"""A destination that DuckDB writes itself: guards, statements, then file moves.

Used by the plain sink write and by the fused group. Nothing is visible under a final name before the move.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from pz_engine.base.fault_points import fault_point
from pz_engine.compile.dag import SinkWriteNode
from pz_engine.connectors.fragments import SOURCE_PLACEHOLDER, NativeCopy
from pz_engine.duck.egress import copy_source
from pz_engine.duck.quoting import staging_relation
from pz_engine.duck.schema_policies import reconcile, refuse_collated_keys
from pz_engine.duck.session import DuckCursor
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.execute.context import RunContext
from pz_engine.execute.opened import open_sink
from pz_engine.model.policies import Strategy
from pz_engine.plan.specs import write_spec


def prepare_copy(
    context: RunContext, cursor: DuckCursor, node: SinkWriteNode, *, has_unique_keys: bool = False
) -> NativeCopy:
    """Open the connector, take its statements and run its setup.

    Args:
        context: the run.
        cursor: the node's cursor.
        node: the sink.
        has_unique_keys: what `guard_merge_keys` found.

    Raises:
        PzConnectorError: the connector or its setup failed.
    """
    with open_sink(context, node) as opened:
        copy = opened.sink.native_copy(write_spec(node, has_unique_keys=has_unique_keys))
    if copy is None:
        raise PzConnectorError(
            f"connector '{opened.connector.info.name}' offered a native copy when planning and none now",
            is_transient=False,
        )
    context.setup.ensure(cursor, copy.setup, writes=True)
    return copy


def run_copy(
    cursor: DuckCursor, node: SinkWriteNode, copy: NativeCopy, *, after_statement: Callable[[], None] = lambda: None
) -> int:
    """Run the statements and publish the files; returns the number of rows written.

    Args:
        cursor: the node's cursor.
        node: the sink.
        copy: what `prepare_copy` returned.
        after_statement: called once right after the last statement, while its profile is still there.

    Raises:
        PzConnectorError: the target's columns do not fit the schema policy.
        DuckStatementError: a statement failed; temporaries are gone.
        OSError: a directory or the final move failed; temporaries are gone.
    """
    relation = staging_relation(node.pipeline)
    source = copy_source(cursor, relation, decimal_hugeint=copy.decimal_hugeint)
    for move in copy.finalizations:
        move.final.parent.mkdir(parents=True, exist_ok=True)
        move.temporary.parent.mkdir(parents=True, exist_ok=True)
    try:
        with cursor.transaction() if copy.is_transactional else contextlib.nullcontext():
            if copy.target_table is not None:
                reconcile(cursor, copy.target_table, f"select * from {relation}", node.schema_policy)
                if node.strategy is Strategy.MERGE:
                    refuse_collated_keys(cursor, copy.target_table, node.keys)
            rows = 0
            for statement in copy.statements:
                rows = cursor.changed_rows(statement.replace(SOURCE_PLACEHOLDER, source))
            after_statement()
            fault_point("before_sink_commit")
        for move in copy.finalizations:
            _sync(str(move.temporary))
        fault_point("before_rename")
        for move in copy.finalizations:
            move.temporary.replace(move.final)
        fault_point("after_sink_commit")
    except BaseException:
        for move in copy.finalizations:
            with contextlib.suppress(OSError):
                move.temporary.unlink(missing_ok=True)
        raise
    return rows


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def committed_files(copy: NativeCopy) -> Iterator[int]:
    """Yield the size in bytes of every published file."""
    for move in copy.finalizations:
        with contextlib.suppress(OSError):
            yield move.final.stat().st_size
