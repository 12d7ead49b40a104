"""Runs a sink or staged pipeline together with the fused relations that feed it, as one statement.

Fused relations become views, so the one statement streams from native scan to native copy; counts come from that
statement's profile, and a count nobody took is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from pz_engine.base.cancellation import Cancelled
from pz_engine.compile.dag import Node, PipelineNode, SinkWriteNode, SourceLoadNode
from pz_engine.connectors.fragments import NativeCopy
from pz_engine.duck.cast_diagnosis import locate
from pz_engine.duck.checked_scan import cast_failure
from pz_engine.duck.quoting import staging_relation
from pz_engine.duck.scan_counts import ScanCount, collect, enable
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.execute.bounds import Bounds
from pz_engine.execute.context import Attempt
from pz_engine.execute.gates.merge_keys import guard_merge_keys
from pz_engine.execute.native_read import PreparedScan, prepare_scan, recover, run_with_recovery
from pz_engine.execute.native_write import committed_files, prepare_copy, run_copy
from pz_engine.execute.outcome import Execution, MemberFailure
from pz_engine.execute.pipeline_sql import pipeline_query
from pz_engine.model.policies import Strategy
from pz_engine.model.run import ColumnType

_SQL_ERRORS = frozenset({"ConversionException", "OutOfRangeException", "InvalidInputException", "BinderException"})


class _Group(Struct):
    """Working state of one attempt."""

    scans: dict[str, PreparedScan] = field(default_factory=dict)
    counts: tuple[ScanCount, ...] = ()
    columns: dict[str, tuple[ColumnType, ...]] = field(default_factory=dict)
    """Columns of fused pipelines; binding a view again opens every file it reads."""


def run_group(attempt: Attempt, members: Sequence[Node], root: Node) -> dict[str, Execution]:
    """Run one attempt of a whole group.

    Args:
        attempt: the attempt.
        members: every node of the group in topological order, the root last.
        root: the sink or staged pipeline whose statement this is.

    Raises:
        MemberFailure: the group failed; names the member the failure belongs to.
        Cancelled: the group was cancelled.
    """
    group = _Group()
    for member in members:
        if member.id != root.id:
            _define_view(attempt, group, member)
    enable(attempt.cursor)
    rows, copy = _run_root(attempt, group, root)
    return {member.id: _execution(attempt, group, member, root, rows, copy) for member in members}


def _define_view(attempt: Attempt, group: _Group, member: Node) -> None:
    context, cursor, relation = attempt.context, attempt.cursor, staging_relation(member.name)
    try:
        if isinstance(member, SourceLoadNode):
            prepared = prepare_scan(context, cursor, member, Bounds())
            _, group.scans[member.id] = run_with_recovery(
                context, cursor, prepared, lambda query: cursor.execute(f"create or replace view {relation} as {query}")
            )
        elif isinstance(member, PipelineNode):
            query = pipeline_query(context, cursor, member)
            cursor.execute(f"create or replace view {relation} as (\n{query}\n)")
    except Cancelled:
        raise
    except Exception as error:
        raise MemberFailure(member.id, error) from None


def _run_root(attempt: Attempt, group: _Group, root: Node) -> tuple[int, NativeCopy | None]:
    while True:
        try:
            return _run_once(attempt, group, root)
        except (Cancelled, MemberFailure):
            raise
        except DuckStatementError as error:
            if not _redefine(attempt, group, error):
                raise _attribute(attempt, group, root, error) from None
        except Exception as error:
            raise MemberFailure(root.id, error) from None


def _run_once(attempt: Attempt, group: _Group, root: Node) -> tuple[int, NativeCopy | None]:
    context, cursor = attempt.context, attempt.cursor

    def count_scans() -> None:
        group.counts = collect(cursor)
        for node_id, scan in group.scans.items():
            try:
                scan.refuse_changed_files()
            except PzConnectorError as error:
                raise MemberFailure(node_id, error) from None

    if isinstance(root, SinkWriteNode):
        guard_merge_keys(attempt, root, staging_relation(root.pipeline))
        copy = prepare_copy(context, cursor, root)
        return run_copy(cursor, root, copy, after_statement=count_scans), copy
    if not isinstance(root, PipelineNode):
        raise TypeError(root.name)
    query = pipeline_query(context, cursor, root)
    rows = cursor.changed_rows(f"create or replace table {staging_relation(root.name)} as (\n{query}\n)")
    count_scans()
    return rows, None


def _redefine(attempt: Attempt, group: _Group, error: DuckStatementError) -> bool:
    """Give a source another view when its content asks for one; True when the statement is worth repeating.

    Raises:
        MemberFailure: a source is at fault.
    """
    for node_id in _suspects(attempt, group, error):
        try:
            again = recover(attempt.context, attempt.cursor, group.scans[node_id], error)
        except PzConnectorError as failure:
            raise MemberFailure(node_id, failure) from None
        if again is not None:
            group.scans[node_id] = again
            relation = staging_relation(again.node.name)
            attempt.cursor.execute(f"create or replace view {relation} as {again.query}")
            return True
    return False


def _suspects(attempt: Attempt, group: _Group, error: DuckStatementError) -> list[str]:
    """Return the sources a failure may come from; a value that does not fit belongs to the file that holds it."""
    misfit = cast_failure(error)
    if misfit is None or len(group.scans) == 1:
        return list(group.scans)
    owners = [node_id for node_id, scan in group.scans.items() if misfit.column in scan.resolved.types]
    holders = [
        node_id
        for node_id in owners
        if locate(
            attempt.cursor,
            group.scans[node_id].scan,
            misfit.column,
            group.scans[node_id].resolved.types[misfit.column],
        )
    ]
    return holders[:1] or owners[:1]


def _attribute(attempt: Attempt, group: _Group, root: Node, error: DuckStatementError) -> MemberFailure:
    """Find the member a failed statement's error belongs to; the root when nothing tells."""
    for node_id, prepared in group.scans.items():
        if any(str(file) in error.raw for file in prepared.scan.files):
            return MemberFailure(node_id, error)
    pipelines = _fused_pipelines(attempt, root)
    if error.kind in _SQL_ERRORS and len(pipelines) == 1:
        return MemberFailure(pipelines[0], error)
    return MemberFailure(root.id, error)


