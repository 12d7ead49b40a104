"""What the engine costs beside the work: events, state, the journal, and the start of the small verbs.

    python bench/operations.py [--rounds 5]

Nothing here gates a test.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

from measure import interleave

from pz_engine import RunRequest, Selection, run_project
from pz_engine.base.clock import SystemClock
from pz_engine.events.bus import EventBus
from pz_engine.events.publisher import Publisher
from pz_engine.events.run_journal import RunJournal
from pz_engine.events.types import NodeProgress, RunEvent
from pz_engine.model.project import StateSettings
from pz_engine.state.factory import open_state_stores
from pz_engine.state.store import WatermarkEntry
from pz_engine.testing.state_server import StateServer

HERE = Path(__file__).parent
DATA = HERE / ".data"
EVENTS = 20_000
NODES = 500


def spread(samples: list[float], unit: str, digits: int = 2) -> str:
    """Return median, minimum and maximum."""
    return f"{statistics.median(samples):.{digits}f} {unit} ({min(samples):.{digits}f}-{max(samples):.{digits}f})"


def bench_events(rounds: int) -> None:
    """Publishing an event, as the engine's threads see it, with a journal listening."""
    samples = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            journal = RunJournal(Path(folder), "run", on_warning=print)
            bus = EventBus([journal], print)
            publisher = Publisher(bus, SystemClock(), "run")
            started = time.perf_counter()
            for number in range(EVENTS):
                publisher.emit(NodeProgress, node_id="n", node_name="node", rows=number, bytes=number, batches=number)
            samples.append((time.perf_counter() - started) / EVENTS * 1e6)
            bus.close(60)
            journal.close()
    print(f"publishing an event: {spread(samples, 'us')}")


def bench_state(rounds: int) -> None:
    """Reading and writing a watermark among 100, locally and behind an endpoint on this machine."""
    with tempfile.TemporaryDirectory() as folder, StateServer() as server:
        for settings in (StateSettings(), StateSettings("http", url=server.url)):
            samples = []
            with open_state_stores(settings, Path(folder), note=print) as stores:
                for number in range(100):
                    stores.watermarks.set(f"c.e{number}", WatermarkEntry("id", "bigint", "0", "run"))
                for number in range(rounds * 20):
                    key = f"c.e{number % 100}"
                    stores.watermarks.get(key)
                    started = time.perf_counter()
                    stores.watermarks.set(key, WatermarkEntry("id", "bigint", str(number), "run"))
                    samples.append((time.perf_counter() - started) * 1000)
            print(f"a state write, {settings.backend}: {spread(samples, 'ms')}")


def bench_journal(rounds: int) -> None:
    """A run of 500 tiny nodes with and without its journal, in turn."""
    root = DATA / "five_hundred"
    shutil.rmtree(root, ignore_errors=True)
    (root / "pipelines").mkdir(parents=True)
    (root / "project.yml").write_text('name: five_hundred\nversion: "1"\nengine:\n  threads: 2\n')
    for number in range(NODES):
        (root / "pipelines" / f"p{number}.sql").write_text(f"SELECT {number} AS n")
    request = RunRequest(root, selection=Selection(everything=True))
    write = RunJournal.__call__

    def silent(journal: RunJournal, event: RunEvent) -> None:
        del journal, event

    on: list[float] = []
    off: list[float] = []
    for _ in range(rounds):
        for samples, consumer in ((on, write), (off, silent)):
            RunJournal.__call__ = consumer  # type: ignore[method-assign, assignment]
            started = time.process_time()
            outcome = run_project(request)
            samples.append(time.process_time() - started)
            assert outcome.exit_code == 0
            assert len(outcome.results) == NODES
    RunJournal.__call__ = write  # type: ignore[method-assign, assignment]
    ratio = statistics.median(on) / statistics.median(off)
    print(f"run of {NODES} nodes: {spread(on, 's')} of CPU with its journal, {spread(off, 's')} without: {ratio:.3f}")


def bench_small_verbs(rounds: int) -> None:
    """`pz state show` and `pz runs` from process start, and `pz runs` over 10,000 runs."""
    root = DATA / "small_verbs"
    shutil.rmtree(root, ignore_errors=True)
    (root / "pipelines").mkdir(parents=True)
    (root / "project.yml").write_text('name: small_verbs\nversion: "1"\n')
    (root / "pipelines" / "one.sql").write_text("SELECT 1 AS one")
    assert run_project(RunRequest(root, selection=Selection(everything=True))).exit_code == 0
    command = [sys.executable, "-m", "pz_engine"]
    show, runs, bare = interleave(
        rounds,
        ([*command, "state", "show", "--project", str(root)], None),
        ([*command, "runs", "--project", str(root)], None),
        ([sys.executable, "-c", "pass"], None),
    )
    print(f"pz state show: {show.spread()}, pz runs: {runs.spread()}, a bare interpreter: {bare.spread()}")
    (present,) = (root / ".pz" / "runs").iterdir()
    content = (present / "run_results.json").read_bytes()
    for number in range(10_000):
        moment = datetime(2025, 1, 1, tzinfo=timezone.utc) + timedelta(minutes=number)
        directory = root / ".pz" / "runs" / f"{moment:%Y%m%dT%H%M%S}000Z-0000"
        directory.mkdir()
        (directory / "run_results.json").write_bytes(content)
    (many,) = interleave(rounds, ([*command, "runs", "--project", str(root)], None))
    print(f"pz runs over 10,001 runs: {many.spread()}")


def main() -> None:
    """Run every case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    DATA.mkdir(exist_ok=True)
    bench_events(rounds)
    bench_state(rounds)
    bench_journal(rounds)
    bench_small_verbs(rounds)


if __name__ == "__main__":
    main()
