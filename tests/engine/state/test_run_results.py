"""Results are written in contract order, survive disks and threads, and are read with doubt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from pz_engine.model.run import (
    ChannelTimings,
    ColumnType,
    DeliveryReport,
    NodeError,
    NodeKind,
    NodeResult,
    NodeStatus,
    ObservedSchema,
    OperationCounts,
    PartitionCounts,
    RunStatus,
    WatermarkCandidate,
)
from pz_engine.state.run_results import RunResultsFile, read_results

RUN = "20261103T061500250Z-9e07"
START = datetime(2026, 11, 3, 6, 15, 0, 250999, tzinfo=timezone.utc)
END = datetime(2026, 11, 3, 6, 15, 9, 871000, tzinfo=timezone.utc)
RESULTS = (
    NodeResult(
        "5b1c77aa",
        NodeKind.SOURCE_LOAD,
        "src_shop__tickets",
        NodeStatus.SUCCESS,
        1840,
        912,
        provenance="reused",
        timings=ChannelTimings(11, 640),
        watermark=WatermarkCandidate("changed_at", "timestamp", "2026-11-03T06:02:17.000000"),
        caught_up=True,
        rejected=2,
    ),
    NodeResult("c204e9d1", NodeKind.PIPELINE, "tickets_clean", NodeStatus.SUCCESS, None, 37),
    NodeResult(
        "e87f0013",
        NodeKind.SINK_WRITE,
        "crm.tickets",
        NodeStatus.FAILED,
        0,
        4410,
        NodeError("PZ0501", "server answered 500 three times"),
        delivery=DeliveryReport("none", 600, 0),
    ),
)
GOLDEN = (
    '{"version":1,"runId":"20261103T061500250Z-9e07","status":"completed_with_failures",'
    '"startedAt":"2026-11-03T06:15:00.250Z","finishedAt":"2026-11-03T06:15:09.871Z","nodes":['
    '{"id":"5b1c77aa","kind":"SourceLoad","name":"src_shop__tickets","status":"success","provenance":"reused",'
    '"rows":1840,"durationMs":912,"error":null,"timings":{"producerStallMs":11,"consumerStallMs":640},'
    '"watermark":{"cursor":"changed_at","type":"timestamp","value":"2026-11-03T06:02:17.000000"},'
    '"caughtUp":true,"rejected":2},'
    '{"id":"c204e9d1","kind":"Pipeline","name":"tickets_clean","status":"success","durationMs":37,"error":null},'
    '{"id":"e87f0013","kind":"SinkWrite","name":"crm.tickets","status":"failed","rows":0,"durationMs":4410,'
    '"error":{"code":"PZ0501","message":"server answered 500 three times"},'
    '"delivery":{"abort_semantics":"none","rows_visible":600,"resumed_rows":0}}]}\n'
)


def written(path: Path, status: RunStatus, results: Sequence[NodeResult], finished: datetime | None = None) -> str:
    """Return the file of one snapshot."""
    file = RunResultsFile(path / "run_results.json", RUN, START)
    file.write(status, results, finished)
    return file.path.read_bytes().decode()


def test_bytes_are_golden(tmp_path: Path) -> None:
    """Key order, mixed casing and the rules of presence are pinned."""
    assert written(tmp_path, RunStatus.COMPLETED_WITH_FAILURES, RESULTS, END) == GOLDEN


def test_snapshots_of_a_growing_run_hold_what_each_node_says_now(tmp_path: Path) -> None:
    """A node that is written again with another result, or in another place, is shown as it is now."""
    file = RunResultsFile(tmp_path / "run_results.json", RUN, START)
    for known in range(len(RESULTS)):
        file.write(RunStatus.RUNNING, RESULTS[: known + 1])
    changed = (replace(RESULTS[0], rows=5), *RESULTS[:0:-1])
    file.write(RunStatus.COMPLETED_WITH_FAILURES, changed, END)
    read = read_results(file.path)
    assert read is not None
    assert read.results == changed


def test_casing_inside_the_optional_objects_is_mixed(tmp_path: Path) -> None:
    """Operations and the observed schema are spelled with underscores, `hintsHash` inside is not; partitions have none."""
    load = NodeResult(
        "5b1c77aa",
        NodeKind.SOURCE_LOAD,
        "src_shop__tickets",
        NodeStatus.SUCCESS,
        7,
        12,
        ops=OperationCounts(19, 1, 2050),
        partitions=PartitionCounts(4, 4, 2, 1),
        observed_schema=ObservedSchema((ColumnType("id", "BIGINT"),), "5FEC"),
        caught_up=False,
    )
    line = written(tmp_path, RunStatus.RUNNING, (load,))
    assert line.endswith(
        '"rows":7,"durationMs":12,"error":null,"ops":{"executed":19,"retried":1,"throttle_wait_ms":2050},'
        '"partitions":{"total":4,"completed":4,"reused":2,"resumed":1},'
        '"observed_schema":{"columns":[{"name":"id","type":"BIGINT"}],"hintsHash":"5FEC"},"caughtUp":false}]}\n'
    )


def test_a_run_names_the_one_it_continues(tmp_path: Path) -> None:
    """Readers of older files get nothing; the key stands before the nodes."""
    file = RunResultsFile(tmp_path / "run_results.json", RUN, START, "20261102T000000000Z-0001")
    file.write(RunStatus.SUCCESS, (), END)
    content = file.path.read_bytes()
    assert content.endswith(b',"continues":"20261102T000000000Z-0001","nodes":[]}\n')
    for text, continues in ((content, "20261102T000000000Z-0001"), (GOLDEN.encode(), None)):
        file.path.write_bytes(text)
        found = read_results(file.path)
        assert found is not None
        assert found.continues == continues


def test_running_snapshot_has_no_end(tmp_path: Path) -> None:
    """While a run lives its end is left out, even when one is given."""
    document = json.loads(written(tmp_path, RunStatus.RUNNING, (), END))
    assert "finishedAt" not in document
    assert document["status"] == "running"
    assert document["nodes"] == []


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """The reader returns the values the writer got."""
    file = RunResultsFile(tmp_path / "run" / "run_results.json", RUN, START)
    file.write(RunStatus.COMPLETED_WITH_FAILURES, RESULTS, END)
    read = read_results(file.path)
    assert read is not None
    assert read.results == RESULTS
    assert read.status is RunStatus.COMPLETED_WITH_FAILURES
    assert read.finished_at == END


def test_late_snapshots_are_passed_over(tmp_path: Path) -> None:
    """A thread that comes late with fewer nodes, or after the end, changes nothing."""
    file = RunResultsFile(tmp_path / "run_results.json", RUN, START)
    file.write(RunStatus.RUNNING, RESULTS[:2])
    file.write(RunStatus.RUNNING, RESULTS[:1])
    read = read_results(file.path)
    assert read is not None
    assert len(read.results) == 2
    file.write(RunStatus.SUCCESS, RESULTS, END)
    file.write(RunStatus.RUNNING, RESULTS)
    read = read_results(file.path)
    assert read is not None
    assert read.status is RunStatus.SUCCESS


def test_unwritable_results_warn_once(tmp_path: Path) -> None:
    """A run goes on when its results cannot be written, with one warning."""
    blocker = tmp_path / "blocker"
    blocker.write_text("a file", encoding="utf-8")
    warnings: list[str] = []
    file = RunResultsFile(blocker / "run_results.json", RUN, START, on_warning=warnings.append)
    file.write(RunStatus.RUNNING, RESULTS)
    file.write(RunStatus.SUCCESS, RESULTS, END)
    assert len(warnings) == 1
    assert RUN in warnings[0]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version":2}',
        GOLDEN.replace('"runId":"20261103T061500250Z-9e07",', ""),
        GOLDEN.replace("completed_with_failures", "exploded"),
        GOLDEN.replace("2026-11-03T06:15:00.250Z", "yesterday"),
        GOLDEN.replace('"kind":"Pipeline"', '"kind":"Pipe"'),
        GOLDEN.replace('"rows":0', '"rows":"0"'),
        GOLDEN.replace('"durationMs":37', '"durationMs":null'),
        GOLDEN[:-40],
    ],
)
def test_wrong_shape_reads_as_nothing(tmp_path: Path, content: str) -> None:
    """A torn or foreign file is no results file."""
    path = tmp_path / "run_results.json"
    path.write_text(content, encoding="utf-8")
    assert read_results(path) is None


def test_reader_takes_minimal_and_future_files(tmp_path: Path) -> None:
    """Optional fields may be absent, unknown ones present, and of two nodes with one id the first counts."""
    node = {"id": "a", "kind": "Check", "name": "n", "status": "skipped", "rows": 0, "durationMs": 0, "error": None}
    document = {
        "version": 1,
        "runId": "r",
        "status": "running",
        "startedAt": "2026-11-03T06:15:00.250Z",
        "nodes": [node | {"novel": True}, node | {"status": "failed"}],
        "novel": {},
    }
    path = tmp_path / "run_results.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    read = read_results(path)
    assert read is not None
    assert [result.status for result in read.results] == [NodeStatus.SKIPPED]
    assert read_results(tmp_path / "missing.json") is None
