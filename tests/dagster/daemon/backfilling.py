"""Backfills of daily partitions, launched over GraphQL and worked off by the daemon."""

from __future__ import annotations

import dagster as dg

from tests.dagster.daemon.scene import Scene, wait_until

KEYS = [f"2026-01-0{day}" for day in range(1, 5)]
ROWS = [1, 2, 3, 4, 10, 20, 30, 40]


def a_backfill_of_many_runs(scene: Scene) -> None:
    """At most two partitions a run: two runs land four days."""
    _backfill(scene, "many", runs=2)


def a_backfill_in_one_run(scene: Scene) -> None:
    """An unbroken range is one run by default."""
    _backfill(scene, "single", runs=1)


def _backfill(scene: Scene, name: str, *, runs: int) -> None:
    """Every row lands once, every partition is recorded once, and no watermark is stored."""
    shown = scene.shown[name]
    backfill = scene.server.backfill(shown.assets, KEYS)

    def is_over() -> bool:
        status = scene.server.backfill_status(backfill)
        assert not status.startswith("FAIL"), status
        return status == "COMPLETED_SUCCESS"

    wait_until(is_over, "end of the backfill")
    launched = scene.runs(dagster__backfill=backfill)
    assert [run.status for run in launched] == [dg.DagsterRunStatus.SUCCESS] * runs
    assert shown.landed() == ROWS
    for path in shown.assets:
        key = dg.AssetKey(path)
        assert scene.instance.get_materialized_partitions(key) == set(KEYS)
        events = scene.instance.fetch_materializations(key, limit=100).records
        assert sorted(event.partition_key or "" for event in events) == KEYS
    assert not shown.watermark.exists()
