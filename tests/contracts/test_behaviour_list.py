"""The page of behaviours names tests that exist, in the tests' own words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_its_tests_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made anew it is the same; a test that is gone would have no words."""
    monkeypatch.syspath_prepend(str(DOCS))
    import generate_behaviour_list

    text = generate_behaviour_list.PAGE.read_text(encoding="utf-8")
    assert generate_behaviour_list.render(text) == text
    assert text.count("::test_") > 100
    sys.modules.pop("generate_behaviour_list")
