"""One server and daemon, with everything the cases need."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event
from typing import Any, TypeVar

import dagster as dg

from pz_engine.testing.http_api import Answer, HttpApi, Request
from tests.dagster.daemon.projects import Shown, days, feed, remote, two_marts, write_location
from tests.dagster.dev_server import DevServer, dev_server

T = TypeVar("T")

SETTINGS = """
telemetry: { enabled: false }
nux: { enabled: false }
concurrency: { pools: { default_limit: 1, granularity: op } }
run_queue: { dequeue_interval_seconds: 1, dequeue_use_threads: true, dequeue_num_workers: 4 }
run_monitoring: { enabled: true, poll_interval_seconds: 2, free_slots_after_run_end_seconds: 1 }
run_retries: { enabled: true, max_retries: 0, retry_on_asset_or_op_failure: false }
"""
IN_PROCESS = {"execution": {"config": {"in_process": {}}}}
APART, TOGETHER = "apart.py", "together.py"
"""Locations: every step a process of its own, and every run one process."""

_APART = "executor = dg.multi_or_in_process_executor\n"
_TOGETHER = """
executor = dg.in_process_executor
days = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-05")

class Eager(PzTranslator):
    def get_automation_condition(self, node, snapshot):
        return dg.AutomationCondition.eager()

def cut(name, policy):
    add(name, partitions_def=days, partition_by=[f"{name}_in.items"], backfill_policy=policy)

cut("many", dg.BackfillPolicy.multi_run(max_partitions_per_run=2))
cut("single", None)

@dg.op
def use():
    pass

@dg.job
def follower():
    use()

@dg.asset_sensor(asset_key=dg.AssetKey(["chain_mart", "items"]), job=follower, minimum_interval_seconds=2)
def on_items(context, asset_event):
    return dg.RunRequest(run_key=context.cursor)

chain = dg.AutomationConditionSensorDefinition(
    "chain_conditions", target=dg.AssetSelection.groups("chain"), minimum_interval_seconds=2
)
found.append(dg.Definitions(
    assets=[dg.AssetSpec(["chain_in", "items"])],
    jobs=[follower],
    sensors=[on_items, chain, *build_pz_sensors(project("windows"), backlog=True, minimum_interval_seconds=2)],
))
"""


@dataclass
class Scene:
    """What a case is given."""

    server: DevServer
    instance: dg.DagsterInstance
    api: HttpApi
    directory: Path
    shown: dict[str, Shown]
    gate: Event = field(default_factory=Event)
    """Opened, it lets requests for `/pair` through, and the first one for `/again`."""

    def runs(self, **tags: str) -> list[dg.DagsterRun]:
        """Return the runs with certain tags, newest first; `__` in a name stands for `/`."""
        wanted: Mapping[str, str] = {name.replace("__", "/"): value for name, value in tags.items()}
        return list(self.instance.get_runs(dg.RunsFilter(tags=wanted)))

    def messages(self, run_id: str) -> list[str]:
        """Return what a run logged."""
        return [entry.user_message for entry in self.instance.all_logs(run_id) if entry.user_message]

    def requests(self, path: str) -> int:
        """Return how often a path of the API was asked for."""
        return sum(request.path == path for request in self.api.requests)

    def land(self, shown: Shown, config: Mapping[str, Any] | None = None) -> str:
        """Run a project of the location with processes to its end, and return how it ended."""
        return self.server.follow(self.server.launch(shown.assets, config or IN_PROCESS, location=APART))


def wait_until(look: Callable[[], T], what: str, seconds: float = 240) -> T:
    """Return the first true thing that `look` returns.

    Raises:
        TimeoutError: there was none in `seconds`.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.3)
    raise TimeoutError(f"no {what} in {seconds:.0f} s")


@contextmanager
def scene(directory: Path) -> Iterator[Scene]:
    """Write all projects, start the server, and stop it when the block ends."""
    gate, both, asked = Event(), Barrier(2), Event()

    def answer(request: Request) -> Answer:
        if request.path == "/pair":
            gate.wait(180)
        if request.path == "/again" and not asked.is_set():
            asked.set()
            gate.wait(180)
        if request.path == "/free":
            try:
                both.wait(120)
            except BrokenBarrierError:
                return Answer(status=400)
        return Answer(body=[{"id": 1}, {"id": 2}, {"id": 3}])

    home = directory / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text(SETTINGS)
    with HttpApi(answer) as api:
        windows = ", max_window: 1d, initial: 2025-12-31, until: 2026-01-04"
        made = [feed(directory, name) for name in ("halt", "killed", "timed")]
        made += [remote(directory, name, api.url) for name in ("pair", "free", "again")]
        made += [days(directory, name) for name in ("many", "single", "chain")]
        made += [days(directory, "windows", sync=windows)]
        two_marts(directory, "redo", api.url)
        locations = (
            write_location(directory / APART, _APART, ["'halt'", "'killed'", "'pair'", "'free'", "'again'"]),
            write_location(
                directory / TOGETHER,
                _TOGETHER,
                ["'redo'", "'windows'", "'chain', translator=Eager()", "'timed', schedules={'minutely': '* * * * *'}"],
            ),
        )
        with dev_server(*locations, home=home) as server, dg.DagsterInstance.from_config(str(home)) as instance:
            yield Scene(server, instance, api, directory, {each.name: each for each in made}, gate)
