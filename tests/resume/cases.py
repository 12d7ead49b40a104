"""Small projects with a history: what a case is, how a seed draws one, and how it becomes files.

A case is plain data, so that it can be printed, kept and made smaller.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pz_engine.testing.fault_world import Fault, Row, World

ENGINE_POINTS = (
    "after_batch",
    "after_checkpoint",
    "before_partition_commit",
    "after_partition_commit",
    "after_load",
    "before_sink_commit",
    "before_rename",
    "after_write_batch",
    "before_abort",
    "after_sink_commit",
    "after_node_results",
)
"""Fault points inside nodes and between them."""

END_POINTS = ("after_staging_opened", "before_state_write", "before_terminal_results")
"""Fault points around them."""

DIM = "dim"


@dataclass(frozen=True)
class SourceCase:
    """One entity that is read."""

    name: str
    shape: str
    partitions: int = 0
    """0: read in one piece."""

    checkpoints: bool = False
    ignores_bounds: bool = False

    @property
    def connection(self) -> str:
        """Name of the connection it is read through."""
        if not self.partitions:
            return "plain"
        return "feed" if self.shape == "feed" else "parts"


@dataclass(frozen=True)
class SinkCase:
    """One entity that is written."""

    name: str
    pipeline: int
    kind: str
    strategy: str


@dataclass(frozen=True)
class PipelineCase:
    """A union of sources, joined with the static source or not."""

    sources: tuple[str, ...]
    joins: bool = False


@dataclass(frozen=True)
class Step:
    """What happens to the sources, what is to go wrong, and how pz is called."""

    action: str
    grows: dict[str, list[Row]] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    engine_fault: str | None = None

    @property
    def may_kill(self) -> bool:
        """Whether a process of its own has to take the step."""
        return "kill" in (self.engine_fault or "") or any(fault.action.startswith("kill") for fault in self.faults)


@dataclass(frozen=True)
class Case:
    """A project and what happens to it; a clean run is always added."""

    sources: tuple[SourceCase, ...]
    pipelines: tuple[PipelineCase, ...]
    sinks: tuple[SinkCase, ...]
    steps: tuple[Step, ...]
    attempts: int = 1

    def to_json(self) -> str:
        """Return the case as text."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Case:
        """Return the case of a text."""
        found = json.loads(text)
        return Case(
            tuple(SourceCase(**each) for each in found["sources"]),
            tuple(PipelineCase(tuple(each["sources"]), each["joins"]) for each in found["pipelines"]),
            tuple(SinkCase(**each) for each in found["sinks"]),
            tuple(
                Step(
                    each["action"],
                    each["grows"],
                    tuple(Fault(**fault) for fault in each["faults"]),
                    each["engine_fault"],
                )
                for each in found["steps"]
            ),
            found["attempts"],
        )


def draw(seed: str, *, kills: bool) -> Case:
    """Return the case of a seed."""
    dice = random.Random(seed)
    sources = tuple(_draw_source(dice, f"s{n}") for n in range(dice.choices((1, 2, 3), (6, 3, 1))[0]))
    pipelines = _draw_pipelines(dice, sources)
    sinks = _draw_sinks(dice, sources, pipelines)
    entities = [*(source.name for source in sources), *(sink.name for sink in sinks)]
    if any(pipeline.joins for pipeline in pipelines):
        entities.append(DIM)
    sequence = dict.fromkeys((source.name for source in sources), 0)
    steps = []
    for number in range(dice.choices((1, 2, 3), (6, 5, 1))[0]):
        grows = {
            source.name: _draw_rows(
                dice, source.name, sequence, dice.choice((0, 4, 6, 8)) if number == 0 else dice.randint(1, 3)
            )
            for source in sources
            if number == 0 or dice.random() < 0.4
        }
        action = "run" if number == 0 or dice.random() < 0.3 else "retry"
        steps.append(_draw_faults(dice, Step(action, grows), entities, sources, kills=kills and dice.random() < 0.8))
    return Case(sources, pipelines, sinks, tuple(steps), attempts=dice.choice((1, 1, 2)))


def _draw_source(dice: random.Random, name: str) -> SourceCase:
    shape = dice.choice(("full", "incremental", "incremental", "feed"))
    if shape == "feed" and dice.random() < 0.5:
        return SourceCase(name, shape, 1, dice.random() < 0.7)
    if shape == "feed" or dice.random() < 0.4:
        return SourceCase(name, shape, ignores_bounds=shape == "incremental" and dice.random() < 0.3)
    return SourceCase(name, shape, dice.choice((1, 2, 3)), dice.random() < 0.6, dice.random() < 0.2)


def _draw_pipelines(dice: random.Random, sources: tuple[SourceCase, ...]) -> tuple[PipelineCase, ...]:
    names = [source.name for source in sources]
    cut = sorted(dice.sample(range(1, len(names)), dice.randint(0, len(names) - 1)))
    groups = [tuple(names[start:end]) for start, end in zip([0, *cut], [*cut, len(names)], strict=True)]
    if len(groups) < 3 and dice.random() < 0.25:
        groups.append((dice.choice(names),))
    return tuple(PipelineCase(group, dice.random() < 0.2) for group in groups)


def _draw_sinks(
    dice: random.Random, sources: tuple[SourceCase, ...], pipelines: tuple[PipelineCase, ...]
) -> tuple[SinkCase, ...]:
    shapes = {source.name: source.shape for source in sources}
    sinks = []
    for number in range(max(len(pipelines), dice.choice((1, 1, 2, 3)))):
        pipeline = number if number < len(pipelines) else dice.randrange(len(pipelines))
        is_full = all(shapes[name] == "full" for name in pipelines[pipeline].sources)
        kinds = [("transactional", "merge"), ("confirming", "merge"), ("transactional", "append")]
        kinds += [("confirming", "append"), ("confirming", "append"), ("parquet", "append")]
        if is_full:
            kinds += [("transactional", "replace"), ("parquet", "replace")]
        sinks.append(SinkCase(f"t{number}", pipeline, *dice.choice(kinds)))
    return tuple(sinks)


