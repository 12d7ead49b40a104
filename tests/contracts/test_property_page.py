"""The page that says which test holds which property names tests that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "internals" / "properties.md").read_text(encoding="utf-8")
_REFERENCE = re.compile(r"`(?P<file>[\w/]+\.py)?(?:::(?P<test>\w+)(?:\[[^\]]+\])?)?`")


@cache
def _tests_of(file: str) -> frozenset[str]:
    return frozenset(re.findall(r"^def (test_\w+)", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE))


def references() -> list[tuple[str, str | None]]:
    """Return every file and test that is named; a test without a file is in the one before it."""
    found, current = [], ""
    for line in PAGE.splitlines():
        for match in _REFERENCE.finditer(line):
            if match["file"] is None and match["test"] is None:
                continue
            current = match["file"] or current
            found.append((current, match["test"]))
    return found


@pytest.mark.parametrize("file", sorted({file for file, _ in references()}))
def test_named_tests_exist(file: str) -> None:
    """Each file, and each test in it."""
    named = {test for owner, test in references() if owner == file and test is not None}
    assert (TESTS / file).is_file()
    assert named <= _tests_of(file), named - _tests_of(file)


def test_page_names_many_tests() -> None:
    """The pattern finds what it is meant to find."""
    assert len(references()) > 150
