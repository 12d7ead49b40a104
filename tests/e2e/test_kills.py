"""A run that dies leaves old outputs, honest results and an unmoved watermark, and the next run works."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from pz_engine.testing.project_factory import ProjectFactory


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """A csv replaced into a file, and an incremental csv merged into a DuckDB table."""
    factory.write("in/a.csv", "id,seen_at\n1,2026-01-01 00:00:00\n2,2026-01-02 00:00:00\n")
    factory.connections(
        """
        files:
          connector: localfiles
          root: in
          entities:
            a: { read: { path: a.csv, columns: { id: int, seen_at: timestamp } } }
        feed:
          connector: localfiles
          root: in
          entities:
            a:
              read:
                path: a.csv
                columns: { id: int, seen_at: timestamp }
                sync: { mode: incremental, cursor: seen_at }
        out: { connector: localfiles, root: out }
        mart: { connector: duckdb, path: mart.duckdb }
        """
    )
    factory.pipeline(
        "copied",
        "INSERT INTO {{ sink('out', 'copied', format: 'csv', strategy: 'replace') }}\nSELECT * FROM {{ source('files', 'a') }}",
    )
    factory.pipeline(
        "merged",
        "INSERT INTO {{ sink('mart', 'merged', strategy: 'merge', keys: ['id']) }}\nSELECT * FROM {{ source('feed', 'a') }}",
    )
    return factory


def pz(project: ProjectFactory, *arguments: str, fault: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"PZ_FAULT": fault} if fault else {})}
    command = [sys.executable, "-m", "pz_engine", *arguments, "--project", str(project.directory)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def results_of(project: ProjectFactory) -> list[str]:
    runs = sorted((project.directory / ".pz" / "runs").iterdir())
    return [
        json.loads((run / "run_results.json").read_text())["status"]
        for run in runs
        if (run / "run_results.json").exists()
    ]


def watermarks(project: ProjectFactory) -> dict[str, object]:
    path = project.directory / ".pz" / "state" / "watermarks.json"
    return dict(json.loads(path.read_text())["watermarks"]) if path.exists() else {}


def merged_rows(project: ProjectFactory) -> int:
    path = project.directory / "mart.duckdb"
    if not path.exists():
        return 0
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = connection.execute("select count(*) from duckdb_tables() where table_name = 'merged'").fetchone()
        return connection.execute("select count(*) from merged").fetchone()[0] if tables and tables[0] else 0  # type: ignore[index]


@pytest.mark.parametrize(
    "point", ["after_staging_opened", "before_rename", "before_sink_commit", "after_sink_commit", "before_state_write"]
)
def test_a_killed_run_is_honest_and_the_next_one_completes(project: ProjectFactory, point: str) -> None:
    """Whatever the moment: the old file is whole, results never claim success, the watermark has not moved."""
    (project.directory / "out" / "copied").mkdir(parents=True)
    output = project.directory / "out" / "copied" / "copied.csv"
    output.write_text("id,seen_at\n9,2020-01-01 00:00:00\n")
    killed = pz(project, "run", "--all", fault=f"{point}=kill")
    assert killed.returncode == -signal.SIGKILL
    assert len(output.read_text().splitlines()) in (2, 3)
    assert results_of(project) in ([], ["running"])
    assert watermarks(project) == {}
    done = pz(project, "run", "--all")
    assert done.returncode == 0, done.stdout + done.stderr
    assert output.read_text().splitlines()[1:] == ["1,2026-01-01 00:00:00", "2,2026-01-02 00:00:00"]
    assert merged_rows(project) == 2
    assert set(watermarks(project)) == {"feed.a"}
    assert results_of(project)[-1] == "success"


def test_a_run_killed_after_state_moved_repeats_nothing(project: ProjectFactory) -> None:
    """State is written before the terminal results: the watermark is stored, the results still say running."""
    killed = pz(project, "run", "--all", fault="before_terminal_results=kill")
    assert killed.returncode == -signal.SIGKILL
    assert results_of(project) == ["running"]
    assert set(watermarks(project)) == {"feed.a"}
    assert pz(project, "run", "merged").stdout.count("ok src_feed__a 0 rows") == 1


def test_two_runs_at_once_do_not_disturb_each_other(project: ProjectFactory) -> None:
    """Different flows of one project run side by side, each with its own staging database."""
    command = [sys.executable, "-m", "pz_engine", "run", "--project", str(project.directory)]
    both = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in ("copied", "merged")]
    assert [process.wait(60) for process in both] == [0, 0]
    for process in both:
        assert process.stdout is not None
        process.stdout.close()
    assert len(results_of(project)) == 2
    assert set(watermarks(project)) == {"feed.a"}


def slow(project: ProjectFactory, fault: str | None = None) -> subprocess.Popen[str]:
    project.pipeline(
        "slow", "SELECT count(*) AS n FROM range(100000000) a, range(100000000) b WHERE a.range % 7 = b.range % 11"
    )
    command = [sys.executable, "-m", "pz_engine", "run", "--all", "--log-format", "json"]
    process = subprocess.Popen(
        [*command, "--project", str(project.directory)],
        env={**os.environ, **({"PZ_FAULT": fault} if fault else {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    read_until(process, "node_started", "slow")
    return process


def read_until(process: subprocess.Popen[str], event: str, name: str | None = None) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        found = json.loads(line)
        if found["event"] == event and found.get("name") == name:
            return
    raise AssertionError(f"the process ended before {event}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_stop_signal_ends_a_run_cleanly(project: ProjectFactory, number: signal.Signals) -> None:
    """Running statements are interrupted, results are terminal, exit code 3; every line of stdout is JSON."""
    process = slow(project)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 3
    last = [json.loads(line) for line in out.splitlines()][-1]
    assert (last["event"], last["status"]) == ("run_completed", "fatal")
    assert results_of(project) == ["fatal"]
    assert not list(Path(project.directory, ".pz", "runs").glob("*/spill"))


def test_the_second_stop_signal_ends_the_process(project: ProjectFactory) -> None:
    """It is not absorbed: the process dies by the signal in the middle of its end, and the results still say running."""
    process = slow(project, fault="before_terminal_results=sleep:20000")
    process.send_signal(signal.SIGTERM)
    read_until(process, "run_completed")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=15)
    assert process.returncode == -signal.SIGINT
    assert results_of(project) == ["running"]
