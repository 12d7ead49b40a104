"""`pz runs`, `pz history` and `pz clean`: past runs, from project.yml alone."""

from __future__ import annotations

import json
import re
import threading
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from command_calls import Call

from pz_engine.base.file_locks import FileLock
from pz_engine.model.run import NodeError, NodeKind, NodeResult, NodeStatus, RunStatus
from pz_engine.state.run_results import RunResultsFile

START = datetime(2026, 11, 3, 6, 15, 0, 250_000, tzinfo=timezone.utc)
FIRST, SECOND, THIRD = (f"2026110{day}T061500250Z-ab1{day}" for day in (3, 4, 5))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose pipelines and connections do not load."""
    (tmp_path / "project.yml").write_text("name: shop\nversion: 1\n", encoding="utf-8")
    (tmp_path / "connections.yml").write_text("not: [closed", encoding="utf-8")
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "broken.sql").write_text("{{ nonsense", encoding="utf-8")
    return tmp_path


def add_run(project: Path, run_id: str, status: RunStatus = RunStatus.SUCCESS) -> Path:
    results = [
        NodeResult("a", NodeKind.SOURCE_LOAD, "src_a__b", NodeStatus.SUCCESS, 7, 12, provenance="reused"),
        NodeResult("b", NodeKind.SINK_WRITE, "out.x", NodeStatus.SUCCESS, 7, 0, provenance="carried_forward"),
        NodeResult("c", NodeKind.PIPELINE, "p", NodeStatus.FAILED, 0, 5, NodeError("PZ0501", "no 'secret' 42")),
        NodeResult("d", NodeKind.SINK_WRITE, "out.y", NodeStatus.SKIPPED, 0, 0),
    ]
    directory = project / ".pz" / "runs" / run_id
    file = RunResultsFile(directory / "run_results.json", run_id, START)
    file.write(status, results, START + timedelta(milliseconds=1234))
    (directory / ".lock").touch()
    (directory / "staging.duckdb").write_bytes(b"x" * 2048)
    return directory


def test_runs_are_listed_newest_first(pz: Call, project: Path) -> None:
    """A run without an end has no finish and no duration; a torn one and a stray directory do not count."""
    add_run(project, FIRST, RunStatus.COMPLETED_WITH_FAILURES)
    add_run(project, SECOND, RunStatus.RUNNING)
    (project / ".pz/runs" / THIRD).mkdir()
    (project / ".pz/runs" / THIRD / "run_results.json").write_text('{"version":1,"runId"')
    called = pz("runs", "--project", project)
    assert called.code == 0
    assert called.out.splitlines() == [
        "run                       status                   started                   duration  ok  failed  skipped  provenance",
        f"{SECOND}  running                  2026-11-03T06:15:00.250Z  -         2   1       1        1 reused, 1 carried forward",
        f"{FIRST}  completed_with_failures  2026-11-03T06:15:00.250Z  1234ms    2   1       1        1 reused, 1 carried forward",
    ]
    lines = pz("runs", "--json", "--project", project).out.splitlines()
    assert lines[0] == (
        f'{{"runId":"{SECOND}","status":"running","startedAt":"2026-11-03T06:15:00.250Z","finishedAt":null,'
        '"durationMs":null,"succeeded":2,"failed":1,"skipped":1,"reused":1,"carriedForward":1}'
    )
    assert json.loads(lines[1])["durationMs"] == 1234
    assert [
        json.loads(line)["runId"] for line in pz("runs", "--json", "--limit", 1, "--project", project).out.splitlines()
    ] == [SECOND]


def test_no_runs_is_said(pz: Call, project: Path) -> None:
    """Nothing there: one line in text, nothing in JSON, exit 0."""
    assert (pz("runs", "--project", project).out, pz("runs", "--project", project).code) == ("no runs\n", 0)
    assert pz("runs", "--json", "--project", project).out == ""
    assert pz("history", "--project", project).out == "no journals\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("runs", "--limit", 0), "PZ0534"),
        (("runs", "--limit", -3), "PZ0534"),
        (("clean", "--keep-last", 1, "--older-than", "1d"), "PZ0511"),
        (("clean", "--keep-last", "-1"), "PZ0512"),
        (("clean", "--keep-last", "many"), "PZ0512"),
        (("clean", "--older-than", "0s"), "PZ0512"),
        (("clean", "--older-than", "1 day"), "PZ0512"),
        (("clean", "--older-than", "999999999999d"), "PZ0512"),
        (("history", "20260101T000000000Z-0000"), "PZ0502"),
        (("history", "../../etc/passwd"), "PZ0502"),
        (("history", "--follow", "20260101T000000000Z-0000"), "PZ0502"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(
    pz: Call, project: Path, arguments: tuple[object, ...], code: str
) -> None:
    """Each refusal has its code, exit 2, and nothing on standard output."""
    called = pz(*arguments, "--project", project)
    assert (called.code, called.out) == (2, "")
    assert code in called.err
    assert "hint:" in called.err


@pytest.mark.parametrize(
    "verb", [("runs",), ("history",), ("clean",), ("state", "show"), ("state", "clear", "a.b", "--yes")]
)
def test_directory_without_a_project_is_refused(pz: Call, tmp_path: Path, verb: tuple[str, ...]) -> None:
    """These verbs need project.yml and nothing else."""
    called = pz(*verb, "--project", tmp_path)
    assert called.code == 2
    assert "PZ0101" in called.err
    assert list(tmp_path.iterdir()) == []


def test_clean_frees_all_but_the_newest(pz: Call, project: Path) -> None:
    """The staging database goes, results stay; a live run is passed over and named."""
    first, second, third = (add_run(project, run_id) for run_id in (FIRST, SECOND, THIRD))
    with FileLock(second / ".lock"):
        dry = pz("clean", "--dry-run", "--project", project)
        assert first.joinpath("staging.duckdb").exists()
        called = pz("clean", "--project", project)
    assert dry.out.splitlines()[-1] == "would clean 1 staging database, kept 1, skipped 1, would free 2.0 KB"
    assert called.out.splitlines() == [
        f"cleaned {FIRST}",
        f"skipped {SECOND}, which is in flight",
        "cleaned 1 staging database, kept 1, skipped 1, freed 2.0 KB",
    ]
    assert [(run / "staging.duckdb").exists() for run in (first, second, third)] == [False, True, True]
    assert (first / "run_results.json").exists()


def test_clean_purges_whole_runs_and_says_when_none_is_left(pz: Call, project: Path) -> None:
    """With 0 and --purge every run folder goes and nothing else below .pz; a second call finds nothing."""
    for run_id in (FIRST, SECOND):
        add_run(project, run_id)
    kept = [
        project / ".pz" / path
        for path in ("state/audit.jsonl", "state/watermarks.json", f"journal/{FIRST}.jsonl", "target/plan.json")
    ]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{path.name}\n")
    called = pz("clean", "--keep-last", 0, "--purge", "--project", project)
    assert called.code == 0
    assert "nothing that a retry could go on from" in called.out
    assert list((project / ".pz/runs").iterdir()) == []
    assert [path.read_text() for path in kept] == [f"{path.name}\n" for path in kept]
    assert pz("clean", "--project", project).out == "cleaned 0 staging databases, kept 0, skipped 0, freed 0 B\n"


def test_clean_that_cannot_delete_exits_1(pz: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each failure is a warning; the rest is cleaned."""
    first, second, _ = (add_run(project, run_id) for run_id in (FIRST, SECOND, THIRD))
    unlink = Path.unlink

    def refuse(path: Path, *, missing_ok: bool = False) -> None:
        if path.parent == second:
            raise PermissionError(13, "Permission denied")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    called = pz("clean", "--project", project)
    assert called.code == 1
    assert called.err == f"warning: .pz/runs/{SECOND} cannot be cleaned: Permission denied\n"
    assert not (first / "staging.duckdb").exists()


