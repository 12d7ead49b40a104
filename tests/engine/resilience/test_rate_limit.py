"""A bucket paces operations, and an exhausted budget pauses them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_engine.model.policies import RateLimit
from pz_engine.resilience.rate_limit import Pacer
from pz_engine.testing.fixed_clock import FixedClock


def pacer_at(clock: FixedClock, limit: RateLimit | None = None) -> Pacer:
    return Pacer(limit, monotonic=clock.monotonic, now=clock.now)


def test_full_bucket_allows_a_burst_then_the_rate() -> None:
    """The burst passes at once; then each operation waits for its token."""
    clock = FixedClock()
    pacer = pacer_at(clock, RateLimit(60, 3))
    assert [pacer.acquire() for _ in range(3)] == [0, 0, 0]
    assert pacer.acquire() == pytest.approx(1.0)
    clock.advance(timedelta(seconds=0.25))
    assert pacer.acquire() == pytest.approx(0.75)
    clock.advance(timedelta(seconds=0.75))
    assert pacer.acquire() == 0


@pytest.mark.parametrize(("per_minute", "burst"), [(1, 1), (59, 1), (60, 1), (119, 1), (120, 2), (6000, 100)])
def test_default_burst_is_one_second_of_the_rate(per_minute: int, burst: int) -> None:
    """Without a declared burst a second's worth passes at once, and never fewer than one."""
    pacer = pacer_at(FixedClock(), RateLimit(per_minute))
    assert sum(pacer.acquire() == 0 for _ in range(burst + 5)) == burst


def test_bucket_never_holds_more_than_its_burst() -> None:
    """A long pause does not save up operations."""
    clock = FixedClock()
    pacer = pacer_at(clock, RateLimit(60, 2))
    clock.advance(timedelta(hours=1))
    assert sum(pacer.acquire() == 0 for _ in range(10)) == 2


def test_exhausted_budget_pauses_until_its_reset_without_any_limit() -> None:
    """Nothing left means waiting for the reset; a reset that is past clears it."""
    clock = FixedClock()
    pacer = pacer_at(clock)
    pacer.report_budget(0, clock.now() + timedelta(seconds=40))
    assert pacer.acquire() == pytest.approx(40)
    clock.advance(timedelta(seconds=40))
    assert pacer.acquire() == 0
    pacer.report_budget(0, clock.now() - timedelta(seconds=5))
    assert pacer.acquire() == 0


def test_last_word_on_the_budget_counts() -> None:
    """A later report of something left ends the pause."""
    clock = FixedClock()
    pacer = pacer_at(clock)
    pacer.report_budget(0, clock.now() + timedelta(seconds=40))
    pacer.report_budget(7, clock.now() + timedelta(seconds=40))
    assert pacer.acquire() == 0


def test_reset_far_away_is_taken_for_a_quarter_of_an_hour() -> None:
    """A far side that speaks of tomorrow does not stop a run until then."""
    clock = FixedClock()
    pacer = pacer_at(clock)
    pacer.report_budget(0, clock.now() + timedelta(days=1))
    assert pacer.acquire() == pytest.approx(900)


@given(st.integers(1, 600), st.integers(1, 5), st.lists(st.floats(0, 3), max_size=40))
def test_no_window_sees_more_than_burst_and_rate_allow(per_minute: int, burst: int, pauses: list[float]) -> None:
    """Waiting exactly as long as told admits operations at the rate and never faster."""
    clock = FixedClock()
    pacer = pacer_at(clock, RateLimit(per_minute, burst))
    for taken, pause in enumerate(pauses, 1):
        clock.advance(timedelta(seconds=pause))
        wait = pacer.acquire()
        if wait > 0:
            clock.advance(timedelta(seconds=wait + 1e-6))
            assert pacer.acquire() == 0
        assert taken <= burst + clock.monotonic() * per_minute / 60 + 1e-3
