"""Fixtures for every test: a clean environment and small projects."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

from pz_engine.testing.project_factory import ProjectFactory

hypothesis.settings.register_profile("pz", deadline=None)
hypothesis.settings.load_profile("pz")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden-update", action="store_true", help="rewrite golden files")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest files first, that no worker is left with one of them when the others have nothing to do."""
    longest = ("tests/dagster/test_daemon", "tests/resume/test_random_faults")
    items.sort(key=lambda item: not item.nodeid.startswith(longest))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pz, Dagster or terminal variable of the caller reaches a test."""
    for name in list(os.environ):
        if name.startswith(("PZ_", "DAGSTER_")) or name in ("CI", "NO_COLOR", "COLUMNS", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "1")


@pytest.fixture
def factory(tmp_path: Path) -> ProjectFactory:
    """An empty project below a temporary directory."""
    return ProjectFactory(tmp_path / "project")


@pytest.fixture
def golden_update(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--golden-update"))