def test_history_of_a_lost_journal_is_rebuilt_from_results(pz: Call, project: Path) -> None:
    """Said so; no start times, no attempts; messages are summaries."""
    add_run(project, FIRST, RunStatus.COMPLETED_WITH_FAILURES)
    called = pz("history", FIRST, "--project", project)
    assert called.code == 0
    assert called.out.splitlines()[0] == f"run {FIRST}: failed (not live)"
    assert "the journal of this run is gone" in called.out
    assert "rows loaded: 7" in called.out
    assert "p: PZ0501: no [value removed] [value removed] (more in run_results.json)" in called.out
    assert "secret" not in called.out
    fold = json.loads(pz("history", FIRST, "--json", "--project", project).out)
    assert (fold["live"], fold["outcome"]) == (False, "failed")
    assert {node["name"]: node["rows"] for node in fold["nodes"]} == {
        "src_a__b": 7, "out.x": 7, "p": None, "out.y": None
    }  # fmt: skip


def journal(project: Path, run_id: str, *events: dict[str, object]) -> Path:
    path = project / ".pz" / "journal" / f"{run_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        for event in events:
            name = event["event"]
            rest = {key: value for key, value in event.items() if key != "event"}
            line = {"event": name, "at": "2026-11-03T06:15:00.300Z", "runId": run_id, "schemaVersion": "1.0", **rest}
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
    return path


