"""The bus delivers in order and shields the run from its watchers."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta, timezone

from pz_engine.events.bus import EventBus
from pz_engine.events.publisher import Publisher
from pz_engine.events.types import NodeQueued, RunEvent

NOW = datetime(2026, 11, 4, tzinfo=timezone.utc)


class TickingClock:
    """Moves one millisecond at each look."""

    def __init__(self) -> None:
        self._looks = 0

    def now(self) -> datetime:
        self._looks += 1
        return NOW + timedelta(milliseconds=self._looks)

    def monotonic(self) -> float:
        return 0.0


def queued(name: str) -> NodeQueued:
    return NodeQueued(at=NOW, run_id="r", node_id=name)


def test_every_consumer_sees_every_event_in_order() -> None:
    """Events arrive at all consumers in publication order."""
    first: list[RunEvent] = []
    second: list[RunEvent] = []
    bus = EventBus([first.append, second.append], on_failure=lambda _: None)
    events = [queued(str(number)) for number in range(200)]
    for event in events:
        bus.publish(event)
    assert bus.close(5.0)
    assert first == second == events


def test_raising_consumer_is_dropped_after_one_warning() -> None:
    """A consumer that raises is reported once and the others go on."""
    seen: list[RunEvent] = []
    warnings: list[str] = []

    def broken(_: RunEvent) -> None:
        raise RuntimeError("terminal is gone")

    bus = EventBus([broken, seen.append], on_failure=warnings.append)
    for number in range(3):
        bus.publish(queued(str(number)))
    assert bus.close(5.0)
    assert len(seen) == 3
    assert warnings == ["the event consumer 'broken' failed and was switched off (RuntimeError)"]


def test_hanging_consumer_costs_only_the_closing_bound() -> None:
    """Publishing to a stuck consumer returns at once and closing gives up after its bound."""
    release = threading.Event()
    late: list[RunEvent] = []
    bus = EventBus([lambda _: release.wait(10) and None, late.append], on_failure=lambda _: None)
    started = time.monotonic()
    for number in range(1000):
        bus.publish(queued(str(number)))
    assert not bus.close(0.05)
    assert time.monotonic() - started < 2
    release.set()
    bus.close(5.0)
    assert late == []


def test_publishing_after_close_is_ignored() -> None:
    """A closed bus takes events without complaint and delivers nothing; closing twice is fine."""
    seen: list[RunEvent] = []
    bus = EventBus([seen.append], on_failure=lambda _: None)
    assert bus.close(5.0)
    bus.publish(queued("late"))
    assert bus.close(5.0)
    assert seen == []


def test_failing_failure_handler_is_survived() -> None:
    """Even the warning about a broken consumer may fail."""
    seen: list[RunEvent] = []

    def broken(_: RunEvent) -> None:
        raise ValueError

    bus = EventBus([broken, seen.append], on_failure=lambda _: broken(queued("x")))
    bus.publish(queued("a"))
    assert bus.close(5.0)
    assert len(seen) == 1


def test_instants_never_run_backwards_across_threads() -> None:
    """Stamping and queueing are one step, so the stream's order is the order of its instants."""
    seen: list[RunEvent] = []
    bus = EventBus([seen.append], on_failure=lambda _: None)
    publisher = Publisher(bus, TickingClock(), "run-1")

    def work() -> None:
        for number in range(100):
            publisher.emit(NodeQueued, node_id=str(number))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bus.close(5.0)
    assert len(seen) == 400
    assert [event.at for event in seen] == sorted(event.at for event in seen)
    assert {event.run_id for event in seen} == {"run-1"}
