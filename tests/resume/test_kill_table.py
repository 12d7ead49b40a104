"""The kill table of docs/internals: what every step of a run leaves behind when the process dies there, as measured."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pz_engine.base.fault_points import NAMES
from pz_engine.testing.fault_world import Fault, World
from pz_engine.testing.project_factory import ProjectFactory
from tests.resume.process import Nursery

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "kill-table.md"

FIRST = [{"id": f"r{n}", "seq": n, "v": n} for n in range(1, 5)]
MORE = [{"id": f"r{n}", "seq": n, "v": n} for n in range(5, 11)]


@dataclass(frozen=True)
class Step:
    """One place where a run can end."""

    where: str
    engine_fault: str | None = None
    faults: tuple[Fault, ...] = ()


STEPS = [
    Step("staging is open, nothing has run", "after_staging_opened"),
    Step("while a page is read", faults=(Fault("page", "kill", "things", 1),)),
    Step("a batch is in its landing table", "after_batch"),
    Step("a checkpoint and its rows are stored", "after_checkpoint"),
    Step("a partition is read, not landed", "before_partition_commit"),
    Step("a partition has landed with its ledger row", "after_partition_commit"),
    Step("a load is staged, not recorded", "after_load"),
    Step("the first results are on disk", "after_node_results"),
    Step("while a write begins", faults=(Fault("begin", "kill", "whole"),)),
    Step("a sink took a batch", "after_write_batch"),
    Step("while a request is on its way", faults=(Fault("batch", "kill", "slow", 1),)),
    Step("a request landed, its answer is lost", faults=(Fault("batch", "kill_landed", "slow", 1),)),
    Step("a write failed, before its cleaning up", "before_abort", (Fault("batch", "fail", "whole"),)),
    Step("rows are written, not committed", "before_sink_commit"),
    Step("files are complete under temporary names", "before_rename"),
    Step("while a sink commits", faults=(Fault("commit", "kill", "whole"),)),
    Step("a commit landed, its answer is lost", faults=(Fault("commit", "kill_landed", "whole"),)),
    Step("a sink has committed", "after_sink_commit"),
    Step("every node is done, state has not moved", "before_state_write"),
    Step("state has moved, results do not say so", "before_terminal_results"),
]

FAILURES = {"kill": "fail", "kill_landed": "landed"}


class Scene:
    """A project that has run once and has new rows to move: one load in two partitions, three sinks."""

    def __init__(self, directory: Path, nursery: Nursery) -> None:
        shutil.rmtree(directory, ignore_errors=True)
        self.project = ProjectFactory(
            directory / "project", 'name: demo\nversion: "1"\nengine: { threads: 1, duckdb: { threads: 1 } }\n'
        )
        self.world = World(directory / "world").create()
        self._nursery = nursery
        place = f"world: {self.world.directory}, retry: {{ max_attempts: 1 }}"
        read = "page_rows: 1, partitions: 2, checkpoints: true, columns: { id: varchar, seq: bigint, v: bigint }"
        self.project.connections(
            f"""
            src: {{ connector: faulty_parts, {place}, entities: {{ things: {{ read: {{ {read}, sync: {{ mode: incremental, cursor: seq }} }} }} }} }}
            whole: {{ connector: faulty, {place} }}
            slow: {{ connector: faulty, {place}, sink: confirming, request_rows: 2 }}
            lake: {{ connector: localfiles, root: lake }}
            """
        )
        self.project.pipeline(
            "copy",
            "INSERT INTO [{{ sink('whole', 'whole', strategy: 'merge', keys: ['id']) }},\n"
            "{{ sink('slow', 'slow', strategy: 'append', duplicates: 'accept') }},\n"
            "{{ sink('lake', 'lake', strategy: 'append', path: 'lake-{{ run_id }}.parquet', duplicates: 'accept') }}]\n"
            "SELECT * FROM {{ source('src', 'things') }}",
        )
        self.world.happen("things", FIRST)
        assert self.run("run")["status"] == "success"
        self.world.happen("things", MORE)

    def run(self, action: str, fault: str | None = None) -> dict[str, Any]:
        return self._nursery.run(self.project.directory, action, fault)

    def interrupt(self, step: Step, how: str) -> dict[str, Any]:
        names = {} if how == "kill" else FAILURES
        self.world.plan_faults(replace(each, action=names.get(each.action, each.action)) for each in step.faults)
        return self.run(
            "run", f"{step.engine_fault}={'kill' if how == 'kill' else 'raise'}" if step.engine_fault else None
        )

    def results(self) -> str:
        newest = max((self.project.directory / ".pz" / "runs").iterdir()) / "run_results.json"
        return str(json.loads(newest.read_text())["status"]) if newest.exists() else "none"

    def watermark(self) -> str:
        text = (self.project.directory / ".pz" / "state" / "watermarks.json").read_text()
        return str(json.loads(text)["watermarks"]["src.things"]["value"])

    def sinks(self) -> str:
        import duckdb

        lake = self.project.directory / "lake"
        files = sorted(path for path in lake.iterdir() if path.suffix == ".parquet")
        assert all(path.name.startswith("lake-") for path in files)
        found = duckdb.sql(f"select id from read_parquet({[str(path) for path in files]})").fetchall()
        ids = [[row["id"] for row in self.world.visible(name)] for name in ("whole", "slow")] + [
            [row[0] for row in found]
        ]
        return " / ".join(map(shown, ids))


def shown(ids: list[str]) -> str:
    counts = Counter(ids)
    again = sum(counts.values()) - len(counts)
    return f"{len(counts)}{f' (+{again} again)' if again else ''}"


def told(answer: dict[str, Any]) -> str:
    if answer["end"] == "refused":
        return str(answer["code"])
    return f"exit {answer['exit_code']}" if answer["end"] == "finished" else "nothing to do"


def row(directory: Path, nursery: Nursery, step: Step, how: str) -> list[str]:
    """Return one line of the table: what is left, what a run makes of it, and what a retry does in its place."""
    cells: list[str] = []
    for action in ("run", "retry"):
        scene = Scene(directory, nursery)
        answer = scene.interrupt(step, how)
        if action == "run":
            assert answer["end"] == ("died" if how == "kill" else answer["end"])
            place = f"{step.where} (`{step.engine_fault}`)" if step.engine_fault else step.where
            cells = [place, scene.results(), scene.watermark(), scene.sinks()]
        again = told(scene.run(action))
        cells.append(f"{again}: {scene.sinks()}, watermark {scene.watermark()}")
        if again == "PZ0503":
            assert scene.run("run")["exit_code"] == 0
        assert action == "retry" or scene.sinks().split(" ")[0] == "10"
    return cells


def table(directory: Path, nursery: Nursery, how: str, steps: list[Step]) -> str:
    head = ["where", "results", "watermark", "rows in whole / slow / lake", "then `pz run`", "or else `pz retry`"]
    lines = [head, ["---"] * len(head), *(row(directory, nursery, step, how) for step in steps)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


INTRODUCTION = """# Kill table

