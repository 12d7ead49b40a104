"""What is decided about a position and its copies: never a skipped row, and never two answers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_dagster.reconciliation import CopyRecord, Decision, LocalState, ManualChange, decide
from pz_engine import compare_positions, entry_fingerprint

WATERMARK, TOKEN = "watermarks/erp.orders", "sync-state/erp.orders"
Entry = dict[str, str] | None


def run_id(minute: int) -> str:
    return f"20261130T10{minute:02}00000Z-ab12"


def instant(minute: int, millis: int = 500) -> str:
    return f"2026-11-30T10:{minute:02}:00.{millis}Z"


def mark(value: int, run: str) -> dict[str, str]:
    return {"cursor": "id", "type": "int", "value": str(value), "runId": run}


def record(
    entry: Entry, minute: int, *, previous: Entry = None, name: str = WATERMARK, by: str | None = None
) -> CopyRecord:
    own = entry_fingerprint(entry) if entry else ""
    replaced = entry_fingerprint(previous) if previous else ""
    return CopyRecord(name, own, replaced, entry, run_id(minute) if by is None else by, instant(minute))


def local(entry: Entry, *changes: ManualChange, **options: Any) -> LocalState:
    return LocalState(entry, entry_fingerprint(entry) if entry else "", changes, **options)


def answer(state: LocalState, records: list[CopyRecord]) -> Decision:
    newest = records[0].entry if records else None
    both = state.entry is not None and newest is not None
    return decide(state, records, compare_positions(state.entry, newest) if both else None)  # type: ignore[arg-type]


R1, R2, R3 = (mark(each * 10, run_id(each)) for each in (1, 2, 3))
MANUAL = mark(5, "manual")
CLEARED = ManualChange(instant(9), True, "20", run_id(2), None)
CLEARED_BEFORE = ManualChange(instant(1), True, "7", run_id(1), None)
SET = ManualChange(instant(9), False, "20", run_id(2), "5")
FAST_CLOCK = ManualChange(instant(0), True, "20", run_id(2), None)


@pytest.mark.parametrize(
    ("state", "records", "action", "code"),
    [
        (local(R2), [record(R2, 2)], "none", None),
        (local(R2), [], "copy", None),
        (local(None), [], "none", None),
        (local(None), [record(R2, 2)], "restore", "PZ0705"),
        (local(None, is_unreadable=True), [record(R2, 2)], "restore", "PZ0705"),
        (local(None, CLEARED_BEFORE), [record(R2, 2)], "restore", "PZ0705"),
        (local(None, CLEARED), [record(R2, 2)], "copy", None),
        (local(None, FAST_CLOCK), [record(R2, 2)], "copy", None),
        (local(None), [record(None, 2)], "none", None),
        (local(MANUAL, SET), [record(R2, 2)], "copy", None),
        (local(MANUAL, SET), [record(R2, 2), record(MANUAL, 1)], "copy", None),
        (local(MANUAL), [record(R2, 2), record(MANUAL, 1)], "restore", "PZ0705"),
        (local(R1), [record(R3, 3), record(R2, 2), record(R1, 1)], "restore", "PZ0705"),
        (local(R1), [record(None, 3), record(R1, 1)], "restore", "PZ0705"),
        (local(R2), [record(R1, 1), record(R2, 2, previous=R1)], "copy", None),
        (local(R3), [record(R2, 2)], "copy", None),
        (local(R2), [record(MANUAL, 2)], "copy", None),
        (local(R2), [record(None, 2)], "copy", None),
        (local(R2), [record(None, 1, by="")], "copy", None),
        (local(R1), [record(None, 2, by="")], "restore", "PZ0706"),
        (local(mark(15, run_id(1))), [record(R2, 2)], "copy", "PZ0706"),
        (local(mark(99, run_id(1))), [record(R2, 2)], "restore", "PZ0706"),
        (local(mark(20, run_id(1))), [record(R2, 2)], "copy", None),
        (local({**R1, "cursor": "other"}), [record(R2, 2)], "copy", "PZ0706"),
        (local(MANUAL), [record(R2, 2)], "copy", "PZ0706"),
    ],
)
def test_each_row_of_watermarks(state: LocalState, records: list[CopyRecord], action: str, code: str | None) -> None:
    """Equal, missing, cleared, set by hand, older, newer, and two histories."""
    found = answer(state, records)
    assert (found.action, found.code) == (action, code)


def token(text: str, run: str) -> dict[str, str]:
    return {"token": text, "runId": run}


T1, T2 = token("a", run_id(1)), token("b", run_id(2))


@pytest.mark.parametrize(
    ("state", "records", "action", "code"),
    [
        (local(None, is_file_missing=True), [record(T2, 2, name=TOKEN)], "restore", "PZ0705"),
        (local(None), [record(T2, 2, name=TOKEN)], "copy", None),
        (local(None, is_unreadable=True), [record(T2, 2, name=TOKEN)], "none", None),
        (local(T1), [record(T2, 2, name=TOKEN), record(T1, 1, name=TOKEN)], "copy", None),
        (local(T2), [record(T1, 1, name=TOKEN)], "copy", None),
        (local(T1), [record(T2, 2, name=TOKEN)], "copy", "PZ0706"),
    ],
)
def test_each_row_of_tokens(state: LocalState, records: list[CopyRecord], action: str, code: str | None) -> None:
    """They come back only where nothing was ever stored, because a dropped one must not; else the older run's stays."""
    found = answer(state, records)
    assert (found.action, found.code) == (action, code)


