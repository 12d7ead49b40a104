"""`pz run --until-caught-up` and `--state-url`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_calls import Call

from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.state_server import ScriptedAnswer, StateServer

WINDOWED = """
files:
  connector: localfiles
  root: in
  entities:
    events:
      read:
        path: events.csv
        columns: {{ id: bigint, name: varchar }}
        sync: {{ mode: incremental, cursor: id, max_window: 10, initial: 0{until} }}
out: {{ connector: duckdb, path: out.duckdb }}
"""


@pytest.fixture
def project(tmp_path: Path) -> ProjectFactory:
    """35 rows read in windows of ten, up to 35."""
    factory = ProjectFactory(tmp_path / "project")
    factory.write("in/events.csv", "id,name\n" + "".join(f"{n},n{n}\n" for n in range(1, 36)))
    factory.connections(WINDOWED.format(until=", until: 35"))
    factory.pipeline(
        "copy",
        "INSERT INTO {{ sink('out', 'events', strategy: 'merge', keys: ['id']) }}\nSELECT * FROM {{ source('files', 'events') }}",
    )
    return factory


def rows(project: ProjectFactory) -> int:
    import duckdb

    with duckdb.connect(str(project.directory / "out.duckdb"), read_only=True) as connection:
        found = connection.execute("select count(*) from events").fetchone()
    return int(found[0]) if found else -1


def test_loop_ends_with_the_final_slice(pz: Call, project: ProjectFactory) -> None:
    """Four windows for 35 rows, no empty pass; each pass is a run of its own."""
    called = pz("run", "--all", "--until-caught-up", "--project", project.directory)
    assert called.code == 0, called.err
    assert called.err.splitlines()[-1] == "4 passes, stopped because: caught up"
    assert len(list((project.directory / ".pz/runs").iterdir())) == 4
    assert rows(project) == 35


def test_loop_stops_at_the_limit_and_goes_on_next_time(pz: Call, project: ProjectFactory) -> None:
    """The limit is a success; a full refresh applies to the first pass only."""
    called = pz("run", "--all", "--until-caught-up", "--max-runs", 2, "--project", project.directory)
    assert (called.code, called.err.splitlines()[-1]) == (0, "2 passes, stopped because: max runs")
    assert rows(project) == 20
    called = pz("run", "--all", "--until-caught-up", "--full-refresh", "--project", project.directory)
    assert called.err.splitlines()[-1] == "4 passes, stopped because: caught up"
    assert rows(project) == 35


def test_loop_needs_a_source_with_a_stop(pz: Call, project: ProjectFactory) -> None:
    """Without a stop there is nothing to reach: one pass, exit 0, and the reason."""
    project.connections(WINDOWED.format(until=""))
    called = pz("run", "--all", "--until-caught-up", "--project", project.directory)
    assert (called.code, called.err.splitlines()[-1]) == (0, "1 pass, stopped because: no source with a stop")


def test_loop_stops_where_no_watermark_moves(pz: Call, project: ProjectFactory) -> None:
    """A sink outside the selection holds the watermark, so every further pass would load the same slice."""
    project.pipeline(
        "other",
        "INSERT INTO {{ sink('out', 'others', strategy: 'append', duplicates: 'accept') }}\nSELECT * FROM {{ source('files', 'events') }}",
    )
    called = pz("run", "--select", "+out.events", "--until-caught-up", "--project", project.directory)
    assert (called.code, called.err.splitlines()[-1]) == (0, "1 pass, stopped because: no watermark moved")


def test_failed_pass_ends_the_loop_with_its_code(pz: Call, project: ProjectFactory) -> None:
    """Its exit code is the loop's."""
    project.write("in/events.csv", "id,name\nx,y\n")
    called = pz("run", "--all", "--until-caught-up", "--project", project.directory)
    assert (called.code, called.err.splitlines()[-1]) == (1, "1 pass, stopped because: run failed")


def test_streams_follow_one_another_in_json_mode(pz_process: Call, project: ProjectFactory) -> None:
    """Every line of standard output parses, pass after pass."""
    called = pz_process("run", "--all", "--until-caught-up", "--log-format", "json", "--project", project.directory)
    events = [json.loads(line) for line in called.out.splitlines()]
    assert [event["event"] for event in events].count("run_started") == 4
    assert len({event["runId"] for event in events}) == 4
    loads = [event for event in events if event.get("kind") == "SourceLoad" and event["event"] == "node_completed"]
    assert [load["caughtUp"] for load in loads] == [False, False, False, True]


