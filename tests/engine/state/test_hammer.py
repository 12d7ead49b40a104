"""Two processes with four threads each hammer one store: no update is lost and no value is seen to go back.

`PZ_HAMMER_SECONDS=30` hammers for longer.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pz_engine.errors.exceptions import PzStateError
from pz_engine.model.project import StateSettings
from pz_engine.state.factory import open_state_stores
from pz_engine.state.store import StateStores, WatermarkEntry
from pz_engine.testing.state_server import StateServer

SECONDS = float(os.environ.get("PZ_HAMMER_SECONDS", "2"))
PROCESSES, THREADS = 2, 4


@dataclass
class Tally:
    """What one thread did."""

    worker: str
    wins: int = 0
    losses: int = 0
    own: int = 0
    regressions: int = 0


def entry(value: int) -> WatermarkEntry:
    return WatermarkEntry("id", "bigint", str(value), "run")


def open_stores(settings: StateSettings, directory: str) -> StateStores:
    return open_state_stores(settings, Path(directory), note=pytest.fail)


def _hammer(settings: StateSettings, directory: str, tally: Tally, seconds: float) -> None:
    """Count up in a shared key and in a key of one's own, each round with a store of its own, as a run has."""
    seen, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        with open_stores(settings, directory) as stores:
            store = stores.watermarks
            current = store.get("shared.count")
            value = int(current.value) if current is not None else 0
            tally.regressions += value < seen
            seen = value
            try:
                store.set("shared.count", entry(value + 1))
                tally.wins += 1
            except PzStateError as error:
                if error.code != "PZ0520":
                    raise
                tally.losses += 1
            store.get(f"own.{tally.worker}")
            tally.own += 1
            store.set(f"own.{tally.worker}", entry(tally.own))


def _process(
    settings: StateSettings,
    directory: str,
    process: int,
    seconds: float,
    results: multiprocessing.SimpleQueue[list[Tally]],
) -> None:
    tallies = [Tally(f"p{process}t{number}") for number in range(THREADS)]
    threads = [threading.Thread(target=_hammer, args=(settings, directory, tally, seconds)) for tally in tallies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(tallies)


@pytest.fixture(params=["local", "http"])
def settings(request: pytest.FixtureRequest) -> Iterator[StateSettings]:
    """Each backend."""
    if request.param == "local":
        yield StateSettings()
        return
    with StateServer(token="t") as server:
        yield StateSettings("http", url=server.url, timeout_seconds=20, token="t")


def test_no_update_is_lost_and_nothing_goes_back(settings: StateSettings, tmp_path: Path) -> None:
    """The shared count equals the accepted writes, and every thread's own last value is there."""
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    workers = [
        context.Process(target=_process, args=(settings, str(tmp_path), number, SECONDS, results))
        for number in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    tallies: list[Tally] = [tally for _ in workers for tally in results.get()]
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    wins, losses = sum(tally.wins for tally in tallies), sum(tally.losses for tally in tallies)
    with open_stores(settings, str(tmp_path)) as stores:
        final = dict(stores.watermarks.list_all() or {})
    assert final.pop("shared.count") == entry(wins)
    assert final == {f"own.{tally.worker}": entry(tally.own) for tally in tallies}
    assert sum(tally.regressions for tally in tallies) == 0
    assert wins > PROCESSES * THREADS
    own = sum(tally.own for tally in tallies)
    sys.stderr.write(
        f"{settings.backend}: {wins} shared writes, {losses} lost races, {own} own writes in {SECONDS:g} s\n"
    )