runs = st.one_of(st.just("manual"), st.integers(0, 9).map(run_id))
entries = st.one_of(st.none(), st.builds(mark, st.integers(0, 9), runs))
changes = st.builds(
    lambda minute, clears, value, run, after: ManualChange(instant(minute), clears, str(value), run, str(after)),
    *(st.integers(0, 9), st.booleans(), st.integers(0, 9), runs, st.integers(0, 9)),
)
histories = st.lists(st.builds(record, entries, st.integers(0, 9), previous=entries), max_size=5)
states = st.builds(
    lambda entry, made, broken: local(entry, *made, is_unreadable=broken and entry is None),
    *(entries, st.lists(changes, max_size=3), st.booleans()),
)


def value_of(entry: Any) -> int:
    return int(entry["value"]) if entry is not None else -1


@given(states, histories)
def test_a_stored_position_only_rises_to_what_it_once_led_to(state: LocalState, records: list[CopyRecord]) -> None:
    """A restored value is higher than the stored one only where the stored one is itself an older copy, or is gone."""
    found = answer(state, records)
    if found.action == "restore" and value_of(records[0].entry) > value_of(state.entry) and state.entry is not None:
        assert state.fingerprint in {each.fingerprint for each in records[1:]}


@given(states, histories)
def test_two_histories_keep_the_lower_position(state: LocalState, records: list[CopyRecord]) -> None:
    """Whichever side it is on."""
    found = answer(state, records)
    if found.code == "PZ0706":
        newest = records[0].entry
        kept = newest if found.action == "restore" else state.entry
        assert value_of(kept) == min(value_of(state.entry), value_of(newest))


@given(states, histories)
def test_the_second_answer_is_nothing(state: LocalState, records: list[CopyRecord]) -> None:
    """What was decided and done leaves nothing to decide."""
    found = answer(state, records)
    if found.action == "restore":
        state = local(records[0].entry or None, *state.changes)  # type: ignore[arg-type]
    elif found.action == "copy":
        records = [record(dict(state.entry) if state.entry else None, 9), *records]
    assert answer(state, records).action == "none"


@given(histories.filter(bool), st.lists(changes, max_size=3))
def test_what_was_cleared_by_hand_stays_away(records: list[CopyRecord], made: list[ManualChange]) -> None:
    """A clear that is later than the newest copy wins over it."""
    state = local(None, *made, ManualChange("2026-12-01T00:00:00.000Z", True, None, None, None))
    assert answer(state, records).action != "restore"