@pytest.mark.parametrize(
    "arguments",
    [("--max-runs", "3"), ("--until-caught-up", "--max-runs", "0"), ("--until-caught-up", "--max-runs", "x")],
)
def test_limit_that_means_nothing_is_a_usage_error(
    pz: Call, project: ProjectFactory, arguments: tuple[str, ...]
) -> None:
    """Exit 2, nothing ran."""
    called = pz("run", "--all", *arguments, "--project", project.directory)
    assert called.code == 2
    assert not (project.directory / ".pz").exists()


@pytest.fixture
def server() -> Iterator[StateServer]:
    """An endpoint."""
    with StateServer(token="t0ken") as running:
        yield running


def test_state_url_keeps_state_behind_the_endpoint(
    pz: Call, project: ProjectFactory, server: StateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said in the first note; the next call goes on from there; nothing is stored locally; the token is nowhere."""
    monkeypatch.setenv("PZ_STATE_TOKEN", "t0ken")
    monkeypatch.setenv("PZ_STATE_BACKEND", "sqlserver")
    arguments = ("run", "--all", "--state-url", server.url, "--project", project.directory)
    first = pz(*arguments)
    assert first.code == 0, first.err
    assert first.out.splitlines()[0] == "note: state backend: http (from --state-url)"
    assert json.loads(server.payload("watermarks", "files.events") or "{}")["value"] == "10"
    assert pz(*arguments).code == 0
    assert json.loads(server.payload("watermarks", "files.events") or "{}")["value"] == "20"
    assert not (project.directory / ".pz/state/watermarks.json").exists()
    for path in project.directory.rglob("*"):
        assert not path.is_file() or b"t0ken" not in path.read_bytes(), path


def test_unreachable_store_ends_the_run_before_any_node(
    pz: Call, project: ProjectFactory, server: StateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2 with the host and a next step; no node started, nothing written to the sink; the next run works."""
    monkeypatch.setenv("PZ_STATE_TOKEN", "t0ken")
    server.script.append(ScriptedAnswer(404))
    arguments = ("run", "--all", "--log-format", "json", "--state-url", server.url, "--project", project.directory)
    called = pz(*arguments)
    assert called.code == 2
    assert "PZ0518" in called.err
    assert called.out == ""
    assert not (project.directory / "out.duckdb").exists()
    assert pz(*arguments).code == 0


def test_state_that_cannot_be_stored_is_a_note(
    pz: Call, project: ProjectFactory, server: StateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data was delivered: exit 0, PZ0527 with the entity; a lost race also says PZ0520."""
    monkeypatch.setenv("PZ_STATE_TOKEN", "t0ken")
    arguments = ("run", "--all", "--state-url", server.url, "--project", project.directory)
    real = server.answer

    def refuse_writes(method: str, path: str, headers: dict[str, str], body: bytes) -> ScriptedAnswer:
        return ScriptedAnswer(412) if method == "PUT" else real(method, path, headers, body)

    monkeypatch.setattr(server, "answer", refuse_writes)
    called = pz(*arguments)
    assert called.code == 0
    note = next(line for line in called.out.splitlines() if "PZ0527" in line)
    assert "files.events" in note
    assert "PZ0520" in note
    assert rows(project) == 10
    lines = called.out.splitlines()
    assert lines.index(next(line for line in lines if line.startswith("run "))) < lines.index(note)


def test_pinned_backend_is_stronger_than_the_option(pz: Call, project: ProjectFactory, server: StateServer) -> None:
    """A project that pins another backend is refused, and so is an address that is none."""
    called = pz("run", "--all", "--state-url", "ftp://x", "--project", project.directory)
    assert (called.code, "PZ0125" in called.err) == (2, True)
    project.write("project.yml", 'name: demo\nversion: "1"\nstate: { backend: local }\n')
    called = pz("test", "--state-url", server.url, "--project", project.directory)
    assert (called.code, "PZ0124" in called.err) == (2, True)
    assert not (project.directory / ".pz").exists()
