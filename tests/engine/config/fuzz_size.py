"""How many cases the property tests of project files try.

PZ_FUZZ=20000 makes a long hunt of them; the normal run stays within seconds.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

_WANTED = int(os.environ.get("PZ_FUZZ", "0"))


def cases(normal: int) -> settings:
    """Return settings with the given number of cases, or with PZ_FUZZ of them."""
    return settings(
        max_examples=_WANTED or normal, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
    )  # fmt: skip


def tell(capsys: pytest.CaptureFixture[str], line: str) -> None:
    """Print what a long hunt met; a normal run says nothing."""
    if _WANTED:
        with capsys.disabled():
            print(f"\n{line}")  # noqa: T201
