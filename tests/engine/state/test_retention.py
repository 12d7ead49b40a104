"""Retention frees staging databases, and only those nobody needs."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from pathlib import Path

import pytest

from pz_engine.base.file_locks import FileLock, is_locked
from pz_engine.execute.run_dir import RunDirectory
from pz_engine.state.retention import SweepReport, SweepRule, sweep


def make_run(project: Path, run_id: str, *, size: int = 100) -> Path:
    directory = project / "runs" / run_id
    directory.mkdir(parents=True)
    (directory / ".lock").touch()
    (directory / "run_results.json").write_text("{}", encoding="utf-8")
    (directory / "staging.duckdb").write_bytes(b"x" * size)
    (directory / "staging.duckdb.wal").write_bytes(b"x" * 10)
    return directory


def ids(count: int) -> list[str]:
    return [f"202601{day:02}T000000000Z-0000" for day in range(1, count + 1)]


def has_staging(directory: Path) -> bool:
    return (directory / "staging.duckdb").exists() or (directory / "staging.duckdb.wal").exists()


def test_older_staging_goes_with_its_wal_and_results_stay(tmp_path: Path) -> None:
    """All but the newest lose database and write-ahead log and keep everything else."""
    runs = [make_run(tmp_path, run_id) for run_id in ids(4)]
    assert sweep(tmp_path, SweepRule(2)) == SweepReport(tuple(reversed(ids(2))), kept=2, bytes_freed=220)
    assert [has_staging(run) for run in runs] == [False, False, True, True]
    assert all((run / "run_results.json").exists() for run in runs)
    assert sweep(tmp_path, SweepRule(2)) == SweepReport(kept=4)
    assert not sweep(tmp_path, SweepRule(2)).did_anything


def test_live_run_is_kept(tmp_path: Path) -> None:
    """A run whose lock is held keeps its database however old it is."""
    old, *_ = [make_run(tmp_path, run_id) for run_id in ids(3)]
    with FileLock(old / ".lock"):
        assert len(sweep(tmp_path, SweepRule(1)).swept) == 1
        assert has_staging(old)
    assert len(sweep(tmp_path, SweepRule(1)).swept) == 1


def test_stray_directory_never_counts_as_newest(tmp_path: Path) -> None:
    """A directory without a date is swept first and protects nothing."""
    stray = make_run(tmp_path, "zzz-copy")
    dated = make_run(tmp_path, ids(1)[0])
    assert len(sweep(tmp_path, SweepRule(1)).swept) == 1
    assert has_staging(dated)
    assert not has_staging(stray)


def test_stale_work_goes_and_held_work_stays(tmp_path: Path) -> None:
    """Work directories without a living holder are removed whole and counted."""
    for name in ("stale", "held"):
        (tmp_path / "tmp" / name / "deep").mkdir(parents=True)
        (tmp_path / "tmp" / name / "deep" / "part").write_bytes(b"x" * 7)
        (tmp_path / "tmp" / name / ".lock").touch()
    with FileLock(tmp_path / "tmp/held/.lock"):
        report = sweep(tmp_path, SweepRule(10))
    assert (report.stale_work, report.bytes_freed, report.swept) == (1, 7, ())
    assert report.did_anything
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == ["held"]


def test_one_failure_does_not_stop_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be deleted is reported by its run and the others are still cleaned."""
    first, second, _ = [make_run(tmp_path, run_id) for run_id in ids(3)]
    unlink = Path.unlink

    def refuse(path: Path, *, missing_ok: bool = False) -> None:
        if path.parent == second:
            raise PermissionError(13, "Permission denied")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    report = sweep(tmp_path, SweepRule(1))
    assert len(report.swept) == 1
    assert report.failures == (f".pz/runs/{second.name} cannot be cleaned: Permission denied",)
    assert not has_staging(first)


def test_project_without_runs_is_fine(tmp_path: Path) -> None:
    """Nothing there, nothing done."""
    assert sweep(tmp_path, SweepRule(1)) == SweepReport()


def test_age_keeps_the_newest_and_what_has_no_date(tmp_path: Path) -> None:
    """Only runs that started before the instant go, the newest never, a stray directory has no age."""
    runs = [make_run(tmp_path, run_id) for run_id in [*ids(4), "zzz-copy"]]
    limit = datetime(2026, 1, 3, tzinfo=timezone.utc)
    assert sweep(tmp_path, SweepRule(older_than=limit)).swept == tuple(reversed(ids(2)))
    assert [has_staging(run) for run in runs] == [False, False, True, True, True]
    later = datetime(2027, 1, 1, tzinfo=timezone.utc)
    assert sweep(tmp_path, SweepRule(older_than=later)).swept == (ids(3)[2],)


def test_purge_takes_the_whole_directory_and_nothing_else(tmp_path: Path) -> None:
    """State, journals and artifacts stay; a live run stays whole; a purge of none left over is fine."""
    runs = [make_run(tmp_path, run_id) for run_id in ids(3)]
    for path in ("state/watermarks.json", "journal/x.jsonl", "target/plan.json"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("{}")
    with FileLock(runs[0] / ".lock"):
        report = sweep(tmp_path, SweepRule(keep_last=0, purge=True))
    assert report.swept == tuple(reversed(ids(3)[1:]))
    assert report.live == (ids(1)[0],)
    assert [run.exists() for run in runs] == [True, False, False]
    assert (tmp_path / "state/watermarks.json").exists()
    assert (tmp_path / "journal/x.jsonl").exists()
    assert (tmp_path / "target/plan.json").exists()


def test_dry_run_tells_and_deletes_nothing(tmp_path: Path) -> None:
    """The report is the one of the real sweep, and the real sweep then finds everything."""
    for run_id in ids(3):
        make_run(tmp_path, run_id)
    for rule in (SweepRule(1), SweepRule(keep_last=0, purge=True)):
        told = sweep(tmp_path, rule, dry_run=True)
        assert all(has_staging(path) for path in (tmp_path / "runs").iterdir())
        if not rule.purge:
            continue
        assert sweep(tmp_path, rule) == told


def test_run_that_starts_is_never_swept(tmp_path: Path) -> None:
    """Purging and probing in a loop neither keeps a new run from its lock nor takes its directory away."""
    over = threading.Event()

    def purge() -> None:
        while not over.is_set():
            sweep(tmp_path, SweepRule(0, purge=True))

    sweepers = [threading.Thread(target=purge) for _ in range(2)]
    for sweeper in sweepers:
        sweeper.start()
    try:
        for number in range(150):
            run = RunDirectory(tmp_path, f"20260101T000000000Z-{number:04x}")
            run.create({"host": "test"})
            assert (run.path / "host.json").exists()
            assert is_locked(run.path / ".lock")
            run.release()
    finally:
        over.set()
        for sweeper in sweepers:
            sweeper.join()
