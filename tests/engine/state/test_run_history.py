"""Run ids sort by time and strays rank last."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pz_engine.model.run import RunStatus
from pz_engine.state.run_history import mint_run_id, newest_first, run_directories, started_at, stored_runs
from pz_engine.state.run_results import RunResultsFile

NOW = datetime(2026, 7, 4, 10, 0, 0, 123987, tzinfo=timezone.utc)


def make_run(project: Path, run_id: str, host: str | None = None) -> Path:
    directory = project / "runs" / run_id
    RunResultsFile(directory / "run_results.json", run_id, NOW).write(RunStatus.SUCCESS, (), NOW)
    if host is not None:
        (directory / "host.json").write_text(host, encoding="utf-8")
    return directory


def test_id_is_the_utc_millisecond_and_four_hex_digits() -> None:
    """The stamp is truncated to milliseconds in UTC whatever the zone of the clock."""
    zoned = NOW.astimezone(timezone(timedelta(hours=9)))
    assert mint_run_id(zoned, random.Random(1))[:20] == "20260704T100000123Z-"
    assert len(mint_run_id(NOW, random.Random(1))) == 24


@given(
    st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(timezone.utc)),  # noqa: DTZ001
    st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(timezone.utc)),  # noqa: DTZ001
)
def test_ids_sort_by_start_time(left: datetime, right: datetime) -> None:
    """Ordinal order of ids is the order of their starts, and every id is datable."""
    first, second = (mint_run_id(moment, random.Random(7)) for moment in (left, right))
    assert started_at(first) is not None
    milliseconds = [moment.replace(microsecond=moment.microsecond // 1000 * 1000) for moment in (left, right)]
    assert (first < second) == (milliseconds[0] < milliseconds[1])


def test_strays_rank_behind_every_dated_run() -> None:
    """A directory without a date never counts as the newest."""
    names = ["zzz", "20260101T000000000Z-0001", "backup", "20261399T000000000Z-0001", "20260704T100000123Z-ffff"]
    assert newest_first(names) == [
        "20260704T100000123Z-ffff",
        "20260101T000000000Z-0001",
        "zzz",
        "backup",
        "20261399T000000000Z-0001",
    ]


def test_listing_skips_what_is_no_run_and_reads_the_hosts_record(tmp_path: Path) -> None:
    """Runs without readable results are skipped; a broken host record reads as none."""
    make_run(tmp_path, "20260101T000000000Z-0001", host='{"name": "dagster"}')
    make_run(tmp_path, "20260102T000000000Z-0001", host="{")
    make_run(tmp_path, "stray")
    (tmp_path / "runs/20260103T000000000Z-0001").mkdir()
    torn = make_run(tmp_path, "20260104T000000000Z-0001")
    (torn / "run_results.json").write_text("{", encoding="utf-8")
    (tmp_path / "runs/file").write_text("x", encoding="utf-8")
    (tmp_path / "runs/link").symlink_to(torn)
    assert [(run.run_id, run.host) for run in stored_runs(tmp_path)] == [
        ("20260102T000000000Z-0001", None),
        ("20260101T000000000Z-0001", {"name": "dagster"}),
        ("stray", None),
    ]
    assert len(run_directories(tmp_path)) == 5
    assert list(stored_runs(tmp_path / "nowhere")) == []
