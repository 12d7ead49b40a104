"""Files below .pz that are torn, foreign or from the future, a full disk, a clock that goes back: a code, and nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import duckdb
import pytest

from pz_engine import PzStateError, RunOutcome
from pz_engine.testing.fixed_clock import FixedClock
from pz_engine.testing.project_factory import ProjectFactory

RUN = "20261103T061500250Z-9e07"


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """An increment into a warehouse that has run once."""
    factory.write("in/rows.csv", "id,name\n1,a\n2,b\n")
    factory.connections(
        """
        files:
          connector: localfiles
          root: in
          entities:
            rows: { read: { path: rows.csv, columns: { id: bigint, name: varchar }, sync: { mode: incremental, cursor: id } } }
        out: { connector: duckdb, path: out.duckdb }
        """
    )
    factory.pipeline(
        "copy",
        "INSERT INTO {{ sink('out', 'rows', strategy: 'merge', keys: ['id']) }}\nSELECT * FROM {{ source('files', 'rows') }}",
    )
    assert factory.run().exit_code == 0
    return factory


def landed(project: ProjectFactory) -> list[int]:
    with duckdb.connect(str(project.directory / "out.duckdb"), read_only=True) as connection:
        return [row[0] for row in connection.execute("select id from rows order by id").fetchall()]


def state_file(project: ProjectFactory) -> Path:
    return project.directory / ".pz" / "state" / "watermarks.json"


def stored(project: ProjectFactory) -> str:
    return str(json.loads(state_file(project).read_text())["watermarks"]["files.rows"]["value"])


def rows_of(outcome: RunOutcome) -> list[int | None]:
    return [result.rows for result in outcome.results]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{ torn",
        b"\x00\x01binary",
        b"\xff\xfe{}",
        b"[]",
        b'"text"',
        b"{}",
        b'{"version": "1", "watermarks": {}}',
        b'{"version": true, "watermarks": {}}',
        b'{"version": 0, "watermarks": {}}',
        b'{"version": NaN, "watermarks": {}}',
        b'{"version": 1, "watermarks": {}, "watermarks": {"files.rows": null}}',
        b'{"version": 1}',
        b'{"version": 1, "watermarks": []}',
        b'{"version": 1, "watermarks": {"files.rows": null}}',
        b'{"version": 1, "watermarks": {"files.rows": {"cursor": "id", "type": "bigint", "value": 2, "runId": "r"}}}',
        b'{"version": 1, "watermarks": {"files.rows": {"cursor": "id", "type": "bigint", "runId": "r"}}}',
        b"[" * 200_000,
    ],
)
def test_state_that_cannot_be_read_costs_one_full_read(project: ProjectFactory, content: bytes) -> None:
    """The run notes it, reads in full, merges to the same rows and leaves good state; the entry is not guessed."""
    state_file(project).write_bytes(content)
    outcome = project.run()
    assert outcome.exit_code == 0
    assert any("watermarks.json is unreadable" in note for note in outcome.notes)
    assert rows_of(outcome) == [2, 2, 2]
    assert landed(project) == [1, 2]
    assert stored(project) == "2"
    assert rows_of(project.run())[0] == 0


def test_state_of_a_newer_version_is_left_alone(project: ProjectFactory) -> None:
    """A file that a newer pz wrote ends the run before any node and keeps its bytes."""
    content = state_file(project).read_text().replace('"version": 1', '"version": 2')
    state_file(project).write_text(content)
    with pytest.raises(PzStateError) as caught:
        project.run()
    assert caught.value.code == "PZ0519"
    assert caught.value.diagnostic.hint
    assert state_file(project).read_text() == content


@pytest.mark.parametrize(
    "entry",
    [
        {"cursor": "id", "type": "bigint", "value": "lots", "runId": RUN},
        {"cursor": "id", "type": "date", "value": "2026-01-01", "runId": RUN},
        {"cursor": "other", "type": "bigint", "value": "2", "runId": RUN},
        {"cursor": "id", "type": "hugeint", "value": "2", "runId": RUN},
    ],
)
def test_entry_that_does_not_fit_fails_its_load_with_a_way_out(project: ProjectFactory, entry: dict[str, str]) -> None:
    """The entry is not used and not overwritten; --full-refresh repairs it."""
    state_file(project).write_text(json.dumps({"version": 1, "watermarks": {"files.rows": entry}}))
    outcome = project.run()
    failed = next(result for result in outcome.results if result.error is not None)
    assert failed.error is not None
    assert failed.error.code == "PZ0505"
    assert "--full-refresh" in failed.error.message
    assert json.loads(state_file(project).read_text())["watermarks"]["files.rows"] == entry
    assert project.run(full_refresh=True).exit_code == 0
    assert stored(project) == "2"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"null", b'{"version": 99, "runId": "x"}', b'{"version": 1, "nodes": 5}', b"\xff" * 100]
)
def test_results_that_cannot_be_read_are_passed_over(project: ProjectFactory, content: bytes) -> None:
    """Listings show the readable runs, and the next run works."""
    (directory,) = (project.directory / ".pz" / "runs").iterdir()
    (directory / "run_results.json").write_bytes(content)
    second = project.run()
    listed = pz("runs", "--json", "--project", project.directory)
    assert [json.loads(line)["runId"] for line in listed.stdout.splitlines()] == [second.run_id]
    assert pz("state", "show", "files.rows", "--project", project.directory).returncode == 0


def pz(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pz_engine", *(str(argument) for argument in arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\x00" * 1000, b'{"event":"run_started","runId":"' + RUN.encode() + b'","schemaVersion":"9.0"}\n'],
)
def test_journal_that_cannot_be_read_falls_back_to_results(project: ProjectFactory, content: bytes) -> None:
    """Said so, and the numbers are those of the results."""
    outcome = project.run()
    (project.directory / ".pz" / "journal" / f"{outcome.run_id}.jsonl").write_bytes(content)
    shown = pz("history", outcome.run_id, "--project", project.directory)
    assert shown.returncode == 0
    assert "note: the journal of this run " in shown.stdout
    assert "; this is what its results hold" in shown.stdout
    assert "rows loaded: 0" in shown.stdout


def test_journal_that_cannot_be_written_warns_once(project: ProjectFactory) -> None:
    """Evidence is not worth a run."""
    shutil.rmtree(project.directory / ".pz" / "journal")
    (project.directory / ".pz" / "journal").write_text("in the way")
    outcome = project.run()
    assert outcome.exit_code == 0
    assert sum("journal" in note for note in outcome.notes) == 1


def test_clock_that_goes_back_loses_nothing(project: ProjectFactory) -> None:
    """A run that seems older than the last one still reads what is new and stores it; its times are never negative."""
    project.write("in/rows.csv", "id,name\n1,a\n2,b\n3,c\n")
    clock = FixedClock(datetime(2020, 1, 1, tzinfo=timezone.utc))
    outcome = project.run(clock=clock)
    assert outcome.exit_code == 0
    assert outcome.run_id.startswith("20200101T000000000Z")
    assert landed(project) == [1, 2, 3]
    assert stored(project) == "3"
    assert all(result.duration_ms >= 0 for result in outcome.results)


def test_run_from_the_future_keeps_its_place_and_its_staging(project: ProjectFactory) -> None:
    """It counts as the newest, is listed first, and takes nothing from the runs that are made now."""
    future = project.directory / ".pz" / "runs" / "21991231T235959999Z-ffff"
    (present,) = (project.directory / ".pz" / "runs").iterdir()
    shutil.copytree(present, future)
    outcome = project.run()
    assert outcome.exit_code == 0
    listed = [
        json.loads(line)["runId"] for line in pz("runs", "--json", "--project", project.directory).stdout.splitlines()
    ]
    assert listed[0] == future.name
    assert (future / "staging.duckdb").exists()


@pytest.mark.parametrize("limit", [8_192, 200_000, 1_000_000])
def test_full_disk_under_pz_fails_with_its_code_and_the_next_run_works(project: ProjectFactory, limit: int) -> None:
    """A file size limit stands for a full disk: the destination keeps what it had, and state does not move."""
    wide = "".join(f"{number},{'x' * 200}\n" for number in range(3, 40_000))
    project.write("in/rows.csv", "id,name\n1,a\n2,b\n" + wide)
    done = limited_run(project, limit)
    assert done.returncode in (1, 3), done.stdout + done.stderr
    assert "PZ0532" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert stored(project) == "2"
    assert landed(project) == [1, 2]
    assert project.run().exit_code == 0
    assert len(landed(project)) == 39_999


def limited_run(project: ProjectFactory, limit: int) -> subprocess.CompletedProcess[str]:
    """Run where no file may have more than `limit` bytes."""
    limited = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "from pz_engine.cli.main import main; sys.argv = ['pz', *sys.argv[1:]]; sys.exit(main())"
    )
    return subprocess.run(
        [sys.executable, "-c", limited, "run", "--all", "--project", str(project.directory)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_spill_that_does_not_fit_fails_its_node_and_leaves_nothing(factory: ProjectFactory) -> None:
    """Neither in memory nor on disk: the node says so, nothing has a final name, and no spilled file stays."""
    factory.write("project.yml", 'name: d\nversion: "1"\nengine: { duckdb: { threads: 1, memory_limit: 64MB } }\n')
    factory.connections("lake: { connector: localfiles, root: out }\n")
    factory.pipeline(
        "p",
        "INSERT INTO {{ sink('lake', 't', format: 'csv', strategy: 'replace') }}\n"
        "SELECT md5(CAST(i AS VARCHAR)) AS h, md5(CAST(i + 1 AS VARCHAR)) AS g FROM range(2000000) t(i) ORDER BY h",
    )
    done = limited_run(factory, 300_000)
    assert done.returncode == 1
    assert "PZ0532" in done.stdout
    assert not list((factory.directory / "out").rglob("*.*"))
    assert not list((factory.directory / ".pz").rglob("spill/*"))


def test_ten_thousand_old_runs_are_listed_quickly(project: ProjectFactory) -> None:
    """`pz runs` takes at most two seconds, start included; a limit makes it cheaper still."""
    (present,) = (project.directory / ".pz" / "runs").iterdir()
    content = (present / "run_results.json").read_bytes()
    start = datetime(2025, 1, 1, tzinfo=timezone.utc)
    for number in range(10_000):
        moment = start + timedelta(minutes=number)
        directory = project.directory / ".pz" / "runs" / f"{moment:%Y%m%dT%H%M%S}000Z-0000"
        directory.mkdir()
        (directory / "run_results.json").write_bytes(content)
    begun = time.monotonic()
    listed = pz("runs", "--project", project.directory)
    took = time.monotonic() - begun
    assert len(listed.stdout.splitlines()) == 10_002
    assert took < 6, took  # two seconds on a quiet machine; tests share theirs
    assert project.run().exit_code == 0
