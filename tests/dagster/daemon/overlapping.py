"""Two Dagster runs of one unit at once, as processes of their own: with a limit of their pool, and without."""

from __future__ import annotations

import json

from tests.dagster.daemon.scene import APART, Scene, wait_until


def runs_of_one_unit_wait_for_each_other(scene: Scene) -> None:
    """The default limit keeps one of them out of the op; runs of a pool that admits two overtake it, side by side."""
    limited, free = scene.shown["pair"], scene.shown["free"]
    scene.server.limit_pool("pz_free", 2)
    first, second = (scene.server.launch(limited.assets, location=APART) for _ in range(2))
    wait_until(lambda: scene.requests("/pair"), "request")
    _without_a_limit_nothing_is_lost_or_doubled(scene)
    wait_until(lambda: any(_is_waiting(scene, run_id) for run_id in (first, second)), "run that waits")
    assert scene.requests("/pair") == 1
    scene.gate.set()
    assert [scene.server.follow(run_id) for run_id in (first, second)] == ["SUCCESS", "SUCCESS"]
    assert scene.requests("/pair") == 2
    assert limited.landed() == free.landed() == [1, 2, 3]
    assert not [text for run_id in (first, second) for text in scene.messages(run_id) if "PZ0520" in text]


def _without_a_limit_nothing_is_lost_or_doubled(scene: Scene) -> None:
    """Both read the same rows and both deliver; one stores its position, the other says that it was overtaken."""
    shown = scene.shown["free"]
    launched = [scene.server.launch(shown.assets, location=APART) for _ in range(2)]
    assert [scene.server.follow(run_id) for run_id in launched] == ["SUCCESS", "SUCCESS"]
    assert scene.requests("/free") == 2  # neither was answered before both had asked
    assert shown.landed() == [1, 2, 3]
    warned = [run_id for run_id in launched if any("PZ0520" in text for text in scene.messages(run_id))]
    assert len(warned) == 1
    (entry,) = json.loads(shown.watermark.read_text())["watermarks"].values()
    assert entry["value"] in (3, "3")


def _is_waiting(scene: Scene, run_id: str) -> bool:
    """Tell whether the pool keeps a run in the queue, or its step from starting."""
    is_queued = scene.server.status(run_id) == "QUEUED"
    return is_queued or any("blocked by limit for pool pz_pair" in text for text in scene.messages(run_id))
