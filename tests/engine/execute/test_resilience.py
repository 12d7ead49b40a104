"""Retries, breakers, time limits and operation counts through a whole run."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest

from pz_engine import CancelToken, NodeStatus, RetryScheduled
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.events.types import BreakerStateChanged, ConnectorLog, NodeCompleted, NodeStarted, RunEvent
from pz_engine.execute import deadline
from pz_engine.model.run import OperationCounts
from pz_engine.state.run_results import read_results
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall, ScriptedConnector, WriteCall, rows

PROJECT = 'name: demo\nversion: "1"\nengine:\n  threads: 4\n'


@pytest.fixture
def scripted() -> Iterator[ScriptedConnector]:
    """An installed scripted connector."""
    with ScriptedConnector().installed() as connector:
        yield connector


@pytest.fixture
def project(factory: ProjectFactory, scripted: ScriptedConnector) -> ProjectFactory:
    """One scripted source copied to one scripted sink of another connection; a third flow beside it."""
    factory.write("project.yml", PROJECT)
    factory.connections(
        """
        api:
          connector: scripted
          retry: { max_attempts: 3, base_delay: 10ms, max_delay: 20ms }
        store:
          connector: scripted
          retry: { max_attempts: 3, base_delay: 10ms, max_delay: 20ms }
        """
    )
    factory.pipeline(
        "copy",
        "INSERT INTO {{ sink('store', 'copy', strategy: 'replace') }}\nSELECT * FROM {{ source('api', 'things') }}",
    )
    return factory


def busy(message: str = "the server is busy", retry_after: timedelta | None = None) -> PzConnectorError:
    return PzConnectorError(message, is_transient=True, retry_after=retry_after)


def result_of(outcome, name: str):  # type: ignore[no-untyped-def]
    return next(result for result in outcome.results if result.name == name)


def test_transient_failure_is_retried_and_announced(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """Two bad attempts, then a good one: nothing lands twice, and the event names the attempt about to run."""

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        yield rows(1, 2)
        if call.ordinal < 3:
            raise busy("connection reset while reading 'secret-page'")
        yield rows(3)

    scripted.on_read = read
    events: list[RunEvent] = []
    outcome = project.run(events=events)
    assert outcome.exit_code == 0
    retries = [event for event in events if isinstance(event, RetryScheduled)]
    assert [(event.attempt, event.max_attempts) for event in retries] == [(2, 3), (3, 3)]
    assert all("secret-page" not in event.reason for event in retries)
    assert [row["id"] for row in scripted.written["copy"]] == [1, 2, 3]
    started = [event for event in events if isinstance(event, NodeStarted) and event.node_name == "src_api__things"]
    assert len(started) == 1


def test_exhausted_and_permanent_failures_are_final(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """A transient failure ends after the last attempt, a permanent one after the first."""
    scripted.on_read = lambda call: (_ for _ in ()).throw(busy())
    outcome = project.run()
    failed = result_of(outcome, "src_api__things")
    assert (failed.error.code, failed.stats.attempts, failed.stats.is_transient) == ("PZ0501", 3, True)
    assert failed.error.message.endswith(
        "\nnext step: run 'pz retry' later; if it stays, check the connection's settings and the network"
    )
    assert {result.status for result in outcome.results if result is not failed} == {NodeStatus.SKIPPED}

    scripted.reads.clear()
    scripted.on_read = lambda call: (_ for _ in ()).throw(PzConnectorError("no such table", is_transient=False))
    failed = result_of(project.run(), "src_api__things")
    assert (failed.stats.attempts, failed.stats.is_transient) == (1, False)
    assert len(scripted.reads) == 1


def test_open_breaker_fails_the_node_on_the_third_denial(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """Waiting costs no attempt and is bounded by two cool-downs; every move is announced."""
    project.write("project.yml", PROJECT + "  breaker: { failure_threshold: 1, cool_down: 60ms }\n")
    project.connections(
        """
        api: { connector: scripted, retry: { max_attempts: 100, base_delay: 1ms, max_delay: 1ms } }
        store: { connector: scripted }
        """
    )
    scripted.on_read = lambda call: (_ for _ in ()).throw(busy())
    events: list[RunEvent] = []
    outcome = project.run(events=events)
    failed = result_of(outcome, "src_api__things")
    assert failed.error.code == "PZ0506"
    assert "conn:api" in failed.error.message
    assert "60ms" in failed.error.message
    assert len(scripted.reads) == 3
    moves = [
        (event.instance, event.old_state, event.new_state, event.cool_down_ms)
        for event in events
        if isinstance(event, BreakerStateChanged)
    ]
    opened, probing = ("conn:api", "open", 60), ("conn:api", "half_open", 0)
    assert [(move[0], move[2], move[3]) for move in moves] == [opened, probing, opened, probing, opened]


def test_breaker_recovers_and_the_node_succeeds(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """A probe that succeeds closes the breaker."""
    project.write("project.yml", PROJECT + "  breaker: { failure_threshold: 2, cool_down: 30ms }\n")

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        if call.ordinal < 3:
            raise busy()
        yield rows(1)

    scripted.on_read = read
    events: list[RunEvent] = []
    assert project.run(events=events).exit_code == 0
    states = [event.new_state for event in events if isinstance(event, BreakerStateChanged)]
    assert states == ["open", "half_open", "closed"]


@pytest.mark.parametrize(
    ("probe", "after"),
    [("refused", ["half_open", "closed"]), ("timed out", ["half_open", "open", "half_open", "closed"])],
)
def test_probe_that_is_no_answer_to_the_question_leaves_nobody_out(
    project: ProjectFactory, scripted: ScriptedConnector, probe: str, after: list[str]
) -> None:
    """A refusal is an answer and closes the breaker, a probe that was stopped opens it anew; the next node is read."""
    limits = "  node_timeout: 150ms\n  breaker: { failure_threshold: 1, cool_down: 30ms }\n"
    project.write("project.yml", PROJECT.replace("4", "1") + limits)
    project.connections("api: { connector: scripted, retry: { max_attempts: 1 } }\n")
    project.write("pipelines/copy.sql", "SELECT 1 AS one")
    for name in ("a", "b", "c"):
        project.pipeline(f"p_{name}", f"SELECT * FROM {{{{ source('api', '{name}') }}}}")

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        if call.spec.entity == "a":
            raise busy()
        if call.spec.entity == "b":
            if probe == "refused":
                raise PzConnectorError("no such table", is_transient=False)
            call.cancel.wait(10)
            call.cancel.raise_if_set()
        yield rows(1)

    scripted.on_read = read
    events: list[RunEvent] = []
    outcome = project.run(events=events)
    assert [result_of(outcome, f"src_api__{name}").status.value for name in "abc"] == ["failed", "failed", "success"]
    assert [event.new_state for event in events if isinstance(event, BreakerStateChanged)] == ["open", *after]


def test_one_breaker_serves_both_directions(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """A connection that is read and written trips one breaker; its read is kept out after its write failed."""
    project.write("project.yml", PROJECT.replace("4", "1") + "  breaker: { failure_threshold: 1, cool_down: 10m }\n")
    project.connections("api: { connector: scripted, retry: { max_attempts: 1 } }\n")
    project.write("pipelines/copy.sql", "SELECT 1 AS id")
    project.pipeline(
        "a_write", "INSERT INTO {{ sink('api', 'out', strategy: 'replace') }}\nSELECT 1 AS id, 'x' AS name"
    )
    project.pipeline("b", "SELECT * FROM {{ source('api', 'things') }}")
    scripted.on_read = lambda call: (_ for _ in ()).throw(busy("asked to wait", timedelta(hours=1)))
    events: list[RunEvent] = []

    token = CancelToken()

    def stop_when_denied(event: RunEvent) -> None:
        if isinstance(event, BreakerStateChanged) and event.new_state == "open":
            threading.Timer(0.3, token.set).start()

    outcome = project.run(events=events, cancel=token, on_event=stop_when_denied)
    opened = [event for event in events if isinstance(event, BreakerStateChanged)]
    assert [(event.instance, event.new_state, event.cool_down_ms) for event in opened] == [
        ("conn:api", "open", 3_600_000)
    ]
    assert result_of(outcome, "api.out").status is NodeStatus.SKIPPED
    assert "out" not in scripted.written


def test_gate_counts_reach_events_and_results(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """Operations, repeats and pacing are reported for a gated connector, in both spellings."""

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        tries = iter([busy(), None, None])

        def page() -> pa.RecordBatch:
            problem = next(tries)
            if problem is not None:
                raise problem
            return rows(1)

        assert call.gate is not None
        yield call.gate.execute("scripted.page", True, page, call.cancel)
        yield call.gate.execute("scripted.page", True, page, call.cancel)

    scripted.on_read = read
    events: list[RunEvent] = []
    outcome = project.run(events=events)
    expected = OperationCounts(3, 1, 0)
    assert result_of(outcome, "src_api__things").ops == expected
    completed = {event.result.name: event.payload() for event in events if isinstance(event, NodeCompleted)}
    assert completed["src_api__things"]["ops"] == {"executed": 3, "retried": 1, "throttleWaitMs": 0}
    assert "ops" not in completed["copy"]
    stored = read_results(project.directory / ".pz" / "runs" / outcome.run_id / "run_results.json")
    assert stored is not None
    assert next(node for node in stored.results if node.name == "src_api__things").ops == expected


def test_rate_limit_paces_a_connection(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """Operations of all nodes of a connection share one bucket."""
    project.connections(
        """
        api: { connector: scripted, rate_limit: { requests_per_minute: 600, burst: 1 } }
        store: { connector: scripted }
        """
    )
    moments: list[float] = []

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        def page() -> pa.RecordBatch:
            moments.append(time.monotonic())
            return rows(len(moments))

        assert call.gate is not None
        for _ in range(4):
            yield call.gate.execute("scripted.page", True, page, call.cancel)

    scripted.on_read = read
    outcome = project.run()
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert min(gaps) > 0.09
    ops = result_of(outcome, "src_api__things").ops
    assert ops is not None
    assert 250 <= ops.throttle_wait_ms <= 400


def test_node_timeout_stops_an_attempt_for_good(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """A slow attempt is cancelled, fails with its code and is not tried again."""
    project.write("project.yml", PROJECT + "  node_timeout: 200ms\n")

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        call.cancel.wait(30)
        call.cancel.raise_if_set()
        yield rows(1)

    scripted.on_read = read
    started = time.monotonic()
    failed = result_of(project.run(), "src_api__things")
    assert time.monotonic() - started < 10
    assert (failed.error.code, failed.stats.attempts) == ("PZ0525", 1)


def test_attempt_that_cannot_be_stopped_ends_the_run(
    project: ProjectFactory, scripted: ScriptedConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the grace period the node fails, and everything not yet started is skipped."""
    monkeypatch.setattr(deadline, "GRACE", timedelta(milliseconds=200))
    project.write("project.yml", PROJECT.replace("4", "1") + "  node_timeout: 100ms\n")
    project.pipeline("zzz", "SELECT * FROM {{ source('api', 'zzz') }}")
    release = threading.Event()

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        if call.spec.entity == "things":
            release.wait(30)
        yield rows(1)

    scripted.on_read = read
    try:
        outcome = project.run()
    finally:
        release.set()
    failed = result_of(outcome, "src_api__things")
    assert failed.error.code == "PZ0526"
    assert outcome.exit_code == 1
    assert result_of(outcome, "src_api__zzz").status is NodeStatus.SKIPPED


