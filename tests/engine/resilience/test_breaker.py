"""The breaker opens on consecutive transient failures, lets one probe through, and ignores stale reports."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_engine.resilience.breaker import BreakerChange, BreakerState, CircuitBreaker, Entry
from pz_engine.testing.fixed_clock import FixedClock

COOL_DOWN = timedelta(seconds=30)


class Scene:
    """A breaker, its clock and what it announced."""

    def __init__(self, threshold: int = 2) -> None:
        self.clock = FixedClock()
        self.changes: list[BreakerChange] = []
        self.opened_at = 0.0
        self.breaker = CircuitBreaker(
            failure_threshold=threshold,
            cool_down=COOL_DOWN,
            monotonic=self.clock.monotonic,
            on_change=self._take,
        )

    def _take(self, change: BreakerChange) -> None:
        assert self.breaker.state is change.new  # a callback that asks back must not meet a held lock
        self.changes.append(change)
        if change.new is BreakerState.OPEN:
            self.opened_at = self.clock.monotonic()

    def trip(self, retry_after: timedelta | None = None) -> None:
        for _ in range(2):
            self.breaker.report_transient(self.breaker.try_enter().ticket, retry_after)

    def probe(self) -> Entry:
        self.clock.advance(self.breaker.cool_down)
        entry = self.breaker.try_enter()
        assert entry.is_admitted
        return entry

    @property
    def moves(self) -> list[tuple[str, str, str, int]]:
        return [(change.old.value, change.new.value, change.trigger, change.cool_down_ms) for change in self.changes]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_consecutive_transient_failures_open_it(scene: Scene) -> None:
    """The threshold counts failures in a row; the move into open carries the coming wait."""
    scene.breaker.report_transient(scene.breaker.try_enter().ticket)
    assert scene.breaker.try_enter().is_admitted
    scene.breaker.report_transient(scene.breaker.try_enter().ticket)
    assert scene.moves == [("closed", "open", "2 consecutive transient failures", 30_000)]
    assert scene.breaker.try_enter() == Entry(0, 30.0)
    scene.clock.advance(timedelta(seconds=20))
    assert scene.breaker.try_enter() == Entry(0, 10.0)


def test_success_starts_the_count_again_and_permanent_failures_leave_it(scene: Scene) -> None:
    """A success between two failures keeps it closed; a permanent failure neither counts nor resets."""
    ticket = scene.breaker.try_enter().ticket
    scene.breaker.report_transient(ticket)
    scene.breaker.report_success(ticket)
    scene.breaker.report_transient(ticket)
    assert scene.breaker.state is BreakerState.CLOSED
    scene.breaker.report_permanent(ticket)
    scene.breaker.report_transient(ticket)
    assert scene.breaker.state is BreakerState.OPEN


def test_exactly_one_probe_after_the_cool_down(scene: Scene) -> None:
    """The first entry after the wait is the probe; everybody else waits a whole cool-down."""
    scene.trip()
    probe = scene.probe()
    assert scene.breaker.try_enter() == Entry(0, 30.0)
    scene.breaker.report_success(probe.ticket)
    assert [move[1] for move in scene.moves] == ["open", "half_open", "closed"]
    assert scene.moves[1:] == [
        ("open", "half_open", "cool-down elapsed", 0),
        ("half_open", "closed", "probe succeeded", 0),
    ]


def test_half_open_probe_failure_reopens_for_a_fresh_cool_down(scene: Scene) -> None:
    """A failed probe waits the whole cool-down again."""
    scene.trip()
    scene.breaker.report_transient(scene.probe().ticket)
    assert scene.moves[-1] == ("half_open", "open", "probe failed", 30_000)
    assert scene.breaker.try_enter() == Entry(0, 30.0)


def test_longer_wait_asked_for_wins_and_a_shorter_one_does_not(scene: Scene) -> None:
    """What the far side asked for is a floor, uncapped."""
    scene.trip(timedelta(minutes=10))
    assert scene.breaker.try_enter() == Entry(0, 600.0)
    scene.breaker.report_transient(scene.probe().ticket, timedelta(seconds=1))
    assert scene.breaker.try_enter() == Entry(0, 30.0)


def test_permanent_failure_of_the_probe_closes_it(scene: Scene) -> None:
    """A connection that answers, even with a refusal, is there."""
    scene.trip()
    scene.breaker.report_permanent(scene.probe().ticket)
    assert scene.moves[-1] == ("half_open", "closed", "probe succeeded", 0)


def test_abandoned_probe_reopens_it(scene: Scene) -> None:
    """A probe that was cancelled must not leave it half open for ever."""
    scene.trip()
    scene.breaker.report_abandoned(scene.probe().ticket)
    assert scene.moves[-1] == ("half_open", "open", "probe failed", 30_000)


@pytest.mark.parametrize("report", ["report_success", "report_transient", "report_permanent", "report_abandoned"])
def test_stale_ticket_changes_nothing(scene: Scene, report: str) -> None:
    """A call admitted before the trip can neither close nor reopen it, before, during and after the probe."""
    stale = scene.breaker.try_enter().ticket
    scene.trip()
    getattr(scene.breaker, report)(stale)
    assert scene.breaker.state is BreakerState.OPEN
    probe = scene.probe()
    getattr(scene.breaker, report)(stale)
    assert scene.breaker.state is BreakerState.HALF_OPEN
    scene.breaker.report_success(probe.ticket)
    for _ in range(3):
        getattr(scene.breaker, report)(stale)
    assert scene.breaker.state is BreakerState.CLOSED


def test_threads_share_one_probe() -> None:
    """Of many threads that ask at once after a cool-down, one gets in."""
    scene = Scene()
    scene.trip()
    scene.clock.advance(COOL_DOWN)
    admitted: list[int] = []
    barrier = threading.Barrier(16)

    def ask() -> None:
        barrier.wait()
        entry = scene.breaker.try_enter()
        if entry.is_admitted:
            admitted.append(entry.ticket)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == 1


@given(st.lists(st.tuples(st.sampled_from("espcat"), st.integers(0, 3)), max_size=60))
def test_random_histories_keep_the_invariants(steps: list[tuple[str, int]]) -> None:
    """Whatever is reported by whomever: half open has one admitted caller, and open admits nobody before its time."""
    scene = Scene()
    tickets: list[int] = []
    for action, choice in steps:
        if action == "t":
            scene.clock.advance(timedelta(seconds=10))
        elif action == "e":
            before = scene.breaker.state
            entry = scene.breaker.try_enter()
            if entry.is_admitted:
                tickets.append(entry.ticket)
                if before is BreakerState.OPEN:
                    assert scene.clock.monotonic() - scene.opened_at >= COOL_DOWN.total_seconds()
            else:
                assert before is not BreakerState.CLOSED
                assert 0 < entry.wait_seconds <= COOL_DOWN.total_seconds()
        elif tickets:
            report = {"s": "report_success", "p": "report_permanent", "c": "report_transient", "a": "report_abandoned"}
            getattr(scene.breaker, report[action])(tickets[choice % len(tickets)])
    for earlier, later in zip(scene.changes, scene.changes[1:], strict=False):
        assert earlier.new is later.old


def test_asked_wait_is_a_day_at_most(scene: Scene) -> None:
    """A far side that names the end of time neither overflows a clock nor stops a connection for good."""
    scene.trip(timedelta.max)
    assert scene.breaker.cool_down == timedelta(days=1)
    assert scene.moves[-1][-1] == 86_400_000
    scene.probe()
