"""The fold: events in, one summary of the run out.

A number nobody measured is missing, never zero, and a node nobody reported is unknown, never a success. Totals over
missing numbers say "at least".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from pz_engine.base.redact import ErrorSummary
from pz_engine.events.run_journal import RESULTS_FILE
from pz_engine.model.run import NodeKind, NodeResult, NodeStatus, RunStatus

NodeState = Literal["queued", "running", "success", "failed", "skipped", "unknown"]
Outcome = Literal["succeeded", "failed", "unknown"]

_FINAL: Final[Mapping[str, NodeState]] = {"success": "success", "failed": "failed", "skipped": "skipped"}
_COUNTED: Final = ("success", "failed", "unknown", "running")
_CARRIED: Final = "carried_forward"


class NodeSummary(Struct):
    """One node; None stands for what was not reported."""

    node_id: str
    kind: str
    name: str
    status: NodeState = "unknown"
    started_at: str | None = None
    finished_at: str | None = None
    duration_ms: int | None = None
    rows: int | None = None
    attempts: int | None = None
    error: ErrorSummary | None = None
    error_code: str | None = None
    provenance: str | None = None
    checks_passed: int | None = None
    """Checks on a pipeline; None when none ran or when it is not known whose they were."""

    checks_failed: int | None = None
    blocked_by: tuple[str, ...] | None = None
    """Names of the failed ancestors of a skipped node, sorted; None when neither journal nor graph tells."""


class RowTotal(Struct, frozen=True):
    """Rows over several nodes."""

    rows: int
    unreported: int
    """Nodes that ran, or may have, without a count."""

    is_open: bool = False
    """The run's end or its list of nodes is not known, so there may be nodes that nothing tells of."""

    @property
    def is_at_least(self) -> bool:
        """Tell whether the true total may be larger."""
        return self.is_open or self.unreported > 0


class RunSummary(Struct, frozen=True):
    """A run as its events tell it."""

    run_id: str | None
    outcome: Outcome
    live: bool
    """False when rebuilt from results instead of a journal."""

    nodes: tuple[NodeSummary, ...] = ()
    project_name: str | None = None
    mode: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    duration_ms: int | None = None
    rows_loaded: RowTotal = field(default_factory=lambda: RowTotal(0, 0))
    rows_written: RowTotal = field(default_factory=lambda: RowTotal(0, 0))
    rows_carried_forward: RowTotal = field(default_factory=lambda: RowTotal(0, 0))
    """Rows of sinks that committed in an earlier run, kept apart."""


def fold(records: Iterable[Mapping[str, Any]], dependencies: Mapping[str, Sequence[str]] | None = None) -> RunSummary:
    """Fold journal records into a summary.

    Args:
        records: what `journal_record` makes or `JournalReader` yields, in order.
        dependencies: ids each node depends on, when the graph is known; it tells whose a check is and what blocked a
            skipped node.
    """
    nodes: dict[str, NodeSummary] = {}
    started: Mapping[str, Any] = {}
    completed: Mapping[str, Any] = {}
    run_id: str | None = None
    for record in records:
        run_id = run_id or _text(record, "runId")
        match record.get("event"):
            case "run_started":
                started = record
                for named in _records(record.get("nodes")):
                    _node(nodes, named)
            case "run_completed":
                completed = record
            case "node_queued":
                _node(nodes, record).status = "queued"
            case "node_started":
                _start(_node(nodes, record), record)
            case "retry_scheduled":
                node = _node(nodes, record)
                node.attempts = (node.attempts or 1) + 1
            case "node_completed":
                _complete(_node(nodes, record), record)
            case _:
                pass
    if completed:
        for node in nodes.values():
            node.status = node.status if node.status in _FINAL else "unknown"
    return _summary(
        nodes,
        dependencies,
        is_open=not completed or not isinstance(started.get("nodes"), list),
        run_id=run_id,
        outcome=_outcome(_text(completed, "status")),
        live=started.get("live") is not False,
        project_name=_text(started, "projectName"),
        mode=_text(started, "mode"),
        started_at=_text(started, "at"),
        finished_at=_text(completed, "at"),
        duration_ms=_count(completed, "durationMs"),
    )


