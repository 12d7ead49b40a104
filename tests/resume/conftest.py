"""Fixtures of the random sequences: how many there are, where they start, and processes to kill."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pz_engine.testing import fault_connector
from tests.resume.cases import Case, draw
from tests.resume.process import Nursery
from tests.resume.sequences import carry_out, shrink

SEED = os.environ.get("PZ_SEED", "1")
"""Where drawing starts; printed with every failure."""

SEQUENCES = int(os.environ.get("PZ_SEQUENCES", "2000"))
"""How many sequences both files carry out together."""

CHUNK = 25

MEMORY_DISK = Path("/dev/shm")
"""Where there is one, sequences run there: they make some ten thousand small files."""


def chunks(share: float) -> range:
    """Return the numbers of the chunks that make up a share of all sequences."""
    return range(round(SEQUENCES * share / CHUNK))


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """A process whose children may be killed."""
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def complaints_of(nursery: Nursery) -> Iterator[Callable[[Case], list[str]]]:
    """Carries a case out in a folder of its own."""
    count = 0
    place = MEMORY_DISK if os.access(MEMORY_DISK, os.W_OK) else None

    with tempfile.TemporaryDirectory(prefix="pz-resume-", dir=place) as directory, fault_connector.installed():

        def carry(case: Case) -> list[str]:
            nonlocal count
            count += 1
            return carry_out(case, Path(directory) / str(count), nursery)

        yield carry


@pytest.fixture
def hold_chunk(complaints_of: Callable[[Case], list[str]]) -> Callable[..., None]:
    """Compares every sequence of a chunk with the model; a failure is made small first."""

    def hold(chunk: int, *, kills: bool) -> None:
        for number in range(CHUNK):
            seed = f"{SEED}/{'kills' if kills else 'faults'}/{chunk}/{number}"
            case = draw(seed, kills=kills)
            if complaints_of(case):
                small = shrink(case, lambda each: bool(complaints_of(each)))
                told = "\n".join(complaints_of(small))
                pytest.fail(f"seed {seed}\n{told}\nkeep this in regressions.py:\n{small.to_json()}", pytrace=False)

    return hold
