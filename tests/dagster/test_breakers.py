"""Circuit breakers in the log of an op: each opening is a warning, and the end of the op counts them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator

import dagster as dg
import pytest

from pz_engine.connectors import PzConnectorError
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall
from tests.dagster.far_side import Far, Job
from tests.dagster.test_watching import CONFIG, days, script  # noqa: F401 - fixture

# ruff: noqa: F811 - fixtures


@pytest.fixture
def far() -> Iterator[Far]:
    found = Far()
    with found.installed():
        yield found


def job_of(factory: ProjectFactory, far: Far, instance: dg.DagsterInstance, failing: Collection[int]) -> Job:
    """A job whose list fails in some of its reads; the first failure opens the breaker, and one more try follows."""
    script(factory, far)
    read = far.on_read

    def fails(call: ReadCall) -> object:
        if call.ordinal in failing:
            raise PzConnectorError("busy", is_transient=True)
        return read(call)

    far.on_read = fails  # type: ignore[assignment]
    text = (factory.directory / "project.yml").read_text()
    factory.write("project.yml", text + "engine: { breaker: { failure_threshold: 1, cool_down: 10ms } }\n")
    text = (factory.directory / "connections.yml").read_text()
    factory.write("connections.yml", text.replace("max_attempts: 1", "max_attempts: 2, base_delay: 1ms"))
    return Job(factory, instance)


def lines(job: Job, part: str) -> list[tuple[int, str]]:
    found = [(int(entry.level), entry.user_message) for entry in job.instance.all_logs(job.last)]
    return [(level, text) for level, text in found if text and part in text]


def test_an_op_that_succeeds_says_how_often_breakers_opened(
    days: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """Every pass counts, the last one is clean; opening is a warning, half-opening and closing are not."""
    job = job_of(days, far, instance, failing={1, 3})
    job.run(config=CONFIG)
    assert job.succeeded
    assert [text for _, text in lines(job, "circuit breakers")] == ["circuit breakers opened 2 time(s)"]
    opening = lines(job, "breaker: connection far closed->open")
    assert [level for level, _ in opening] == [logging.WARNING] * 2
    others = [level for level, text in lines(job, "breaker: connection far") if "->open" not in text]
    assert set(others) == {logging.INFO}


def test_an_op_that_fails_has_the_number_in_its_metadata(
    days: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """Those of the passes before the failing one are in it, and without a breaker there is no number."""
    job = job_of(days, far, instance, failing={1, 3, 4})
    job.run(config=CONFIG)
    (failure,) = [event for event in job.events if event.is_step_failure]
    data = failure.step_failure_data.user_failure_data
    assert data is not None
    assert data.metadata["pz/breaker_opened"].value == 3
    days.write("events.csv", "no header of ours\n")
    far.on_read = lambda call: []
    job.run()
    (failure,) = [event for event in job.events if event.is_step_failure]
    data = failure.step_failure_data.user_failure_data
    assert data is not None
    assert "pz/breaker_opened" not in data.metadata
    assert lines(job, "circuit breakers") == []