def rebuild(
    run_id: str,
    status: RunStatus,
    results: Sequence[NodeResult],
    dependencies: Mapping[str, Sequence[str]] | None = None,
) -> RunSummary:
    """Make the summary of a run whose journal is gone: no start times, no queue, no attempts."""
    nodes: dict[str, NodeSummary] = {}
    for result in results:
        node = NodeSummary(result.id, result.kind.value, result.name)
        nodes[result.id] = node
        is_failed = result.status is NodeStatus.FAILED
        error = ErrorSummary.from_message(result.error.message, RESULTS_FILE) if is_failed and result.error else None
        record = {
            "status": result.status.value,
            "rows": result.rows,
            "durationMs": result.duration_ms,
            "provenance": result.provenance,
            "errorCode": result.error.code if result.error else None,
        }
        _complete(node, record)
        node.error = error
        node.attempts = None
    is_open = status is RunStatus.RUNNING
    return _summary(nodes, dependencies, is_open=is_open, run_id=run_id, outcome=_outcome(status.value), live=False)


def summary_json(summary: RunSummary) -> dict[str, Any]:
    """Return a summary in its JSON shape; what is not known is null."""
    totals: dict[str, Any] = {}
    for name, total in (
        ("rowsLoaded", summary.rows_loaded),
        ("rowsWritten", summary.rows_written),
        ("rowsCarriedForward", summary.rows_carried_forward),
    ):
        totals |= {name: total.rows, f"{name}Unreported": total.unreported, f"{name}AtLeast": total.is_at_least}
    return {
        "runId": summary.run_id,
        "outcome": summary.outcome,
        "live": summary.live,
        "projectName": summary.project_name,
        "mode": summary.mode,
        "startedAt": summary.started_at,
        "finishedAt": summary.finished_at,
        "durationMs": summary.duration_ms,
        **totals,
        "nodes": [_node_json(node) for node in summary.nodes],
    }


def _node_json(node: NodeSummary) -> dict[str, Any]:
    error = node.error
    has_checks = node.checks_passed is not None
    return {
        "nodeId": node.node_id,
        "kind": node.kind,
        "name": node.name,
        "status": node.status,
        "startedAt": node.started_at,
        "finishedAt": node.finished_at,
        "durationMs": node.duration_ms,
        "rows": node.rows,
        "attempts": node.attempts,
        "provenance": node.provenance,
        "errorCode": node.error_code,
        "errorMessage": error.message if error else None,
        "errorKind": error.kind if error else None,
        "detailsAt": error.details_at if error else None,
        "checks": {"passed": node.checks_passed, "failed": node.checks_failed} if has_checks else None,
        "blockedBy": list(node.blocked_by) if node.blocked_by is not None else None,
    }


def _summary(
    nodes: dict[str, NodeSummary], dependencies: Mapping[str, Sequence[str]] | None, *, is_open: bool, **fields: Any
) -> RunSummary:
    _attach_checks(nodes, dependencies)
    if dependencies is not None:
        _attach_blockers(nodes, dependencies)
    moved = [node for node in nodes.values() if node.provenance != _CARRIED]
    carried = [node for node in nodes.values() if node.provenance == _CARRIED]
    return RunSummary(
        nodes=tuple(nodes.values()),
        rows_loaded=_total(moved, NodeKind.SOURCE_LOAD, is_open=is_open),
        rows_written=_total(moved, NodeKind.SINK_WRITE, is_open=is_open),
        rows_carried_forward=_total(carried, NodeKind.SINK_WRITE, is_open=is_open),
        **fields,
    )


def _node(nodes: dict[str, NodeSummary], record: Mapping[str, Any]) -> NodeSummary:
    node_id = _text(record, "nodeId") or ""
    node = nodes.setdefault(node_id, NodeSummary(node_id, "", ""))
    node.kind = _text(record, "kind") or node.kind
    node.name = _text(record, "name") or node.name
    return node