def _fused_pipelines(attempt: Attempt, root: Node) -> list[str]:
    plan, graph = attempt.context.plan, attempt.context.compiled.graph
    found = [node_id for node_id, consumer in plan.fused_into.items() if isinstance(graph.by_id[node_id], PipelineNode)]
    reach = graph.ancestors([root.id])
    return [node_id for node_id in found if node_id in reach] + ([root.id] if isinstance(root, PipelineNode) else [])


def _execution(
    attempt: Attempt, group: _Group, member: Node, root: Node, rows: int, copy: NativeCopy | None
) -> Execution:
    if isinstance(member, SinkWriteNode):
        return Execution(
            rows=rows,
            columns=_columns(attempt, group, member.pipeline),
            row_count=rows if member.strategy is Strategy.REPLACE else None,
            location=attempt.context.shown_location(copy.location) if copy is not None else None,
            bytes=sum(committed_files(copy)) if copy is not None and copy.finalizations else None,
        )
    if isinstance(member, SourceLoadNode):
        return Execution(rows=_delivered(group, member), columns=group.scans[member.id].resolved.columns)
    columns = _columns(attempt, group, member.name)
    if member.id == root.id:
        return Execution(rows=rows, columns=columns, row_count=rows)
    is_written = attempt.context.plan.fused_into.get(member.id) == root.id and isinstance(root, SinkWriteNode)
    counted = rows if is_written and root.depends_on == (member.id,) else None
    return Execution(rows=counted, columns=columns, row_count=counted)


def _columns(attempt: Attempt, group: _Group, name: str) -> tuple[ColumnType, ...]:
    if name not in group.columns:
        group.columns[name] = attempt.cursor.describe(f"select * from {staging_relation(name)}")
    return group.columns[name]


def _delivered(group: _Group, node: SourceLoadNode) -> int:
    """Return what a fused source's scan delivered; the largest of several scans, 0 when the optimizer needed none."""
    scan = group.scans[node.id].scan
    matching = [
        count.rows
        for count in group.counts
        if (scan.files and count.reads_files(scan.files))
        or (not scan.files and scan.table is not None and count.table == scan.table)
    ]
    return max(matching, default=0)