def _draw_rows(dice: random.Random, source: str, sequence: dict[str, int], count: int) -> list[Row]:
    rows = []
    for _ in range(count):
        sequence[source] += dice.randint(1, 2)
        rows.append({"id": f"{source}-{dice.randint(0, 9)}", "seq": sequence[source], "v": dice.randint(0, 99)})
    return rows


def _draw_faults(
    dice: random.Random, step: Step, entities: list[str], sources: tuple[SourceCase, ...], *, kills: bool
) -> Step:
    readable = {source.name: source for source in sources}
    if dice.random() < (0.5 if kills else 0.2):
        points = ENGINE_POINTS + (END_POINTS if kills else ())
        return Step(step.action, step.grows, (), f"{dice.choice(points)}={'kill' if kills else 'raise'}")
    faults = []
    for number in range(dice.choice((1, 1, 2))):
        entity = dice.choice(entities)
        if entity in readable or entity == DIM:
            point = dice.choice(("plan", "partition", "page", "page", "page", "page", "page", "read_end"))
            source = readable.get(entity)
            if source is not None and source.checkpoints and dice.random() < 0.2:
                point = "checkpoint"
            if source is not None and source.shape == "feed" and dice.random() < 0.2:
                point = "token"
            actions = ["kill"] if kills and number == 0 else ["fail", "fail", "fail_transient"]
        else:
            point = dice.choice(("begin", "batch", "batch", "batch", "batch", "commit", "commit"))
            if dice.random() < 0.1:
                faults.append(Fault("abort", "fail", entity))
            actions = ["fail", "fail_transient"]
            if point != "begin":
                actions += ["landed", "wrong_count"] + (["half", "half"] if point == "batch" else ["unknown"])
            if kills and number == 0:
                actions = ["kill"] if point == "begin" else ["kill", "kill_landed"]
        skips = (0, 1, 1, 2, 3) if point == "page" else (0, 0, 0, 1, 2)
        faults.append(Fault(point, dice.choice(actions), entity, dice.choice(skips)))
    return Step(step.action, step.grows, tuple(faults))


def write_project(case: Case, directory: Path, world: World) -> None:
    """Write the files of a case's project."""
    from pz_engine.testing.project_factory import ProjectFactory

    project = ProjectFactory(
        directory,
        'name: demo\nversion: "1"\nengine: { threads: 2, duckdb: { threads: 1, memory_limit: 256MB } }\n',
    )
    retry = f"retry: {{ max_attempts: {case.attempts}, base_delay: 1ms, max_delay: 1ms }}"
    lines = []
    for name, connector, mine in (
        ("plain", "faulty", [source for source in case.sources if source.connection == "plain"]),
        ("feed", "faulty_feed", [source for source in case.sources if source.connection == "feed"]),
        ("parts", "faulty_parts", [source for source in case.sources if source.connection == "parts"]),
    ):
        lines.append(
            f"{name}: {{ connector: {connector}, world: {world.directory}, {retry}, entities: {{ {_entities(mine)} }} }}"
        )
    lines += [
        f"whole: {{ connector: faulty, world: {world.directory}, {retry} }}",
        f"slow: {{ connector: faulty, world: {world.directory}, sink: confirming, {retry} }}",
        "lake: { connector: localfiles, root: lake }",
    ]
    project.connections("\n".join(lines) + "\n")
    connection = {source.name: source.connection for source in case.sources}
    target = {"transactional": "whole", "confirming": "slow", "parquet": "lake"}
    for number, pipeline in enumerate(case.pipelines):
        sinks = [_sink_call(target[sink.kind], sink) for sink in case.sinks if sink.pipeline == number]
        united = " UNION ALL ".join(
            f"SELECT * FROM {{{{ source('{connection[name]}', '{name}') }}}}" for name in pipeline.sources
        )
        query = united
        if pipeline.joins:
            query = (
                f"SELECT s.id, s.seq, s.v + 1000 * d.v AS v FROM ({united}) AS s "
                f"JOIN {{{{ source('plain', '{DIM}') }}}} AS d ON d.id = 'd' || (s.v % 3)"
            )
        project.pipeline(f"p{number}", f"INSERT INTO [{', '.join(sinks)}]\n{query}\n")


def _entities(sources: list[SourceCase]) -> str:
    found = []
    for source in sources:
        options = [f"page_rows: {1 if source.checkpoints else 2}", "columns: { id: varchar, seq: bigint, v: bigint }"]
        if source.shape == "incremental":
            options.append("sync: { mode: incremental, cursor: seq }")
        if source.shape == "feed":
            options.append("feed: true")
        if source.partitions:
            options.append(f"partitions: {source.partitions}")
        if source.checkpoints:
            options.append("checkpoints: true")
        if source.ignores_bounds:
            options.append("ignores_bounds: true")
        found.append(f"{source.name}: {{ read: {{ {', '.join(options)} }} }}")
    return ", ".join(found)


def _sink_call(connection: str, sink: SinkCase) -> str:
    options = f"strategy: '{sink.strategy}'"
    if sink.strategy == "merge":
        options += ", keys: ['id']"
    if sink.strategy == "append":
        options += ", duplicates: 'accept'"
    return f"{{{{ sink('{connection}', '{sink.name}', {options}) }}}}"


DIM_ROWS: list[dict[str, Any]] = [{"id": f"d{n}", "seq": n + 1, "v": n + 1} for n in range(3)]
"""What the static source holds."""
