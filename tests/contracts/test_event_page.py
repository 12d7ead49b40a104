"""The reference page of events is checked against the event classes."""

from __future__ import annotations

import re
from pathlib import Path

from event_samples import SAMPLES

from pz_engine.events.types import EVENT_TYPES

PAGE = Path(__file__).parents[2] / "docs/reference/events.md"


def _documented() -> dict[str, list[str]]:
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    fields = {section.split("\n", 1)[0]: re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) for section in sections}
    return {name: names for name, names in fields.items() if names}


def test_page_lists_exactly_the_fields_of_every_event() -> None:
    """Each public event has a section whose table names its fields in the order they are written."""
    documented = _documented()
    seen: dict[str, set[str]] = {}
    for event in SAMPLES:
        if isinstance(event, EVENT_TYPES):
            fields = list(event.payload())
            seen.setdefault(event.name, set()).update(fields)
            assert [field for field in documented[event.name] if field in fields] == fields
    assert {name: set(fields) for name, fields in documented.items()} == seen
