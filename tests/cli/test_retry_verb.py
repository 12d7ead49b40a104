"""`pz retry` from the command line: what it says, its refusals, its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import duckdb
import pytest
from command_calls import Call

from pz_engine.testing.project_factory import ProjectFactory


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """A staged csv into two DuckDB files, one of which cannot be written yet."""
    factory.write("in/a.csv", "id,name\n1,a\n2,b\n")
    factory.connections(
        """
        files: { connector: localfiles, root: in }
        good: { connector: duckdb, path: good.duckdb }
        bad: { connector: duckdb, path: bad.duckdb, retry: { max_attempts: 1 } }
        """
    )
    factory.pipeline(
        "copy",
        "INSERT INTO [{{ sink('good', 't', strategy: 'merge', keys: ['id']) }}, {{ sink('bad', 't', strategy: 'merge', keys: ['id']) }}]\n"
        "SELECT * FROM {{ source('files', 'a', path: 'a.csv', columns: { id: 'int', name: 'varchar' }) }}",
    )
    factory.sidecar("copy", "materialization: table\n")
    factory.write("project.yml", 'name: demo\nversion: "1"\nengine: { fusion: off }\n')
    with duckdb.connect(str(factory.directory / "bad.duckdb")) as connection:
        connection.execute("create table t as select 1 as other")
    return factory


def repair(project: ProjectFactory) -> None:
    """Make room for the table that could not be written."""
    (project.directory / "bad.duckdb").unlink()


def test_what_failed_runs_again_and_the_rest_is_taken(pz: Call, project: ProjectFactory) -> None:
    """Notes say what is taken; each node has its line; after it there is nothing to retry."""
    failed = pz("run", "--all", "--project", project.directory)
    assert failed.code == 1
    repair(project)
    project.write("in/a.csv", "id,name\n9,z\n")
    called = pz("retry", "--project", project.directory)
    assert called.code == 0, called.out + called.err
    run = min(path.name for path in (project.directory / ".pz/runs").iterdir())
    lines = called.out.splitlines()
    assert lines[:2] == [
        f"note: 1 source load(s) are reused from run {run}",
        f"note: 1 committed sink(s) are carried forward from run {run}",
    ]
    assert [line.rpartition(" rows ")[0] for line in lines[2:-1]] == [
        "ok good.t 2", "ok src_files__a 2", "ok copy 2", "ok bad.t 2"
    ]  # fmt: skip
    again = pz("retry", "--project", project.directory)
    assert again.code == 0
    assert again.out.count("\n") == 1
    assert again.out.startswith("note: nothing to retry: run ")
    runs = [json.loads(line) for line in pz("runs", "--json", "--project", project.directory).out.splitlines()]
    assert [(run["status"], run["reused"], run["carriedForward"]) for run in runs] == [
        ("success", 1, 1),
        ("completed_with_failures", 0, 0),
    ]
    history = pz("history", runs[0]["runId"], "--project", project.directory)
    assert "rows carried forward from an earlier run: 2" in history.out
    assert "success (reused)" in history.out


def test_json_mode_has_events_only(pz_process: Call, project: ProjectFactory) -> None:
    """Notes and the summary go to standard error; the carried sink comes right after the start."""
    pz_process("run", "--all", "--project", project.directory)
    repair(project)
    called = pz_process("retry", "--log-format", "json", "--project", project.directory)
    events = [json.loads(line) for line in called.out.splitlines()]
    assert [event["event"] for event in events[:3]] == ["run_started", "node_completed", "node_started"]
    assert (events[1]["name"], events[1]["provenance"]) == ("good.t", "carried_forward")
    assert events[-1]["event"] in ("run_completed", "retention_swept")
    assert "reused from run" in called.err


def test_refusals_exit_2_with_their_codes(pz: Call, project: ProjectFactory) -> None:
    """No run, an interrupted one, a cancelled one; a broken project is told before any of them."""
    called = pz("retry", "--project", project.directory)
    assert (called.code, "PZ0502" in called.err) == (2, True)
    repair(project)
    killed = subprocess.run(
        [sys.executable, "-m", "pz_engine", "run", "--all", "--project", str(project.directory)],
        env={**os.environ, "PZ_FAULT": "before_state_write=kill"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert killed.returncode == -signal.SIGKILL
    called = pz("retry", "--project", project.directory)
    assert (called.code, "PZ0503" in called.err) == (2, True)
    newest = max((project.directory / ".pz/runs").iterdir())
    results = newest / "run_results.json"
    results.write_text(results.read_text().replace('"running"', '"fatal"'))
    called = pz("retry", "--project", project.directory)
    assert (called.code, "PZ0504" in called.err) == (2, True)
    project.pipeline("broken", "{{ nonsense }}")
    called = pz("retry", "--project", project.directory)
    assert (called.code, "PZ0104" in called.err, "PZ0504" in called.err) == (2, True, False)


@pytest.mark.parametrize("option", ["--select=copy", "--vars={}", "--all", "copy"])
def test_retry_takes_no_selection_and_no_variables(pz: Call, project: ProjectFactory, option: str) -> None:
    """It repeats what was meant before."""
    assert pz("retry", option, "--project", project.directory).code == 2


def test_edited_project_retries_what_is_still_the_same(pz: Call, project: ProjectFactory) -> None:
    """A changed pipeline is named; when nothing is left that failed, that is said and nothing runs."""
    pz("run", "--all", "--project", project.directory)
    text = (project.directory / "pipelines/copy.sql").read_text()
    project.pipeline("copy", text.replace("'bad', 't'", "'bad', 'other'"))
    repair(project)
    called = pz("retry", "--project", project.directory)
    assert called.code == 0
    assert "note: 'bad.t' has changed since run" in called.out
    assert "note: nothing to retry: the project has changed since run" in called.out
    assert len(list((project.directory / ".pz/runs").iterdir())) == 1


def test_two_retries_at_once_both_end_and_merge_the_same(project: ProjectFactory) -> None:
    """They share the earlier run's database read-only and write one destination, which ends whole."""
    command = [sys.executable, "-m", "pz_engine", "retry", "--project", str(project.directory)]
    subprocess.run([*command[:3], "run", "--all", *command[4:]], capture_output=True, check=False, timeout=60)
    repair(project)
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ends = [(*process.communicate(timeout=60), process.returncode) for process in both]
    assert 0 in [end[2] for end in ends], ends
    assert all("Traceback" not in out + err for out, err, _ in ends)
    with duckdb.connect(str(project.directory / "bad.duckdb"), read_only=True) as connection:
        assert connection.execute("select id from t order by id").fetchall() == [(1,), (2,)]
