"""Real kills at random places, compared with the model after every step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.resume.conftest import chunks


@pytest.mark.parametrize("chunk", chunks(0.2))
def test_sequences_with_kills_keep_the_guarantees(hold_chunk: Callable[..., None], chunk: int) -> None:
    """SIGKILL at fault points of the engine and inside reads, requests and commits of the connectors."""
    hold_chunk(chunk, kills=True)
