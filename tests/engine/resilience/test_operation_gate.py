"""The gate paces, counts, and repeats only what may be repeated."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import RateLimit, RetryPolicy
from pz_engine.model.run import OperationCounts
from pz_engine.resilience.operation_gate import OperationGate
from pz_engine.resilience.rate_limit import Pacer
from pz_engine.testing.fixed_clock import FixedClock


class RecordingToken(CancelToken):
    """Lets waits pass on a fixed clock at once, and remembers them."""

    def __init__(self, clock: FixedClock) -> None:
        super().__init__()
        self.clock = clock
        self.waits: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.waits.append(round(seconds, 6))
        self.clock.advance(timedelta(seconds=seconds))
        return self.is_set()


class Scene:
    """A gate with a fixed clock."""

    def __init__(self, limit: RateLimit | None = None) -> None:
        self.clock = FixedClock()
        self.token = RecordingToken(self.clock)
        pacer = Pacer(limit, monotonic=self.clock.monotonic, now=self.clock.now)
        self.gate = OperationGate(pacer, RetryPolicy(max_attempts=3), lambda: 0.5)
        self.calls = 0

    def failing(
        self, times: int, *, is_transient: bool = True, retry_after: timedelta | None = None
    ) -> Callable[[], str]:
        def operation() -> str:
            self.calls += 1
            if self.calls <= times:
                raise PzConnectorError("the server is busy", is_transient=is_transient, retry_after=retry_after)
            return "page"

        return operation


def test_idempotent_operation_is_repeated_and_counted() -> None:
    """Two transient failures cost two waits of the node's own policy and leave their trace in the counters."""
    scene = Scene()
    assert scene.gate.execute("test.get", True, scene.failing(2), scene.token) == "page"
    assert scene.token.waits == [1.0, 2.0]
    assert scene.gate.counts == OperationCounts(3, 2, 0)


def test_exhausted_operation_is_one_transient_failure() -> None:
    """After the last try the failure goes up as it is."""
    scene = Scene()
    with pytest.raises(PzConnectorError) as caught:
        scene.gate.execute("test.get", True, scene.failing(9), scene.token)
    assert caught.value.is_transient
    assert scene.gate.counts == OperationCounts(3, 2, 0)


@pytest.mark.parametrize(("idempotent", "is_transient"), [(False, True), (True, False), (False, False)])
def test_everything_else_is_never_repeated(idempotent: bool, is_transient: bool) -> None:
    """A permanent failure, or an operation that may have happened, runs once."""
    scene = Scene()
    with pytest.raises(PzConnectorError):
        scene.gate.execute("test.send", idempotent, scene.failing(1, is_transient=is_transient), scene.token)
    assert scene.calls == 1
    assert scene.gate.counts == OperationCounts(1, 0, 0)


def test_foreign_exception_passes_through() -> None:
    """What a connector did not classify is not repeated."""
    scene = Scene()

    def operation() -> str:
        raise ValueError("not classified")

    with pytest.raises(ValueError, match="not classified"):
        scene.gate.execute("test.get", True, operation, scene.token)


def test_wait_asked_for_is_respected() -> None:
    """What the far side asked for replaces the doubling."""
    scene = Scene()
    scene.gate.execute("test.get", True, scene.failing(1, retry_after=timedelta(seconds=7)), scene.token)
    assert scene.token.waits == [7.0]


def test_pacing_waits_are_counted_apart() -> None:
    """Only pacing counts as throttling; repeats are paced as well."""
    scene = Scene(RateLimit(60, 1))
    scene.gate.execute("test.get", True, scene.failing(0), scene.token)
    scene.gate.execute("test.get", True, scene.failing(0), scene.token)
    assert scene.gate.counts == OperationCounts(2, 0, 1000)


def test_cancellation_ends_pacing_and_backoff() -> None:
    """A set token is noticed before an operation and in every wait, and is never repeated."""
    scene = Scene()
    scene.token.set()
    with pytest.raises(Cancelled):
        scene.gate.execute("test.get", True, scene.failing(0), scene.token)
    assert scene.calls == 0

    later = Scene()

    def cancel_then_fail() -> str:
        later.token.set()
        raise PzConnectorError("busy", is_transient=True)

    with pytest.raises(Cancelled):
        later.gate.execute("test.get", True, cancel_then_fail, later.token)
    assert later.gate.counts.executed == 1


def test_pause_for_a_quota_is_told_before_it_begins() -> None:
    """A wait no rate asks for is announced; the waits of a rate are not."""
    scene = Scene(RateLimit(1, 1))
    told: list[int] = []
    pacer = Pacer(RateLimit(1, 1), monotonic=scene.clock.monotonic, now=scene.clock.now)
    gate = OperationGate(pacer, RetryPolicy(), lambda: 0.5, lambda: told.append(len(scene.token.waits)))
    for _ in range(3):
        gate.execute("page", True, lambda: None, scene.token)
    assert told == []
    gate.report_budget(0, scene.clock.now() + timedelta(hours=2))
    gate.execute("page", True, lambda: None, scene.token)
    assert told == [2]
    assert scene.token.waits == [60, 60, 900]


def test_wait_longer_than_a_clock_can_hold_is_still_a_wait() -> None:
    """It begins, and cancellation ends it."""
    token = CancelToken()
    threading.Timer(0.05, token.set).start()
    assert token.wait(timedelta.max.total_seconds())
