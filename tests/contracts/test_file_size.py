"""One concept a file, under 400 lines."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT = 400
DATA = ROOT / "bench" / ".data"  # what the benches write, an environment of packages among it
FILES = sorted(
    path
    for top in ("pz_engine", "pz_dagster", "tests", "bench")
    for path in (ROOT / top).rglob("*.py")
    if DATA not in path.parents
)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_no_file_is_longer_than_the_limit(path: Path) -> None:
    """A longer file holds more than one concept."""
    assert len(path.read_text().splitlines()) <= LIMIT


@pytest.mark.parametrize(
    "path",
    [p for p in FILES if p.relative_to(ROOT).parts[0].startswith("pz_")],
    ids=lambda p: p.relative_to(ROOT).as_posix(),
)
def test_every_module_opens_with_a_docstring(path: Path) -> None:
    """The first statement says what the module is responsible for."""
    assert path.read_text().lstrip().startswith('"""')
