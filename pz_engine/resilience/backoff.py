"""How long to wait before trying again."""

from __future__ import annotations

from datetime import timedelta

from pz_engine.model.policies import RetryPolicy

_LONGEST = timedelta(days=365_000)
"""No wait is longer; spreading a declared limit of ages must not leave the range of a duration."""


def retry_delay(policy: RetryPolicy, failures: int, u: float, retry_after: timedelta | None = None) -> timedelta:
    """Return the wait after a failure: doubling from the base, capped, then spread by a quarter each way.

    Args:
        policy: the node's effective limits.
        failures: failures so far, this one included; counts from 1.
        u: uniform in [0, 1); 0.5 gives exactly the capped wait.
        retry_after: the shortest wait the far side asked for; replaces the doubling, is never undercut by the spread,
            and is still capped.

    >>> retry_delay(RetryPolicy(), 3, 0.5)
    datetime.timedelta(seconds=4)
    """
    cap = policy.max_delay.total_seconds()
    if retry_after is None:
        base = policy.base_delay.total_seconds() * 2.0 ** min(failures - 1, 1000)
        factor = 1 + (u - 0.5) * 0.5
    else:
        base = retry_after.total_seconds()
        factor = max(1.0, 1 + (u - 0.5) * 0.5)
    return timedelta(seconds=min(max(0.0, min(base, cap) * factor), _LONGEST.total_seconds()))
