"""What the daemon starts by itself: a schedule, the backlog of windows, an eager chain, a sensor on a sink."""

from __future__ import annotations

import dagster as dg

from tests.dagster.daemon.scene import TOGETHER, Scene, wait_until

_REPORT = """
mutation ($key: AssetKeyInput!) { reportRunlessAssetEvents(eventParams: {
  eventType: ASSET_MATERIALIZATION, assetKey: $key }) { __typename } }
"""


def a_schedule_fires(scene: Scene) -> None:
    """On the minute, with the tags of its job."""
    started = scene.server.start_schedule("minutely", location=TOGETHER)
    run = wait_until(lambda: scene.runs(dagster__schedule_name="minutely"), "scheduled run")[-1]
    scene.server.stop_schedule(started)
    assert scene.server.follow(run.run_id) == "SUCCESS"
    assert run.tags["pz/project"] == "timed"
    assert run.tags["dagster/max_retries"] == "1"
    assert scene.shown["timed"].landed() == [1, 2]


def the_backlog_is_worked_off(scene: Scene) -> None:
    """One run for each window that is left, and none once the flow has caught up."""
    shown = scene.shown["windows"]
    assert scene.server.follow(scene.server.launch(shown.assets, location=TOGETHER)) == "SUCCESS"
    name = "windows_backlog"
    scene.server.start_sensor(name, location=TOGETHER)

    def is_idle() -> bool:
        """Three windows are left of four; the sensor looks three times more."""
        ticks = scene.server.ticks(name, location=TOGETHER)
        return [bool(tick["runIds"]) for tick in ticks[:3]] == [False] * 3 and len(finished()) >= 3

    def finished() -> list[dg.DagsterRun]:
        return [run for run in scene.runs(dagster__sensor_name=name) if run.is_finished]

    wait_until(is_idle, "end of the backlog")
    runs = scene.runs(dagster__sensor_name=name)
    assert [run.status for run in runs] == [dg.DagsterRunStatus.SUCCESS] * 3
    loads = scene.instance.fetch_materializations(dg.AssetKey(shown.assets[0]), limit=10, ascending=True).records
    found = [event.asset_materialization.metadata for event in loads if event.asset_materialization is not None]
    assert [each["pz/caught_up"].value for each in found] == [False, False, False, True]
    assert [each["pz/rows"].value for each in found] == [1, 2, 2, 2]
    assert shown.landed() == [1, 2, 3, 4, 10, 20, 30]


def an_eager_chain_runs_once_and_its_sink_is_followed(scene: Scene) -> None:
    """One tick asks for load, pipeline and sink together; the ticks after it ask for nothing; the sink fires a sensor."""
    shown = scene.shown["chain"]
    for name in ("chain_conditions", "on_items"):
        scene.server.start_sensor(name, location=TOGETHER)
    wait_until(lambda: scene.server.ticks("chain_conditions", location=TOGETHER), "tick")
    scene.server.query(_REPORT, {"key": {"path": ["chain_in", "items"]}})
    (run,) = wait_until(lambda: scene.runs(dagster__sensor_name="chain_conditions"), "run of the chain")
    assert run.asset_selection == {dg.AssetKey(path) for path in shown.assets}
    assert scene.server.follow(run.run_id) == "SUCCESS"
    (next_run,) = wait_until(lambda: scene.runs(dagster__sensor_name="on_items"), "run of the follower")
    assert scene.server.follow(next_run.run_id) == "SUCCESS"
    seen = len(scene.server.ticks("chain_conditions", location=TOGETHER))
    wait_until(lambda: len(scene.server.ticks("chain_conditions", location=TOGETHER)) >= seen + 3, "three ticks")
    assert len(scene.runs(dagster__sensor_name="chain_conditions")) == 1
    assert len(scene.runs(dagster__sensor_name="on_items")) == 1
    assert len(shown.landed()) == 10