def test_failed_write_is_tried_again_with_a_fresh_session(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """A transient failure of a batch or of the commit is repeated; rows arrive once."""
    seen: list[str] = []

    def write(call: WriteCall) -> None:
        seen.append(call.step)
        if seen.count("batch") == 1 or (call.step == "commit" and seen.count("commit") == 1):
            raise busy()

    scripted.on_write = write
    outcome = project.run()
    assert outcome.exit_code == 0
    assert seen == ["batch", "batch", "commit", "batch", "commit"]
    assert [row["id"] for row in scripted.written["copy"]] == [1, 2]


@pytest.mark.parametrize("closed", ["source", "sink", "session"])
def test_failure_to_close_changes_no_outcome(project: ProjectFactory, scripted: ScriptedConnector, closed: str) -> None:
    """What was read is landed and what was committed is delivered, once; the run says what went wrong after that."""

    def close(what: str) -> None:
        if what == closed:
            raise busy("the line broke")

    scripted.on_close = close
    outcome = project.run()
    assert outcome.exit_code == 0
    assert [row["id"] for row in scripted.written["copy"]] == [1, 2]
    assert len(scripted.reads) == 1
    assert [note for note in outcome.notes if "afterwards failed: the line broke" in note]


def test_failure_to_close_hides_no_failure(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """The first failure is the one that is reported."""

    def close(what: str) -> None:
        raise busy(f"closing the {what}")

    def refuse(call: WriteCall) -> None:
        raise PzConnectorError("the store is full", is_transient=False)

    scripted.on_close, scripted.on_write = close, refuse
    failed = result_of(project.run(), "store.copy")
    assert failed.error.message.startswith("the store is full")


def test_long_pause_is_said_and_ends_with_the_try(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """A used-up quota whose reset is far away pauses the node, not without a word and never beyond its time limit."""
    project.write("project.yml", PROJECT + "  node_timeout: 300ms\n")

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        assert call.gate is not None
        call.gate.report_budget(0, datetime.max.replace(tzinfo=timezone.utc))
        yield call.gate.execute("scripted.page", True, lambda: rows(1), call.cancel)

    scripted.on_read = read
    events: list[RunEvent] = []
    started = time.monotonic()
    failed = result_of(project.run(events=events), "src_api__things")
    assert time.monotonic() - started < 10
    assert failed.error.code == "PZ0525"
    (said,) = [event for event in events if isinstance(event, ConnectorLog)]
    assert (said.level, said.connection) == ("warn", "api")
    assert "quota is used up" in said.message
    assert "15m" in said.message


@pytest.mark.parametrize("asked", [timedelta(hours=3), timedelta.max])
def test_cool_down_longer_than_a_try_is_not_waited_out(
    project: ProjectFactory, scripted: ScriptedConnector, asked: timedelta
) -> None:
    """A far side that asks for hours fails the node at once when the project limits its tries."""
    breaker = "  node_timeout: 5s\n  breaker: { failure_threshold: 1, cool_down: 60ms }\n"
    project.write("project.yml", PROJECT + breaker)
    scripted.on_read = lambda call: (_ for _ in ()).throw(busy(retry_after=asked))
    started = time.monotonic()
    failed = result_of(project.run(), "src_api__things")
    assert time.monotonic() - started < 10
    assert failed.error.code == "PZ0506"
    assert len(scripted.reads) == 1
