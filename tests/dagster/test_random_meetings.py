"""Random sequences of Dagster runs, failures, re-executions, shells and losses, against what must always hold.

More of them: `PZ_SEQUENCES=40 pytest tests/dagster/test_random_meetings.py`.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from pz_engine import PzStateError, RunRequest, Selection, list_runs, run_project
from tests.dagster.far_side import Far, Job, two_sinks
from tests.dagster.test_resume import FROM_ASSET_FAILURE, FROM_FAILURE, watermark

LOAD, A, B = dg.AssetKey(["two", "src_far__events"]), dg.AssetKey(["far", "a"]), dg.AssetKey(["far", "b"])
SINKS = ("a", "b")
POINTS = ("after_load", "before_sink_commit", "after_sink_commit", "before_state_write", "after_node_results")
STEPS = 9
FINDINGS: tuple[int, ...] = ()
"""Seeds that once found something."""

SEEDS = (*FINDINGS, *range(int(os.environ.get("PZ_SEQUENCES", "3"))))


class World:
    """One project, one instance, and everything that may happen to them."""

    def __init__(self, directory: Path, instance: dg.DagsterInstance, far: Far, seed: int) -> None:
        self.random = random.Random(seed)
        self.far = far
        self.factory = two_sinks(directory / "two")
        self.directory = self.factory.directory
        self.job = Job(self.factory, instance)
        self.chosen: list[dg.AssetKey] | None = None
        """What the newest Dagster run was asked for; None is everything."""

        self.materialized: list[str] = []
        self.is_level = True
        """Both sinks hold the same rows and the state says so: nothing excuses a row that arrives twice."""

        self.is_pending = False
        """A sink failed, and continuing that run would repeat nothing."""

        self.log: list[str] = []

    def step(self) -> None:
        """Let one thing happen."""
        actions: list[tuple[int, Callable[[], None]]] = [
            (3, self.grow),
            (3, self.run_all),
            (2, self.run_some),
            (2, self.run_failing),
            (2, self.run_dying),
            (3, self.from_failure),
            (3, self.from_asset_failure),
            (1, self.re_execute_all),
            (1, self.shell_retry),
            (1, self.shell_run),
            (1, self.lose_pz),
            (1, self.lose_staging),
            (1, self.lose_copy),
            (1, self.back_up),
            (1, self.restore),
        ]
        (action,) = self.random.choices([each for _, each in actions], [weight for weight, _ in actions])
        self.log.append(action.__name__)
        if action not in (self.grow, self.run_all) and self.random.random() < 0.3:
            self.grow()
        action()

    def grow(self) -> None:
        self.far.ids = [*self.far.ids, len(self.far.ids) + 1]

    def run_all(self) -> None:
        self._run(None)

    def run_some(self) -> None:
        self._run(self.random.choice([[A], [B], [LOAD], [LOAD, A], [LOAD, B]]))

    def run_failing(self) -> None:
        self.far.failures = {self.random.choice(SINKS): 1}
        self._run(None)

    def run_dying(self) -> None:
        """A worker that dies at a point: what it had on disk stays, and its results say that it still runs."""
        os.environ["PZ_FAULT"] = f"{self.random.choice(POINTS)}=raise"
        try:
            self._run(None)
        finally:
            del os.environ["PZ_FAULT"]
        self.is_level = False
        newest = list_runs(self.directory)[:1]
        if newest and self.random.random() < 0.5:
            path = self.directory / ".pz" / "runs" / newest[0].run_id / "run_results.json"
            path.write_text(path.read_text().replace(f'"{newest[0].status.value}"', '"running"', 1))

    def from_failure(self) -> None:
        if self.job.last and not self.job.succeeded:
            self._run(self.chosen, FROM_FAILURE, parent=self.job.last)

    def from_asset_failure(self) -> None:
        if self.job.last and not self.job.succeeded:
            wanted = self.chosen or sorted(self.job.job.asset_layer.executable_asset_keys)
            left = [key for key in wanted if key.to_user_string() not in self.materialized]
            if left:
                self._run(left, FROM_ASSET_FAILURE, parent=self.job.last)

    def re_execute_all(self) -> None:
        if self.job.last:
            tags = self.random.choice([(), (FROM_ASSET_FAILURE,)])
            self._run(self.chosen, *tags, parent=self.job.last)

    def shell_retry(self) -> None:
        try:
            if run_project(RunRequest(self.directory, retry_from="latest")).exit_code == 0 and self.is_pending:
                self.is_pending = not self.is_level
        except PzStateError:
            return

    def shell_run(self) -> None:
        run_project(RunRequest(self.directory, selection=Selection(everything=True)))
        self.is_level = False

    def lose_pz(self) -> None:
        shutil.rmtree(self.directory / ".pz", ignore_errors=True)
        self.is_level = False

    def lose_staging(self) -> None:
        for path in self.directory.glob(".pz/runs/*/staging.duckdb"):
            path.unlink()
        self.is_level = False

    def lose_copy(self) -> None:
        self.job.instance.wipe_assets([dg.AssetKey(["two", "pz_state"])])

    def back_up(self) -> None:
        shutil.rmtree(self.directory / "backup", ignore_errors=True)
        if (self.directory / ".pz").exists():
            shutil.copytree(self.directory / ".pz", self.directory / "backup")

    def restore(self) -> None:
        if (self.directory / "backup").exists():
            shutil.rmtree(self.directory / ".pz", ignore_errors=True)
            shutil.copytree(self.directory / "backup", self.directory / ".pz")
            self.is_level = False

    def _run(self, chosen: list[dg.AssetKey] | None, *tags: str, parent: str | None = None) -> None:
        before = {sink: list(self._rows(sink)) for sink in SINKS}
        is_resuming = FROM_FAILURE in tags
        was_level = self.is_level and (is_resuming or not self.is_pending)
        self.materialized = self.job.run(*tags, parent=parent, assets=chosen)
        self.chosen, self.far.failures = chosen, {}
        for sink in SINKS if was_level and chosen is None else ():
            new = self._rows(sink)[len(before[sink]) :]
            twice = sorted(set(new) & set(before[sink]))
            assert not twice, f"{sink} was sent {twice} again"
        self.is_pending = not self.job.succeeded
        self.is_level = chosen is None and (self.job.succeeded or was_level)

    def _rows(self, sink: str) -> list[int]:
        return [row["id"] for row in self.far.written.get(sink, [])]

    def check(self) -> None:
        """No row that never was, and no position beyond what every sink has."""
        reached = int(watermark(self.factory) or 0) if (self.directory / ".pz/state/watermarks.json").exists() else 0
        for sink in SINKS:
            rows = set(self._rows(sink))
            assert rows <= set(self.far.ids)
            assert rows >= set(range(1, reached + 1)), f"the watermark is {reached}, and {sink} has {sorted(rows)}"
        for sink, key in zip(SINKS, (A, B), strict=True):
            if key.to_user_string() in self.materialized and self.job.succeeded:
                assert self._rows(sink), f"{sink} was reported and is empty"


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_is_lost_and_no_watermark_passes_one(seed: int, tmp_path: Path) -> None:
    """After every step, and everything everywhere after a last clean run."""
    far = Far()
    with far.installed(), dg.DagsterInstance.ephemeral() as instance:
        world = World(tmp_path, instance, far, seed)
        try:
            for _ in range(STEPS):
                world.step()
                world.check()
            far.failures = {}
            world.run_all()
            world.check()
            assert world.job.succeeded
            for sink in SINKS:
                assert set(world._rows(sink)) == set(far.ids)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {world.log}: {error}") from error
