"""The help of every verb is pinned, and the reference page is made from it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden" / "help.txt"


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    monkeypatch.delitem(sys.modules, "generate_cli", raising=False)
    import generate_cli

    return generate_cli


def test_help_is_golden(generator: object, golden_update: bool) -> None:
    """No verb or option comes, goes or changes its words unnoticed."""
    texts = "".join(f"$ {name} --help\n{text.rstrip()}\n\n" for name, text in generator.help_texts())  # type: ignore[attr-defined]
    if golden_update:
        GOLDEN.write_text(texts, encoding="utf-8")
    assert texts == GOLDEN.read_text(encoding="utf-8")


def test_reference_page_is_current(generator: object) -> None:
    """The page of the command line was generated from this very help."""
    assert (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8") == generator.render_page()  # type: ignore[attr-defined]
