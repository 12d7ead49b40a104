"""The fold shows what was reported and nothing else."""

from __future__ import annotations

from typing import Any

from pz_engine.events.run_stats import RunSummary, fold, rebuild, summary_json
from pz_engine.model.run import NodeError, NodeKind, NodeResult, NodeStatus, RunStatus

RUN = "20261104T061500000Z-1b3c"
LOAD = {"nodeId": "l", "kind": "SourceLoad", "name": "src_a__b"}
CLEAN = {"nodeId": "p", "kind": "Pipeline", "name": "clean"}
CHECK = {"nodeId": "c", "kind": "Check", "name": "check_clean_not_null_id"}
SINK = {"nodeId": "s", "kind": "SinkWrite", "name": "out.clean"}
GRAPH = {"l": (), "p": ("l",), "c": ("p",), "s": ("p",)}


def event(name: str, /, *parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    merged: dict[str, Any] = {"event": name, "at": "2026-11-04T06:15:00.000Z", "runId": RUN}
    for part in parts:
        merged |= part
    return merged | fields


def started() -> dict[str, Any]:
    return event("run_started", projectName="p", nodeCount=4, mode="run", live=True, nodes=[LOAD, CLEAN, CHECK, SINK])


def done(node: dict[str, Any], status: str = "success", rows: int | None = 5, **fields: Any) -> dict[str, Any]:
    counted = {} if rows is None else {"rows": rows}
    return event("node_completed", node, counted, status=status, durationMs=7, **fields)


def by_id(summary: RunSummary) -> dict[str, Any]:
    return {node.node_id: node for node in summary.nodes}


def test_complete_run_is_exact() -> None:
    """A run that ended well has exact totals and no doubt."""
    summary = fold(
        [
            started(),
            event("node_queued", nodeId="l"),
            event("node_started", LOAD),
            event("retry_scheduled", nodeId="l", name="src_a__b", attempt=2),
            done(LOAD),
            event("node_started", CLEAN),
            done(CLEAN, rows=None),
            done(CHECK, rows=0),
            done(SINK, rows=4),
            event("run_completed", status="success", durationMs=90),
        ]
    )
    nodes = by_id(summary)
    assert summary.outcome == "succeeded"
    assert nodes["l"].attempts == 2
    assert nodes["p"].rows is None
    assert nodes["c"].rows is None
    assert (nodes["p"].checks_passed, nodes["p"].checks_failed) == (1, 0)
    assert (summary.rows_loaded.rows, summary.rows_loaded.is_at_least) == (5, False)
    assert (summary.rows_written.rows, summary.rows_written.unreported) == (4, 0)
    assert summary.duration_ms == 90


def test_killed_run_says_at_least_zero() -> None:
    """A run that died young has unknown nodes and totals that admit it."""
    summary = fold([started(), event("node_queued", nodeId="s"), event("node_started", LOAD)])
    nodes = by_id(summary)
    assert summary.outcome == "unknown"
    assert nodes["l"].status == "running"
    assert nodes["s"].status == "queued"
    assert nodes["p"].status == "unknown"
    assert nodes["p"].attempts is None
    assert (summary.rows_loaded.rows, summary.rows_loaded.is_at_least) == (0, True)


def test_forced_zeros_turn_back_into_nothing() -> None:
    """Skipped and failed nodes have no rows, a skipped one no duration either."""
    summary = fold(
        [
            started(),
            done(LOAD, "failed", rows=0, errorCode="PZ0501", errorMessage="bad 'x'", errorKind="IO Error"),
            done(CLEAN, "skipped", rows=0),
            done(SINK, "skipped", rows=0),
            event("run_completed", status="completed_with_failures"),
        ],
        GRAPH,
    )
    nodes = by_id(summary)
    assert summary.outcome == "failed"
    assert nodes["l"].rows is None
    assert nodes["l"].duration_ms == 7
    assert nodes["l"].error.message == "bad [value removed]"
    assert nodes["l"].error.kind == "IO Error"
    assert nodes["p"].duration_ms is None
    assert nodes["s"].blocked_by == ("src_a__b",)
    assert nodes["c"].status == "unknown"
    assert summary.rows_written.unreported == 0
    assert summary.rows_loaded.unreported == 1


def test_blockers_are_not_known_without_the_graph() -> None:
    """Nothing is guessed about what blocked a node."""
    assert by_id(fold([started(), done(CLEAN, "skipped")]))["p"].blocked_by is None
    told = {**done(CLEAN, "skipped"), "blockedBy": ["src_a__b"]}
    assert by_id(fold([started(), told]))["p"].blocked_by == ("src_a__b",)


def test_negative_and_odd_counts_are_not_reported() -> None:
    """A count that cannot be one is missing."""
    assert by_id(fold([started(), done(LOAD, rows=-1)]))["l"].rows is None
    assert by_id(fold([started(), done(LOAD, rows=True)]))["l"].rows is None


def test_check_with_two_possible_owners_is_not_counted() -> None:
    """Without the graph an ambiguous name is given to nobody, with it to its own pipeline."""
    longer = {"nodeId": "q", "kind": "Pipeline", "name": "clean_not"}
    records = [event("run_started", nodes=[CLEAN, longer, CHECK]), done(CHECK, "failed", rows=3)]
    assert all(node.checks_failed is None for node in fold(records).nodes)
    assert by_id(fold(records, {"c": ("p",)}))["p"].checks_failed == 1


def test_carried_forward_sinks_are_counted_apart() -> None:
    """Rows that moved in an earlier run are no rows of this one."""
    summary = fold([started(), done(SINK, rows=9, provenance="carried_forward")])
    assert summary.rows_written.rows == 0
    assert summary.rows_carried_forward.rows == 9


def test_results_rebuild_what_they_hold() -> None:
    """Without a journal the results give statuses, rows, durations and errors, marked not live."""
    results = [
        NodeResult("l", NodeKind.SOURCE_LOAD, "src_a__b", NodeStatus.SUCCESS, 5, 7),
        NodeResult("s", NodeKind.SINK_WRITE, "out.clean", NodeStatus.FAILED, 0, 7, NodeError("PZ0501", "Odd Error: 5")),
    ]
    summary = rebuild(RUN, RunStatus.COMPLETED_WITH_FAILURES, results)
    nodes = by_id(summary)
    assert not summary.live
    assert summary.outcome == "failed"
    assert nodes["l"].rows == 5
    assert nodes["l"].attempts is None
    assert nodes["s"].error.kind == "Odd Error"
    assert summary.rows_written.is_at_least


def test_json_says_null_for_what_is_not_known() -> None:
    """The JSON shape spells missing as null and carries both totals and doubts."""
    shape = summary_json(fold([started()]))
    assert shape["nodes"][0]["rows"] is None
    assert shape["nodes"][0]["checks"] is None
    assert (shape["rowsLoaded"], shape["rowsLoadedUnreported"], shape["rowsLoadedAtLeast"]) == (0, 1, True)


def test_run_without_a_known_end_or_start_is_never_exact() -> None:
    """A journal that lost its first or last line, and results that still say running, may leave nodes out."""
    ended = event("run_completed", status="success")
    assert fold([started(), *(done(node) for node in (LOAD, CLEAN, SINK))]).rows_written.is_at_least
    assert fold([done(LOAD), ended]).rows_written.is_at_least
    assert not fold([started(), *(done(node) for node in (LOAD, CLEAN, SINK)), ended]).rows_written.is_at_least
    load = NodeResult("l", NodeKind.SOURCE_LOAD, "src_a__b", NodeStatus.SUCCESS, 5, 7)
    assert rebuild(RUN, RunStatus.RUNNING, [load]).rows_written.is_at_least
    assert not rebuild(RUN, RunStatus.SUCCESS, [load]).rows_written.is_at_least


def test_fields_of_another_kind_say_nothing() -> None:
    """Whoever wrote the journal: a value that is not what it should be is missing, and the rest is read."""
    odd: list[Any] = [None, 5, "text", {"nodeId": 7, "name": []}, [], True]
    for value in odd:
        summary = fold([event("run_started", nodes=value, mode=value, projectName=value), done(LOAD)])
        assert by_id(summary)["l"].rows == 5
    summary = fold([event("run_started", nodes=odd), done(LOAD), event("node_completed", blockedBy=5, status=[])])
    assert by_id(summary)["l"].rows == 5
    assert summary.rows_loaded.is_at_least
