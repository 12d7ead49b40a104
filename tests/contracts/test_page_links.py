"""Every link of the documentation leads somewhere, and every picture is small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "example_project").glob("*.md")])
LARGEST = 150_000


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """Files exist, and so do the headings that are named."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_pictures_are_small_and_used() -> None:
    """A page loads at once, and no picture is left over."""
    text = (ROOT / "docs" / "dagster.md").read_text()
    pictures = sorted((ROOT / "docs" / "images").iterdir())
    assert pictures
    assert [path.name for path in pictures if path.stat().st_size > LARGEST] == []
    assert [path.name for path in pictures if f"images/{path.name}" not in text] == []
