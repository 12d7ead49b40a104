"""Random faults inside runs and retries, compared with the model after every step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.resume.cases import Case
from tests.resume.conftest import chunks
from tests.resume.regressions import CASES


@pytest.mark.parametrize("name", CASES)
def test_case_that_once_failed_holds(complaints_of: Callable[[Case], list[str]], name: str) -> None:
    """What was found is not lost again."""
    assert complaints_of(Case.from_json(CASES[name])) == []


@pytest.mark.parametrize("chunk", chunks(0.65))
def test_sequences_of_faults_keep_the_guarantees(hold_chunk: Callable[..., None], chunk: int) -> None:
    """Runs and retries with failing reads, writes, commits and steps of the engine."""
    hold_chunk(chunk, kills=False)
