"""Random faults inside runs and retries, compared with the model after every step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pz_engine.base.fault_points import NAMES
from pz_engine.testing.fault_world import POINTS
from tests.resume.cases import END_POINTS, ENGINE_POINTS, Case, draw
from tests.resume.conftest import chunks
from tests.resume.regressions import CASES


@pytest.mark.parametrize("name", CASES)
def test_case_that_once_failed_holds(complaints_of: Callable[[Case], list[str]], name: str) -> None:
    """What was found is not lost again."""
    assert complaints_of(Case.from_json(CASES[name])) == []


def test_drawing_reaches_everything() -> None:
    """Every shape of read, kind of sink, strategy, action, fault point and kind of fault is drawn."""
    cases = [draw(f"reach/{number}", kills=number % 2 == 0) for number in range(600)]
    steps = [step for case in cases for step in case.steps]
    faults = [fault for step in steps for fault in step.faults]
    reads = {(source.shape, bool(source.partitions), source.checkpoints) for case in cases for source in case.sources}
    assert len(reads) == 9
    assert {(sink.kind, sink.strategy) for case in cases for sink in case.sinks} == {
        *((kind, strategy) for kind in ("transactional", "confirming") for strategy in ("merge", "append")),
        ("transactional", "replace"),
        ("parquet", "append"),
        ("parquet", "replace"),
    }
    assert {step.action for step in steps} == {"run", "retry"}
    points = {step.engine_fault.partition("=")[0] for step in steps if step.engine_fault}
    assert points == {*ENGINE_POINTS, *END_POINTS} == NAMES
    assert {fault.point for fault in faults} == set(POINTS)
    assert {action for actions in POINTS.values() for action in actions} - {fault.action for fault in faults} == {
        "hang"
    }
    assert all(Case.from_json(case.to_json()) == case for case in cases)


@pytest.mark.parametrize("chunk", chunks(0.8))
def test_sequences_of_faults_keep_the_guarantees(hold_chunk: Callable[..., None], chunk: int) -> None:
    """Runs and retries with failing reads, writes, commits and steps of the engine."""
    hold_chunk(chunk, kills=False)
