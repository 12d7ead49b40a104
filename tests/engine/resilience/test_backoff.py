"""The wait doubles, is capped, spreads by a quarter and respects the far side."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_engine.model.policies import RetryPolicy
from pz_engine.resilience.backoff import retry_delay

POLICY = RetryPolicy(base_delay=timedelta(seconds=1), max_delay=timedelta(seconds=30))
ALMOST_ONE = 1 - 1e-12


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (5, 16), (6, 30), (100, 30), (5000, 30)])
def test_middle_of_the_spread_is_the_capped_doubling(failures: int, seconds: int) -> None:
    """At one half the wait is exact, and any number of failures stays at the cap."""
    assert retry_delay(POLICY, failures, 0.5) == timedelta(seconds=seconds)


@pytest.mark.parametrize(("u", "seconds"), [(0.0, 1.5), (0.5, 2.0), (ALMOST_ONE, 2.5)])
def test_spread_is_a_quarter_each_way(u: float, seconds: float) -> None:
    """The ends of the spread are three and five quarters."""
    assert retry_delay(POLICY, 2, u).total_seconds() == pytest.approx(seconds)


@pytest.mark.parametrize(("u", "seconds"), [(0.0, 7.0), (0.5, 7.0), (ALMOST_ONE, 8.75)])
def test_far_sides_wish_is_never_undercut(u: float, seconds: float) -> None:
    """With a requested wait the spread only adds."""
    assert retry_delay(POLICY, 4, u, timedelta(seconds=7)).total_seconds() == pytest.approx(seconds)


def test_far_sides_wish_is_capped() -> None:
    """The policy's cap holds against the far side too."""
    assert retry_delay(POLICY, 1, 0.5, timedelta(hours=1)) == timedelta(seconds=30)


@given(st.integers(1, 200), st.floats(0, 1, exclude_max=True), st.none() | st.timedeltas(timedelta(0), timedelta(1)))
def test_wait_is_never_negative_nor_above_the_spread_cap(failures: int, u: float, after: timedelta | None) -> None:
    """Every wait lies between zero and five quarters of the cap."""
    delay = retry_delay(POLICY, failures, u, after)
    assert timedelta(0) <= delay <= POLICY.max_delay * 1.25


def test_limits_of_ages_stay_durations() -> None:
    """The largest limit with the largest spread is still a wait and no overflow."""
    policy = RetryPolicy(base_delay=timedelta.max, max_delay=timedelta.max)
    assert retry_delay(policy, 9, 0.999, timedelta.max) == timedelta(days=365_000)