RUN_STARTED = {
    "event": "run_started", "projectName": "shop", "nodeCount": 2, "mode": "run", "live": True,
    "nodes": [
        {"nodeId": "a", "kind": "SourceLoad", "name": "src_a__b"},
        {"nodeId": "b", "kind": "SinkWrite", "name": "out.x"},
    ],
}  # fmt: skip
NODE_STARTED = {"event": "node_started", "nodeId": "a", "kind": "SourceLoad", "name": "src_a__b"}
RUN_COMPLETED = {
    "event": "run_completed", "status": "success", "succeeded": 2, "failed": 0, "skipped": 0, "durationMs": 9
}  # fmt: skip


def test_history_of_a_killed_run_says_at_least(pz: Call, project: Path) -> None:
    """A node nobody reported is unknown or still running, and totals are lower bounds."""
    path = journal(project, FIRST, RUN_STARTED, NODE_STARTED)
    with path.open("a") as file:
        file.write('{"event":"node_completed","runId":"' + FIRST)
    called = pz("history", FIRST, "--project", project)
    assert called.out.splitlines()[0] == f"run {FIRST}: unknown, started 2026-11-03T06:15:00.300Z"
    assert "rows loaded: at least 0 (1 node(s) not reported)" in called.out
    assert "rows written: at least 0 (1 node(s) not reported)" in called.out
    assert pz("history", "--project", project).out.splitlines()[1].split() == [
        FIRST, "run", "no", "end", "2026-11-03T06:15:00.300Z", "2"
    ]  # fmt: skip


def test_history_counts_unreadable_lines(pz: Call, project: Path) -> None:
    """Foreign lines are counted and the rest is read."""
    path = journal(project, FIRST, RUN_STARTED)
    path.write_text(path.read_text() + 'junk\n{"event":"x","runId":"' + FIRST + '","schemaVersion":"2.0"}\n')
    journal(project, FIRST, RUN_COMPLETED)
    called = pz("history", FIRST, "--project", project)
    assert called.code == 0
    assert "note: 2 journal line(s) could not be read" in called.out
    assert called.out.startswith(f"run {FIRST}: succeeded")


def test_follow_prints_what_is_there_and_what_comes(pz: Call, project: Path) -> None:
    """The following ends with the run, after the one event that may still come."""
    journal(project, FIRST, RUN_STARTED)
    (project / ".pz/runs" / FIRST).mkdir(parents=True)

    def append() -> None:
        time.sleep(0.5)
        journal(project, FIRST, NODE_STARTED, RUN_COMPLETED)
        time.sleep(0.5)
        journal(project, FIRST, {"event": "retention_swept", "runsSwept": 1, "bytesFreed": 2, "failures": 0})

    writer = threading.Thread(target=append)
    writer.start()
    called = pz("history", FIRST, "--follow", "--project", project)
    writer.join()
    assert [line.split()[1] for line in called.out.splitlines()] == [
        "run_started", "node_started", "run_completed", "retention_swept"
    ]  # fmt: skip
    assert "name=src_a__b" in called.out.splitlines()[1]
    as_json = pz("history", FIRST, "--follow", "--json", "--project", project)
    assert [json.loads(line)["event"] for line in as_json.out.splitlines()][-1] == "retention_swept"


def test_follow_ends_with_a_run_that_died(pz_process: Call, project: Path) -> None:
    """The lock of the run is free and the journal has no end: what is there is printed, and the ending is said to be a guess."""
    journal(project, FIRST, RUN_STARTED, NODE_STARTED)
    add_run(project, FIRST, RunStatus.RUNNING)
    called = pz_process("history", FIRST, "--follow", "--project", project)
    assert called.code == 0
    assert [line.split()[1] for line in called.out.splitlines()[:-1]] == ["run_started", "node_started"]
    assert called.out.splitlines()[-1].startswith("note: the run seems to have died")


