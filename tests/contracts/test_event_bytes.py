"""The bytes of every event, on the wire and in the journal, are pinned."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

from event_samples import SAMPLES

from pz_engine.base.stable_json import compact_json
from pz_engine.events import types
from pz_engine.events.ndjson import is_on_the_wire, render_event
from pz_engine.events.run_journal import journal_record

GOLDEN = Path(__file__).parent / "golden"


def _concrete_events() -> set[type[types.RunEvent]]:
    found = {kind for _, kind in inspect.getmembers(types, inspect.isclass) if issubclass(kind, types.RunEvent)}
    return found - {types.RunEvent}


def test_every_event_type_has_a_sample() -> None:
    """No event class escapes the golden files, and the wire list names all but the journal's own."""
    assert {type(event) for event in SAMPLES} == _concrete_events()
    assert _concrete_events() - set(types.EVENT_TYPES) == {types.NodeQueued}


def test_wire_bytes_are_golden() -> None:
    """Each event renders to exactly the agreed line."""
    lines = "".join(f"{render_event(event)}\n" for event in SAMPLES if is_on_the_wire(event))
    assert lines == (GOLDEN / "events.ndjson").read_text(encoding="utf-8")


def test_journal_bytes_are_golden() -> None:
    """Each journal line holds summaries in place of messages."""
    lines = "".join(f"{compact_json(journal_record(event))}\n" for event in SAMPLES)
    assert lines == (GOLDEN / "journal.jsonl").read_text(encoding="utf-8")


def test_nothing_but_an_unmeasured_count_is_left_out() -> None:
    """A completion writes null errors and timings, and leaves out what was not measured."""
    plain = next(
        json.loads(render_event(e)) for e in SAMPLES if isinstance(e, types.NodeCompleted) and not e.result.rows
    )
    assert "rows" not in plain
    assert plain["errorCode"] is None
    assert plain["errorMessage"] is None
    assert plain["timings"] is None
    assert not {"provenance", "ops", "partitions", "delivery", "cdc", "caughtUp", "rejected"} & set(plain)
