"""Carries a case out, compares each step with the model, and makes a failing case small."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pz_engine.testing.fault_world import World
from tests.resume.cases import DIM, DIM_ROWS, Case, PipelineCase, Step, write_project
from tests.resume.model import Model, Row, Seen
from tests.resume.process import Nursery, run_here


def carry_out(case: Case, directory: Path, nursery: Nursery | None, counts: Counter[str] | None = None) -> list[str]:
    """Return what is wrong, each complaint with the number of its step; the last step is a clean run."""
    directory.mkdir(parents=True)
    try:
        return _Sequence(case, directory, nursery, counts if counts is not None else Counter()).run()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class _Sequence:
    def __init__(self, case: Case, directory: Path, nursery: Nursery | None, counts: Counter[str]) -> None:
        self._case = case
        self._nursery = nursery
        self._counts = counts
        self._project = directory / "project"
        self._world = World(directory / "world").create()
        self._world.happen(DIM, DIM_ROWS)
        self._model = Model(case)
        write_project(case, self._project, self._world)

    def run(self) -> list[str]:
        complaints: list[str] = []
        for number, step in enumerate((*self._case.steps, Step("run"))):
            complaints += [f"step {number} ({step.action}): {text}" for text in self._step(step)]
            if complaints:
                return complaints
        return [f"at the end: {text}" for text in self._model.converged(self._look(0))]

    def _step(self, step: Step) -> list[str]:
        for name, rows in step.grows.items():
            self._world.happen(name, rows)
        self._model.happen(step.grows)
        self._world.plan_faults(step.faults)
        logged = len(self._world.log())
        before = self._look(logged)
        if step.may_kill:
            assert self._nursery is not None
            answer = self._nursery.run(self._project, step.action, step.engine_fault)
        else:
            with _fault_set(step.engine_fault):
                answer = run_here(self._project, step.action)
        self._counts[answer["end"]] += 1
        newest = (self._newest_results() or {"nodes": []})["nodes"] if answer["end"] == "finished" else []
        self._counts["carried forward"] += sum(node.get("provenance") == "carried_forward" for node in newest)
        self._counts["loads reused"] += sum(node.get("provenance") == "reused" for node in newest)
        for key in ("reused", "resumed"):
            self._counts[f"partitions {key}"] += sum(node.get("partitions", {}).get(key, 0) > 0 for node in newest)
        self._counts["deliveries resumed"] += sum(
            node.get("delivery", {}).get("resumed_rows", 0) > 0 for node in newest
        )
        self._counts["acted"] += len(step.faults) - len(self._world.remaining())
        return self._model.check(step, answer, before, self._look(logged))

    def _look(self, logged: int) -> Seen:
        return Seen(
            {sink.name: self._shown(sink.name, sink.kind) for sink in self._case.sinks},
            self._state(),
            self._newest_results(),
            self._world.log()[logged:],
        )

    def _shown(self, name: str, kind: str) -> Counter[Row]:
        if kind != "parquet":
            return Counter((row["id"], row["seq"], row["v"]) for row in self._world.visible(name))
        import pyarrow.parquet as pq

        found: Counter[Row] = Counter()
        for path in (self._project / "lake").rglob("*.parquet"):
            if path.name.startswith(name) or path.parent.name == name:
                table = pq.ParquetFile(path).read()  # an unfinished file raises
                found.update(zip(*(table.column(each).to_pylist() for each in ("id", "seq", "v")), strict=True))
        return found

    def _state(self) -> dict[str, tuple[int, str]]:
        found = {}
        for file, scope, value in (("watermarks", "watermarks", "value"), ("sync-state", "syncState", "token")):
            path = self._project / ".pz" / "state" / f"{file}.json"
            if path.exists():
                for key, entry in json.loads(path.read_bytes())[scope].items():
                    found[key.partition(".")[2]] = (int(entry[value]), entry["runId"])
        return found

    def _newest_results(self) -> dict[str, Any] | None:
        paths = sorted((self._project / ".pz" / "runs").glob("*/run_results.json"))
        return dict(json.loads(paths[-1].read_bytes())) if paths else None


@contextmanager
def _fault_set(fault: str | None) -> Iterator[None]:
    if fault is not None:
        os.environ["PZ_FAULT"] = fault
    try:
        yield
    finally:
        os.environ.pop("PZ_FAULT", None)


def shrink(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Return a smaller case that still fails: fewer steps, faults, sinks, pipelines and rows."""
    while True:
        smaller = next((each for each in _smaller(case) if fails(each)), None)
        if smaller is None:
            return case
        case = smaller


def _smaller(case: Case) -> Iterator[Case]:
    for number, step in enumerate(case.steps):
        if len(case.steps) > 1:
            yield _with_steps(case, number, None)
        for each in range(len(step.faults)):
            yield _with_steps(case, number, replace(step, faults=step.faults[:each] + step.faults[each + 1 :]))
        if step.engine_fault is not None:
            yield _with_steps(case, number, replace(step, engine_fault=None))
    for number in range(len(case.sinks)):
        kept = case.sinks[:number] + case.sinks[number + 1 :]
        if {sink.pipeline for sink in kept} == set(range(len(case.pipelines))):
            yield replace(case, sinks=kept)
    if len(case.pipelines) > 1:
        for number in range(len(case.pipelines)):
            yield _without_pipeline(case, number)
    for number, pipeline in enumerate(case.pipelines):
        for changed in _smaller_pipelines(pipeline):
            yield _without_unread(
                replace(case, pipelines=(*case.pipelines[:number], changed, *case.pipelines[number + 1 :]))
            )
    if case.attempts > 1:
        yield replace(case, attempts=1)
    for number, step in enumerate(case.steps):
        for name, rows in step.grows.items():
            for each in range(len(rows)):
                grows = {**step.grows, name: rows[:each] + rows[each + 1 :]}
                yield _with_steps(case, number, replace(step, grows=grows))


def _smaller_pipelines(pipeline: PipelineCase) -> Iterator[PipelineCase]:
    if pipeline.joins:
        yield replace(pipeline, joins=False)
    if len(pipeline.sources) > 1:
        for name in pipeline.sources:
            yield replace(pipeline, sources=tuple(each for each in pipeline.sources if each != name))


def _with_steps(case: Case, number: int, step: Step | None) -> Case:
    kept = (step,) if step is not None else ()
    if step is None and number + 1 < len(case.steps):
        following = case.steps[number + 1]
        grows = {
            name: case.steps[number].grows.get(name, []) + following.grows.get(name, [])
            for name in {*case.steps[number].grows, *following.grows}
        }
        return replace(case, steps=(*case.steps[:number], replace(following, grows=grows), *case.steps[number + 2 :]))
    return replace(case, steps=(*case.steps[:number], *kept, *case.steps[number + 1 :]))


def _without_pipeline(case: Case, number: int) -> Case:
    sinks = tuple(
        replace(sink, pipeline=sink.pipeline - (sink.pipeline > number))
        for sink in case.sinks
        if sink.pipeline != number
    )
    return _without_unread(replace(case, pipelines=case.pipelines[:number] + case.pipelines[number + 1 :], sinks=sinks))


def _without_unread(case: Case) -> Case:
    read = {name for pipeline in case.pipelines for name in pipeline.sources}
    steps = tuple(
        replace(step, grows={name: rows for name, rows in step.grows.items() if name in read}) for step in case.steps
    )
    return replace(case, sources=tuple(source for source in case.sources if source.name in read), steps=steps)