def test_follow_ends_at_once_where_the_run_is_gone(pz: Call, project: Path) -> None:
    """After a purge there is a journal and no folder, so nobody can be writing."""
    journal(project, FIRST, RUN_STARTED)
    add_run(project, FIRST, RunStatus.RUNNING)
    assert pz("clean", "--keep-last", "0", "--purge", "--project", project).code == 0
    began = time.monotonic()
    called = pz("history", FIRST, "--follow", "--project", project)
    assert (called.code, time.monotonic() - began < 5) == (0, True)
    assert called.out.splitlines()[-1].startswith("note: the run seems to have died")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"\0" * 300, "holds no line of the run that can be read"),
        (b"junk\n", "holds no line of the run that can be read"),
        (b'{"event":"x","runId":"%s","schemaVersion":"2.0"}\n' % FIRST.encode(), "has version 2.0, which"),
        (b'{"event":"x","runId":"other","schemaVersion":"1.0"}\n', "holds no line of the run that can be read"),
    ],
)
def test_journal_of_no_use_is_not_called_missing(pz: Call, project: Path, content: bytes, problem: str) -> None:
    """The run is listed, so what is wrong with it is said; with results, they are shown in its place."""
    path = journal(project, FIRST)
    path.write_bytes(content)
    assert FIRST in pz("history", "--project", project).out
    called = pz("history", FIRST, "--project", project)
    assert called.code == 2
    assert f"PZ0502: the journal of run '{FIRST}' {problem}" in called.err
    assert f"delete .pz/journal/{FIRST}.jsonl" in called.err
    add_run(project, FIRST)
    called = pz("history", FIRST, "--project", project)
    assert (called.code, f"note: the journal of this run {problem}" in called.out) == (0, True)


def test_follow_stays_with_a_run_that_lives(pz: Call, project: Path) -> None:
    """While the run holds its lock, silence is no end."""
    journal(project, FIRST, RUN_STARTED)
    directory = add_run(project, FIRST, RunStatus.RUNNING)

    def live_on() -> None:
        with FileLock(directory / ".lock", wait_seconds=5):
            time.sleep(1.5)
            journal(project, FIRST, RUN_COMPLETED)

    holder = threading.Thread(target=live_on)
    holder.start()
    time.sleep(0.1)
    called = pz("history", FIRST, "--follow", "--project", project)
    holder.join()
    assert [line.split()[1] for line in called.out.splitlines()] == ["run_started", "run_completed"]


@pytest.mark.parametrize("field", ["nodes", "nodeCount", "mode", "status", "at", "durationMs", "rows", "live"])
@pytest.mark.parametrize("value", ["null", "[1]", '"x"', "-5", "1e400", "true", '{"a":1}', "NaN"])
def test_odd_fields_of_a_journal_break_nothing(pz: Call, project: Path, field: str, value: str) -> None:
    """Each way of showing a journal survives each field of another kind, and its JSON parses."""
    add_run(project, FIRST)
    swept = {"event": "retention_swept", "runsSwept": 1, "bytesFreed": 2, "failures": 0}
    path = journal(project, FIRST, RUN_STARTED, NODE_STARTED, RUN_COMPLETED, swept)
    lines = [
        re.sub(r"\}$", f',"odd":0,"{field}":{value}}}', re.sub(rf'"{field}":("[^"]*"|\\d+|true|\\[.*\\]),?', "", line))
        for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(lines) + "\n")
    for arguments in (("history",), ("history", FIRST), ("history", FIRST, "--follow")):
        called = pz(*arguments, "--json", "--project", project)
        assert called.code == 0, called.err
        for line in called.out.splitlines():
            json.loads(line, parse_constant=pytest.fail)
        assert pz(*arguments, "--project", project).code == 0


def test_clock_that_went_back_gives_no_duration(pz: Call, project: Path) -> None:
    """A run that finished before it started has no duration."""
    directory = add_run(project, FIRST)
    file = RunResultsFile(directory / "run_results.json", FIRST, START)
    file.write(RunStatus.SUCCESS, [], START - timedelta(hours=1))
    assert json.loads(pz("runs", "--json", "--project", project).out)["durationMs"] is None


def test_symlinked_journal_is_never_opened(pz: Call, project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A link is no journal, wherever it leads."""
    target = journal(tmp_path_factory.mktemp("elsewhere"), FIRST, RUN_STARTED, RUN_COMPLETED)
    (project / ".pz" / "journal").mkdir(parents=True)
    (project / ".pz" / "journal" / f"{FIRST}.jsonl").symlink_to(target)
    assert "PZ0502" in pz("history", FIRST, "--project", project).err
    assert "PZ0502" in pz("history", FIRST, "--follow", "--project", project).err
    assert pz("history", "--project", project).out == "no journals\n"