def _start(node: NodeSummary, record: Mapping[str, Any]) -> None:
    node.status = "running"
    node.started_at = _text(record, "at")
    node.attempts = node.attempts or 1


def _complete(node: NodeSummary, record: Mapping[str, Any]) -> None:
    node.status = _FINAL.get(_text(record, "status") or "", "unknown")
    node.finished_at = _text(record, "at")
    node.provenance = _text(record, "provenance")
    blockers = record.get("blockedBy")
    if isinstance(blockers, list) and all(isinstance(name, str) for name in blockers):
        node.blocked_by = tuple(blockers)
    duration = _count(record, "durationMs")
    if node.status == "success" or (node.status == "failed" and duration):
        node.duration_ms = duration
    if node.status == "success" and node.kind != NodeKind.CHECK.value:
        node.rows = _count(record, "rows")
    if node.status == "failed":
        node.error_code = _text(record, "errorCode")
        message = _text(record, "errorMessage")
        if message is not None:
            summary = ErrorSummary.from_message(message, _text(record, "detailsAt"))
            kind = _text(record, "errorKind") or summary.kind
            node.error = replace(summary, kind=kind, outer_kind=_text(record, "errorOuterKind") or summary.outer_kind)


def _attach_checks(nodes: dict[str, NodeSummary], dependencies: Mapping[str, Sequence[str]] | None) -> None:
    for check in nodes.values():
        if check.kind != NodeKind.CHECK.value or check.status not in {"success", "failed"}:
            continue
        pipeline = _owner(check, nodes, dependencies)
        if pipeline is None:
            continue
        pipeline.checks_passed = (pipeline.checks_passed or 0) + (check.status == "success")
        pipeline.checks_failed = (pipeline.checks_failed or 0) + (check.status == "failed")


def _owner(
    check: NodeSummary, nodes: Mapping[str, NodeSummary], dependencies: Mapping[str, Sequence[str]] | None
) -> NodeSummary | None:
    """Return the pipeline a check tests: from the graph, else from its name when only one pipeline fits."""
    if dependencies is not None:
        owners = [nodes[parent] for parent in dependencies.get(check.node_id, ()) if parent in nodes]
    else:
        owners = [
            node
            for node in nodes.values()
            if node.kind == NodeKind.PIPELINE.value and check.name.startswith(f"check_{node.name}_")
        ]
    return owners[0] if len(owners) == 1 else None


def _attach_blockers(nodes: dict[str, NodeSummary], dependencies: Mapping[str, Sequence[str]]) -> None:
    for node in nodes.values():
        if node.status == "skipped":
            seen: set[str] = set()
            waiting = list(dependencies.get(node.node_id, ()))
            while waiting:
                current = waiting.pop()
                if current not in seen:
                    seen.add(current)
                    waiting.extend(dependencies.get(current, ()))
            failed = (nodes[i].name for i in seen if i in nodes and nodes[i].status == "failed")
            node.blocked_by = tuple(sorted(failed))


def _total(nodes: Sequence[NodeSummary], kind: NodeKind, *, is_open: bool) -> RowTotal:
    counted = [node for node in nodes if node.kind == kind.value and node.status in _COUNTED]
    return RowTotal(sum(node.rows or 0 for node in counted), sum(node.rows is None for node in counted), is_open)


def _outcome(status: str | None) -> Outcome:
    if status == RunStatus.SUCCESS.value:
        return "succeeded"
    ended_badly = {RunStatus.COMPLETED_WITH_FAILURES.value, RunStatus.FATAL.value}
    return "failed" if status in ended_badly else "unknown"


def _records(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield what is a record in what should be a list of them."""
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def _text(record: Mapping[str, Any], key: str) -> str | None:
    value = record.get(key)
    return value if isinstance(value, str) else None


def _count(record: Mapping[str, Any], key: str) -> int | None:
    value = record.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