Measured, not argued: `tests/resume/test_kill_table.py` makes this page, and fails when a step behaves otherwise.

One incremental load in two checkpointed partitions, read one after the other, feeds three sinks: `whole` merges in one transaction, `slow` appends and
confirms requests of two rows without ever taking one back, `lake` appends one Parquet file a run. A first run has moved
four rows; six more are waiting. Then a run is interrupted at each step in turn. `10` means that a sink holds each of the ten
rows once; `8 (+2 again)` that it holds eight of them and two of these twice. The watermark is `4` before the run and `10`
when everything is delivered.

What to read from it:

- The watermark never stands at 10 while a sink lacks a row.
- After any interruption, `pz run` leaves every sink complete. `whole` never holds a row twice; `slow` and `lake` may hold
  those again that they were given before, because append is at least once.
- Where partitions were read in different runs, a retry leaves the watermark at what the earlier ones reached (`8`): rows that
  came to them since are then read by the next run, and some of the others again.
- A killed run is not continued: `pz retry` refuses with `PZ0503`, because nothing can be assumed about it; one that died before its
  first results leaves the run before it as the newest, which has nothing to retry. A failed run is continued,
  and `slow` then gets the rows it has not confirmed and no others.
- No file with a final name is ever incomplete; temporary ones stay behind a kill and are not read.
"""


def test_every_fault_point_is_in_the_table() -> None:
    """A step that is added to the engine is measured, too."""
    assert {step.engine_fault for step in STEPS if step.engine_fault} == NAMES


def test_table_is_what_happens(tmp_path: Path, golden_update: bool) -> None:
    """Kill the process, or fail the step, everywhere; look at everything; run or retry; look again."""
    nursery = Nursery(processors=1)  # or the table would depend on which partition is faster
    try:
        killed = table(tmp_path, nursery, "kill", STEPS)
        failing = [step for step in STEPS if step.engine_fault not in END_OF_RUN]
        failed = table(tmp_path, nursery, "fail", failing)
    finally:
        nursery.close()
    page = f"{INTRODUCTION}\n## The process dies\n\n{killed}\n\n## The step fails\n\n{failed}\n"
    if golden_update:
        PAGE.write_text(page, encoding="utf-8")
    assert page == PAGE.read_text(encoding="utf-8")


END_OF_RUN = {"after_staging_opened", "after_node_results", "before_state_write", "before_terminal_results"}
"""Steps around the nodes: nothing fails there but the whole process."""


@pytest.mark.parametrize("page", [PAGE])
def test_page_is_linked(page: Path) -> None:
    """The page can be found from the index."""
    assert f"internals/{page.name}" in (page.parents[1] / "README.md").read_text(encoding="utf-8")
