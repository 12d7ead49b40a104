"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WITH_EXAMPLES = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    for top in ("pz_engine", "pz_dagster")
    for path in (ROOT / top).rglob("*.py")
    if "templates" not in path.relative_to(ROOT).parts and ">>> " in path.read_text()
)


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_hold(module: str) -> None:
    """The example is the specification of a rewriting function."""
    results = doctest.testmod(importlib.import_module(module))
    assert results.attempted
    assert not results.failed
