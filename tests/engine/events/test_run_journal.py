"""Journals are written line by line, read with doubt, and never stop a run."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from pz_engine.events.journal_reader import LONGEST_LINE, JournalReader, parse_line
from pz_engine.events.run_journal import RunJournal, is_legal_run_id, journal_record, sweep_journals
from pz_engine.events.types import NodeCompleted, NodeQueued, RunCompleted, RunStarted
from pz_engine.model.run import NodeError, NodeKind, NodeResult, NodeStatus, RunStatus

NOW = datetime(2026, 11, 4, 6, 15, tzinfo=timezone.utc)
RUN = "20261104T061500000Z-1b3c"
STARTED = RunStarted(at=NOW, run_id=RUN, project_name="p", node_count=1)
QUEUED = NodeQueued(at=NOW, run_id=RUN, node_id="n1")


def failure(code: str, message: str, kind: NodeKind = NodeKind.PIPELINE, rows: int = 0) -> NodeCompleted:
    result = NodeResult("n1", kind, "node", NodeStatus.FAILED, rows, 5, NodeError(code, message))
    return NodeCompleted(at=NOW, run_id=RUN, result=result)


def test_lines_can_be_read_while_the_run_lives(tmp_path: Path) -> None:
    """Each event is on disk as soon as it was handed over."""
    journal = RunJournal(tmp_path / "journal", RUN, on_warning=pytest.fail)
    journal(STARTED)
    journal(QUEUED)
    assert [record["event"] for record in list(JournalReader(journal.path).records())] == ["run_started", "node_queued"]
    journal(failure("PZ0501", "bad 'secret'"))
    assert len(list(JournalReader(journal.path).records())) == 3
    journal.close()
    assert "secret" not in journal.path.read_text(encoding="utf-8")


def test_no_file_before_the_run_starts(tmp_path: Path) -> None:
    """A run that never starts leaves no journal."""
    journal = RunJournal(tmp_path / "journal", RUN, on_warning=pytest.fail)
    journal(QUEUED)
    journal.close()
    assert not (tmp_path / "journal").exists()


def test_existing_journal_is_never_overwritten(tmp_path: Path) -> None:
    """A second run of the same id warns and leaves the first one's lines."""
    (tmp_path / f"{RUN}.jsonl").write_text("kept\n", encoding="utf-8")
    warnings: list[str] = []
    journal = RunJournal(tmp_path, RUN, on_warning=warnings.append)
    journal(STARTED)
    journal(QUEUED)
    assert (tmp_path / f"{RUN}.jsonl").read_text(encoding="utf-8") == "kept\n"
    assert warnings == [f"the run journal of {RUN} is not written: File exists"]


@pytest.mark.parametrize("run_id", ["", ".hidden", "a/b", "x" * 129, "ünïcode", "two\nlines"])
def test_odd_run_ids_get_no_journal(tmp_path: Path, run_id: str) -> None:
    """A name that could leave the directory or hide is refused with a warning."""
    warnings: list[str] = []
    RunJournal(tmp_path, run_id, on_warning=warnings.append)(STARTED)
    assert not is_legal_run_id(run_id)
    assert len(warnings) == 1
    assert list(tmp_path.iterdir()) == []


def test_unwritable_directory_warns_once(tmp_path: Path) -> None:
    """A journal that cannot be created costs one warning."""
    (tmp_path / "journal").write_text("a file in the way", encoding="utf-8")
    warnings: list[str] = []
    journal = RunJournal(tmp_path / "journal", RUN, on_warning=warnings.append)
    for _ in range(3):
        journal(STARTED)
    assert len(warnings) == 1


def test_check_samples_stay_out() -> None:
    """Of a failed check only the words before its samples are kept, with the number of failures."""
    record = journal_record(
        failure("PZ0510", "check failed on staging.people; sample: Ann; Bob", NodeKind.CHECK, rows=2)
    )
    assert record["errorMessage"] == "check failed on staging.people;"
    assert record["failures"] == 2
    assert "failures" not in journal_record(failure("PZ0510", "x", NodeKind.CHECK))


