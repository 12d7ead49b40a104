"""What the failure of an op says and carries, and when a policy may repeat it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster.discretion import Discretion
from pz_dagster.errors import PzDagsterError
from pz_dagster.event_mapping import EventMapper
from pz_dagster.failures import refused_run_error, run_error
from pz_engine import Diagnostic, NodeStatus, PzConfigError, PzStateError, RunOutcome, RunStatus
from pz_engine.connectors import PzConnectorError
from pz_engine.model.run import NodeError, NodeStats
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.far_side import Far, Job, two_sinks
from tests.dagster.test_event_mapping import RUN, completed, log, mapper, snapshot  # noqa: F401 - fixtures

# ruff: noqa: F811 - fixtures
VIOLATION = "check row_count on staging.p_a found 1 violation(s): the relation has 2 row(s), expected at least 9"
OUTCOME = RunOutcome(RUN, RunStatus.COMPLETED_WITH_FAILURES, 1, ())


@pytest.fixture
def far() -> Iterator[Far]:
    found = Far()
    with found.installed():
        yield found


def fail(mapper: EventMapper, name: str, code: str, *, is_transient: bool) -> None:
    list(
        mapper.map(
            completed(
                mapper.snapshot,
                name,
                status=NodeStatus.FAILED,
                rows=0,
                error=NodeError(code, "it did not go"),
                stats=NodeStats(is_transient=is_transient, attempts=3),
            )
        )
    )


def failure(mapper: EventMapper, outcome: RunOutcome = OUTCOME, *gating: str) -> PzDagsterError:
    found = run_error(outcome, mapper, mapper.discretion, gating=frozenset(gating))
    assert found is not None
    return found


def test_only_when_all_that_failed_may_pass_the_op_is_repeated(mapper: EventMapper) -> None:
    """One permanent failure among transient ones ends it; an open breaker may close."""
    fail(mapper, "lake.orders", "PZ0501", is_transient=True)
    assert failure(mapper).allow_retries
    fail(mapper, "mart.events", "PZ0506", is_transient=False)
    assert failure(mapper).allow_retries
    fail(mapper, "events_merged", "PZ0501", is_transient=False)
    assert not failure(mapper).allow_retries


def test_a_violated_check_is_not_repeated(mapper: EventMapper) -> None:
    """Not beside a transient failure either; a check that does not gate decides nothing."""
    fail(mapper, "lake.orders", "PZ0501", is_transient=True)
    fail(mapper, "check_orders_clean_row_count", "PZ0510", is_transient=False)
    assert not failure(mapper, OUTCOME, "check_orders_clean_row_count").allow_retries
    assert failure(mapper).allow_retries


@pytest.mark.parametrize("problem", [None, Diagnostic("PZ0532", "no space left below /srv/shop/.pz")])
def test_a_run_that_ended_fatally_fails_the_op(mapper: EventMapper, problem: Diagnostic | None) -> None:
    """Even when no node failed or was skipped; its code is named, and it is never repeated by a policy."""
    outcome = RunOutcome(RUN, RunStatus.FATAL, 1, (), problem=problem)
    found = failure(mapper, outcome)
    code = "PZ0500: the run stopped" if problem is None else "PZ0532: no space left below .pz"
    assert code in (found.description or "")
    assert not found.allow_retries


def test_the_failure_carries_everything_as_metadata(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """First line, a line per node, run id, tables, and where journal and results are."""
    far.failures = {"b": 9}
    text = (two.directory / "connections.yml").read_text()
    two.write("connections.yml", text.replace("max_attempts: 1", "max_attempts: 2, base_delay: 1ms"))
    two.sidecar("p_a", "checks:\n  - row_count: { min: 9 }\n")
    job = Job(two, instance)
    job.run()
    data = user_failure(job)
    metadata = {
        key: value.value for key, value in data.metadata.items() if not isinstance(value, dg.TableMetadataValue)
    }
    run_id = metadata["pz/run_id"]
    assert metadata == {
        "pz/run_id": run_id,
        "pz/journal": f".pz/journal/{run_id}.jsonl",
        "pz/results": f".pz/runs/{run_id}/run_results.json",
    }
    assert (data.description or "").splitlines() == [
        f"pz run {run_id}: 2 failed, 1 skipped",
        "far.b: PZ0501 the far side is away",
        f"check_p_a_row_count: PZ0510 {VIOLATION}",
        "skipped: far.a",
    ]
    tables = {key: [row.data for row in data.metadata[key].records] for key in ("pz/failed", "pz/skipped")}
    assert [(row["node"], row["code"], row["attempts"]) for row in tables["pz/failed"]] == [
        ("far.b", "PZ0501", "2"),
        ("check_p_a_row_count", "PZ0510", "1"),
    ]
    assert tables["pz/skipped"] == [{"node": "far.a", "blocked_by": "check_p_a_row_count"}]


def user_failure(job: Job) -> Any:
    (found,) = [event.step_failure_data.user_failure_data for event in job.events if event.is_step_failure]
    return found


@pytest.fixture
def two(tmp_path: Path, far: Far) -> ProjectFactory:
    return two_sinks(tmp_path / "two")


def test_a_node_that_an_open_breaker_kept_out_is_repeated_by_a_policy(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """The server asked for an hour: the node fails at once (`PZ0506`), and the next attempt of the step tries again."""
    two.write(
        "project.yml",
        'name: two\nversion: "1"\nengine: { threads: 1, node_timeout: 5s, breaker: { failure_threshold: 1, cool_down: 10ms } }\n',
    )
    text = (two.directory / "connections.yml").read_text()
    two.write("connections.yml", text.replace("max_attempts: 1", "max_attempts: 2, base_delay: 1ms, max_delay: 1ms"))
    read = far.read
    calls: list[int] = []

    def busy(call: Any) -> Any:
        calls.append(call.ordinal)
        if len(calls) == 1:
            raise PzConnectorError("busy", is_transient=True, retry_after=timedelta(hours=1))
        return read(call)

    far.on_read = busy
    job = Job(two, instance, retry_policy=dg.RetryPolicy(max_retries=1))
    job.run()
    assert [text for text in job.messages if "PZ0506" in text]
    assert job.succeeded
    assert len(calls) == 2


@pytest.mark.parametrize("kind", [PzConfigError, PzStateError])
def test_a_refusal_keeps_its_code_and_next_step_and_no_absolute_path(kind: Any, tmp_path: Path) -> None:
    """What the engine says before a run starts is the failure's text, its table and its problems."""
    error = kind("PZ0518", f"the store below {tmp_path}/x is away", hint=f"look at {tmp_path}/x")
    found = refused_run_error(error, Discretion(tmp_path))
    assert [(each.code, each.message, each.hint) for each in found.problems] == [
        ("PZ0518", "the store below x is away", "look at x")
    ]
    assert "PZ0518" in (found.description or "")
    assert len(found.metadata["pz/problems"].records) == 1
    assert not found.allow_retries


def test_a_refusal_has_no_chain_of_exceptions(two: ProjectFactory, far: Far, instance: dg.DagsterInstance) -> None:
    """The engine's own exception, which may hold anything, stays in the process."""
    job = Job(two, instance)
    two.sidecar("p_a", "checks:\n  - not_nul: [id]\n")
    job.run()
    (error,) = [event.step_failure_data.error for event in job.events if event.is_step_failure]
    assert error is not None
    assert (error.cause, error.context) == (None, None)
