"""The plain lines are pinned, one situation at a time."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from pz_engine.cli.render import console
from pz_engine.cli.render.console import event_lines
from pz_engine.errors.diagnostics import Diagnostic, Severity
from pz_engine.events import types
from pz_engine.model.run import ChannelTimings, DeliveryReport, NodeError, NodeKind, NodeResult, NodeStatus, RunStatus

AT: dict[str, Any] = {"at": datetime(2026, 10, 30, 10, 15, tzinfo=timezone.utc), "run_id": "r"}


def done(kind: NodeKind = NodeKind.PIPELINE, **fields: Any) -> types.NodeCompleted:
    values: dict[str, Any] = {"id": "n", "kind": kind, "name": "trips_clean", "status": NodeStatus.SUCCESS}
    values |= {"rows": 47011, "duration_ms": 96} | fields
    return types.NodeCompleted(**AT, result=NodeResult(**values))


FAILED = done(
    NodeKind.SINK_WRITE,
    name="warehouse.trips",
    status=NodeStatus.FAILED,
    rows=0,
    duration_ms=3140,
    error=NodeError("PZ0501", "output 'trips' could not be written\nthe server suggests: reduce the batch size\n\nend"),
    delivery=DeliveryReport("best_effort", 45, 12),
)


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (done(), ["ok trips_clean 47011 rows 96ms"]),
        (done(rows=None), ["ok trips_clean - rows 96ms"]),
        (done(status=NodeStatus.SKIPPED, rows=0, duration_ms=0), ["skip trips_clean 0 rows 0ms"]),
        (
            FAILED,
            [
                "FAIL warehouse.trips 0 rows 3140ms",
                "  PZ0501: output 'trips' could not be written",
                "  the server suggests: reduce the batch size",
                "",
                "  end",
                "delivery stopped: up to 45 row(s) already visible at the destination (abort: best_effort)",
                "resumed past 12 delivered row(s)",
            ],
        ),
        (
            done(NodeKind.SOURCE_LOAD, duration_ms=100, timings=ChannelTimings(90, 71)),
            [
                "ok trips_clean 47011 rows 100ms",
                "hint: trips_clean: source-bound — ingest idle 71% of the node's time",
            ],
        ),
        (
            types.RetryScheduled(
                **AT,
                node_id="n",
                node_name="warehouse.trips",
                attempt=2,
                max_attempts=3,
                delay_ms=1000,
                reason="server closed the connection",
            ),
            ["retry: warehouse.trips attempt 2/3 in 1000ms (server closed the connection)"],
        ),
        (
            types.ConnectorLog(**AT, level="warn", connection="shop", message="slow"),
            ["connector [warn] shop: slow"],
        ),
        (
            types.ConnectorLog(**AT, level="novel", connection="shop", message="x"),
            ["connector [novel] shop: x"],
        ),
        (types.ConnectorLog(**AT, level="info", connection="shop", message="x"), []),
        (types.NodeStarted(**AT, node_id="n", kind=NodeKind.CHECK, node_name="c"), []),
        (types.NodeQueued(**AT, node_id="n"), []),
        (
            types.RunCompleted(**AT, status=RunStatus.SUCCESS, succeeded=1, failed=0, skipped=0, duration_ms=1),
            [],
        ),
        (
            types.RetentionSwept(**AT, runs_swept=3, bytes_freed=1288490189, failures=0),
            ["cleaned 3 staging databases, freed 1.2 GB"],
        ),
        (
            types.RetentionSwept(**AT, runs_swept=1, bytes_freed=512, failures=2),
            ["cleaned 1 staging database, freed 512 B, 2 could not be deleted"],
        ),
        (types.RetentionSwept(**AT, runs_swept=0, bytes_freed=0, failures=0), []),
    ],
)
def test_lines_of_an_event(event: types.RunEvent, lines: list[str]) -> None:
    """Each event has exactly these lines at the normal level."""
    assert list(event_lines(event)) == lines


@pytest.mark.parametrize(
    ("event", "code", "named"),
    [
        (
            types.MergeKeyDuplicatesDetected(
                **AT, node_id="n", output="trips", keys=("id",), duplicate_groups=3, extra_rows=5
            ),
            "PZ0522",
            "trips",
        ),
        (
            types.LossyIntegerInferenceDetected(**AT, node_id="n", connection="a", entity="b", columns=("ref",)),
            "PZ0523",
            "ref",
        ),
        (
            types.AmbiguousDateInferenceDetected(
                **AT, node_id="n", connection="a", entity="b", columns=("day",), format="%d/%m/%Y"
            ),
            "PZ0524",
            "%d/%m/%Y",
        ),
    ],
)
def test_data_warnings_name_code_place_and_way_out(event: types.RunEvent, code: str, named: str) -> None:
    """A run-time warning is one line with its code and a next step."""
    (line,) = event_lines(event)
    assert line.startswith(f"warning: {code} ")
    assert named in line
    assert " — " in line


def test_quiet_keeps_failures_only() -> None:
    """Quiet shows what failed and nothing else."""
    assert event_lines(done(), console.QUIET) == ()
    assert event_lines(FAILED, console.QUIET)[0].startswith("FAIL")
    warning = types.ConnectorLog(**AT, level="warn", connection="shop", message="slow")
    assert event_lines(warning, console.QUIET) == ()


def test_verbose_adds_starts_progress_and_connectors() -> None:
    """One -v adds starts and progress, two add what connectors say at level info, never debug."""
    started = types.NodeStarted(**AT, node_id="n", kind=NodeKind.CHECK, node_name="c")
    progress = types.NodeProgress(**AT, node_id="n", node_name="c", rows=7, bytes=1, batches=10)
    info = types.ConnectorLog(**AT, level="INFO", connection="shop", message="x")
    debug = types.ConnectorLog(**AT, level="debug", connection="shop", message="x")
    assert event_lines(started, console.VERBOSE) == ("start c",)
    assert event_lines(progress, console.VERBOSE) == ("progress c 7 rows",)
    assert event_lines(info, console.VERBOSE) == ()
    assert event_lines(info, console.VERY_VERBOSE) == ("connector [INFO] shop: x",)
    assert event_lines(debug, console.VERY_VERBOSE) == ()


def test_problem_and_warning_lines() -> None:
    """Errors carry file and line, warnings the file; place and step are left out when there is none."""
    problem = Diagnostic("PZ0201", "there is no 'x'", "pipelines/a.sql", 7, "did you mean 'y'?")
    warning = Diagnostic("PZ0223", "no consumer", "pipelines/b.sql", 3, "add a sink()", Severity.WARNING)
    assert console.problem_line(problem) == (
        "error PZ0201: there is no 'x' (pipelines/a.sql:7) — hint: did you mean 'y'?"
    )
    assert console.warning_line(warning) == "warning: PZ0223 no consumer (pipelines/b.sql) — add a sink()"
    assert console.problem_line(Diagnostic("PZ0500", "odd")) == "error PZ0500: odd"
    assert console.warning_line(Diagnostic("PZ0364", "odd")) == "warning: PZ0364 odd"


def test_summary_counts_by_status() -> None:
    """The closing line counts every node once and says where results are."""
    results = (done().result, FAILED.result, done(status=NodeStatus.SKIPPED).result)
    assert console.summary_line("r-1", results, ".pz/runs/r-1/run_results.json") == (
        "run r-1: 1 succeeded, 1 failed, 1 skipped (.pz/runs/r-1/run_results.json)"
    )
    assert console.summary_line("r-1", (), None) == "run r-1: 0 succeeded, 0 failed, 0 skipped"


@pytest.mark.parametrize(
    ("kind", "producer", "consumer", "label"),
    [
        (NodeKind.SOURCE_LOAD, 100, 60, "source-bound"),
        (NodeKind.SOURCE_LOAD, 60, 59, "ingest-bound"),
        (NodeKind.SOURCE_LOAD, 59, 59, None),
        (NodeKind.SINK_WRITE, 60, 100, "staging-bound"),
        (NodeKind.SINK_WRITE, 59, 60, "sink-bound"),
        (NodeKind.SINK_WRITE, 59, 59, None),
        (NodeKind.PIPELINE, 100, 100, None),
    ],
)
def test_hint_needs_sixty_percent(kind: NodeKind, producer: int, consumer: int, label: str | None) -> None:
    """A side that stalled for at least 60 % is named, the source's consumer and the sink's producer first."""
    event = done(kind, duration_ms=100, timings=ChannelTimings(producer, consumer))
    hints = [line for line in event_lines(event) if line.startswith("hint:")]
    assert [label in hint for hint in hints] == ([True] if label else [])


def test_hint_of_an_instant_node_is_none() -> None:
    """A node too short to measure gets no hint."""
    assert len(event_lines(done(NodeKind.SOURCE_LOAD, duration_ms=0, timings=ChannelTimings(5, 5)))) == 1