def test_reader_counts_what_it_cannot_use(tmp_path: Path) -> None:
    """Foreign majors and broken lines are counted, other runs and a torn end are passed over."""
    good = json.dumps(journal_record(STARTED))
    lines = [
        good,
        "",
        good.replace('"1.0"', '"2.0"'),
        good.replace('"1.0"', '"1.7"'),
        good.replace(RUN, "another"),
        "not json",
        '{"event": 5}',
        '{"event":"run_completed","runId":"' + RUN,
    ]
    path = tmp_path / f"{RUN}.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    journal = JournalReader(path)
    assert len(list(journal.records())) == 2
    assert journal.unreadable == 3


def test_reader_stays_small_whatever_the_file_holds(tmp_path: Path) -> None:
    """A line without an end, or one of many megabytes, is one unreadable line; progress is passed over unparsed."""
    good = json.dumps(journal_record(STARTED), separators=(",", ":")).encode()
    progress = b'{"event":"node_progress","runId":"' + RUN.encode() + b'","schemaVersion":"1.0","rows":1}\n'
    path = tmp_path / f"{RUN}.jsonl"
    path.write_bytes(
        good + b"\n" + progress * 1000 + b"x" * (3 * LONGEST_LINE) + b"\n" + good + b"\n" + b"y" * LONGEST_LINE
    )
    journal = JournalReader(path)
    assert [record["event"] for record in journal.records()] == ["run_started", "run_started"]
    assert journal.unreadable == 1


def test_reader_summarises_again() -> None:
    """A journal somebody else wrote leaks nothing through the reader."""
    record = {"event": "node_completed", "runId": RUN, "schemaVersion": "1.0", "errorMessage": "bad 'secret'"}
    read = parse_line(json.dumps(record).encode())
    assert read is not None
    assert read["errorMessage"] == "bad [value removed]"
    assert parse_line(b'{"pad":"' + b"x" * LONGEST_LINE + b'"}') is None


def test_sweep_keeps_the_newest_and_the_starting_one(tmp_path: Path) -> None:
    """The fifty-first journal goes when a run starts; the starting run's own never does."""
    for number in range(55):
        path = tmp_path / f"run{number:02}.jsonl"
        path.write_text("x\n", encoding="utf-8")
        os.utime(path, (1000 + number, 1000 + number))
    (tmp_path / "other.txt").write_text("x", encoding="utf-8")
    assert sweep_journals(tmp_path, keep=50, current="run00") == 5
    left = {path.stem for path in tmp_path.glob("*.jsonl")}
    assert left == {"run00"} | {f"run{number:02}" for number in range(6, 55)}
    assert (tmp_path / "other.txt").exists()
    assert sweep_journals(tmp_path, keep=50, current="run99") == 1
    assert sweep_journals(tmp_path / "missing") == 0


def test_starting_run_sweeps_old_journals(tmp_path: Path) -> None:
    """The fifty-first journal is gone as soon as the run's own exists."""
    for number in range(50):
        (tmp_path / f"old{number:02}.jsonl").write_text("x\n", encoding="utf-8")
        os.utime(tmp_path / f"old{number:02}.jsonl", (1000 + number, 1000 + number))
    RunJournal(tmp_path, RUN, on_warning=pytest.fail)(STARTED)
    left = {path.stem for path in tmp_path.glob("*.jsonl")}
    assert left == {RUN} | {f"old{number:02}" for number in range(1, 50)}


def test_closed_journal_takes_nothing_more(tmp_path: Path) -> None:
    """Events after the end are dropped."""
    journal = RunJournal(tmp_path, RUN, on_warning=pytest.fail)
    journal(STARTED)
    journal.close()
    journal(RunCompleted(at=NOW, run_id=RUN, status=RunStatus.SUCCESS, succeeded=0, failed=0, skipped=0, duration_ms=1))
    journal.close()
    assert len(list(JournalReader(journal.path).records())) == 1
