"""Fault points are a closed, documented list."""

from __future__ import annotations

import re
from pathlib import Path

from pz_engine.base.fault_points import NAMES

ROOT = Path(__file__).parents[2]


def test_every_fault_point_is_listed_used_and_documented() -> None:
    """The names in the code, the list and the page are the same set."""
    used = {
        name
        for path in (ROOT / "pz_engine").rglob("*.py")
        for name in re.findall(r'fault_point\("(\w+)"\)', path.read_text())
    }
    page = (ROOT / "docs" / "internals" / "testing.md").read_text()
    documented = set(re.findall(r"^\| `(\w+)` \|", page.partition("## Fault points")[2], re.MULTILINE))
    assert used == set(NAMES)
    assert documented == set(NAMES)
