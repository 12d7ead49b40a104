"""A DuckDB session per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pz_engine.duck.session import DuckCursor, DuckSession, DuckSettings


@pytest.fixture
def session() -> Iterator[DuckSession]:
    """An empty database in memory."""
    with DuckSession.open(None, DuckSettings(threads=2)) as session:
        yield session


@pytest.fixture
def cursor(session: DuckSession) -> Iterator[DuckCursor]:
    """A cursor of it."""
    with session.cursor() as cursor:
        yield cursor
