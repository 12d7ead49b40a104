"""A run's behaviour as users meet it."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import duckdb
import pytest

from pz_engine import CancelToken, NodeStatus, PzValidationError, RunStatus, Selection
from pz_engine.events.types import NodeCompleted, NodeStarted, RunCompleted, RunEvent, RunStarted
from pz_engine.testing.project_factory import ProjectFactory

CONNECTIONS = """
files:
  connector: localfiles
  root: in
  entities:
    people:
      read: { path: people.csv, columns: { id: int, city: varchar } }
out:
  connector: localfiles
  root: out
"""


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """One csv, one pipeline, one parquet file."""
    factory.write("in/people.csv", "id,city\n1,Rome\n2,Oslo\n3,\n")
    factory.connections(CONNECTIONS)
    factory.pipeline(
        "cities",
        "INSERT INTO {{ sink('out', 'cities', format: 'parquet', strategy: 'replace') }}\n"
        "SELECT id, city FROM {{ source('files', 'people') }} WHERE id < 3",
    )
    return factory


def landed(project: ProjectFactory, name: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(f"from '{project.directory / 'out' / name / name}.parquet' order by all").fetchall()


@pytest.mark.parametrize("fusion", ["on", "off"])
def test_rows_land_and_every_node_reports_once(project: ProjectFactory, fusion: str) -> None:
    """Source, pipeline and sink succeed with their counts, fused or staged."""
    project.write("project.yml", f'name: demo\nversion: "1"\nengine: {{ fusion: {fusion} }}\n')
    events: list[RunEvent] = []
    outcome = project.run(events=events)
    assert outcome.status is RunStatus.SUCCESS
    assert landed(project, "cities") == [(1, "Rome"), (2, "Oslo")]
    assert {result.name: result.rows for result in outcome.results} == {
        "src_files__people": 3,
        "cities": 2,
        "out.cities": 2,
    }
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunCompleted)
    completed = [event.result.name for event in events if isinstance(event, NodeCompleted)]
    assert completed == ["src_files__people", "cities", "out.cities"]
    started = [event.node_name for event in events if isinstance(event, NodeStarted)]
    assert started == completed


def test_results_on_disk_equal_the_outcome(project: ProjectFactory) -> None:
    """`run_results.json` is terminal and lists the nodes in completion order."""
    outcome = project.run()
    assert outcome.results_path is not None
    document = json.loads((project.directory / outcome.results_path).read_text())
    assert document["status"] == "success"
    assert [node["name"] for node in document["nodes"]] == [result.name for result in outcome.results]


def test_a_failing_check_fails_the_run_and_not_the_sink(project: ProjectFactory) -> None:
    """Checks observe: the file is written, exit code 1, `PZ0510` with the violation count."""
    project.sidecar("cities", "checks:\n  - row_count: { min: 5 }\n")
    outcome = project.run()
    by_name = {result.name: result for result in outcome.results}
    check = by_name["check_cities_row_count"]
    assert (outcome.exit_code, check.status, check.rows) == (1, NodeStatus.FAILED, 1)
    assert check.error is not None
    assert check.error.code == "PZ0510"
    assert "2 row(s)" in check.error.message
    assert by_name["out.cities"].status is NodeStatus.SUCCESS
    assert len(landed(project, "cities")) == 2


def test_a_gate_skips_the_consumers_of_a_failing_check(project: ProjectFactory) -> None:
    """With `gate_checks` the sink is skipped and nothing is written."""
    project.sidecar("cities", "checks:\n  - row_count: { min: 5 }\n")
    outcome = project.run(gate_checks=True)
    by_name = {result.name: result.status for result in outcome.results}
    assert by_name["out.cities"] is NodeStatus.SKIPPED
    assert not (project.directory / "out").exists()


def test_a_failed_branch_skips_its_descendants_and_the_other_finishes(project: ProjectFactory) -> None:
    """A missing file fails its load, its pipeline and sink are skipped, the independent flow lands."""
    project.pipeline(
        "ghosts",
        "INSERT INTO {{ sink('out', 'ghosts', format: 'parquet', strategy: 'replace') }}\n"
        "SELECT * FROM {{ source('files', 'ghosts', path: 'ghosts.csv', columns: { id: 'int' }) }}",
    )
    outcome = project.run()
    by_name = {result.name: result for result in outcome.results}
    assert outcome.status is RunStatus.COMPLETED_WITH_FAILURES
    assert by_name["src_files__ghosts"].status is NodeStatus.FAILED
    assert by_name["ghosts"].status is NodeStatus.SKIPPED
    assert by_name["out.ghosts"].status is NodeStatus.SKIPPED
    assert by_name["out.cities"].status is NodeStatus.SUCCESS
    assert not (project.directory / "out" / "ghosts").exists()


def test_fail_fast_skips_what_waits(project: ProjectFactory) -> None:
    """The first failure stops dispatch; every node still has exactly one result."""
    project.write("project.yml", 'name: demo\nversion: "1"\nengine: { threads: 1, fusion: off }\n')
    project.pipeline("aaa", "SELECT 1 / id AS x, error('no') AS y FROM {{ source('files', 'people') }}")
    outcome = project.run(fail_fast=True)
    assert outcome.status is RunStatus.COMPLETED_WITH_FAILURES
    assert len({result.id for result in outcome.results}) == len(outcome.results) == 4
    assert {r.name: r.status for r in outcome.results}["out.cities"] is NodeStatus.SKIPPED


def test_a_run_cancelled_before_dispatch_is_fatal(project: ProjectFactory) -> None:
    """Nothing runs, every node is skipped, exit code 3."""
    token = CancelToken()
    token.set()
    outcome = project.run(cancel=token)
    assert (outcome.status, outcome.exit_code) == (RunStatus.FATAL, 3)
    assert {result.status for result in outcome.results} == {NodeStatus.SKIPPED}


def test_a_running_statement_is_interrupted(project: ProjectFactory) -> None:
    """Cancelling while a query runs ends the run soon, with both events of the node."""
    project.pipeline(
        "slow", "SELECT count(*) AS n FROM range(10000000) a, range(10000000) b WHERE a.range % 7 = b.range % 11"
    )
    token, events = CancelToken(), list[RunEvent]()

    def stop_when_started(event: RunEvent) -> None:
        if isinstance(event, NodeStarted) and event.node_name == "slow":
            threading.Timer(0.3, token.set).start()

    outcome = project.run(cancel=token, events=events, on_event=stop_when_started)
    assert outcome.exit_code == 3
    slow = next(e for e in events if isinstance(e, NodeCompleted) and e.result.name == "slow")
    assert slow.result.status is NodeStatus.SKIPPED


def test_a_rejected_project_leaves_no_run_directory(project: ProjectFactory) -> None:
    """Three mistakes in three files are three errors, and `.pz/runs` does not exist."""
    project.write("project.yml", 'name: demo\nversion: "1"\nengine: { threads: many }\n')
    project.connections(CONNECTIONS + "  spelling: { root: x }\n")
    project.sidecar("cities", "checks:\n  - not_nul: [id]\n")
    with pytest.raises(PzValidationError) as caught:
        project.run()
    files = {problem.file for problem in caught.value.errors}
    assert {"project.yml", "pipelines/configs/cities.yml"} <= files
    assert all(problem.hint and problem.line for problem in caught.value.errors)
    assert not (project.directory / ".pz" / "runs").exists()


REFUSALS = {
    "load": ("project.yml", 'name: demo\nversion: "1"\nengine: { threads: 0 }\n', "PZ0120"),
    "compile": ("pipelines/cities.sql", "SELECT * FROM {{ ref('nothing') }}", "PZ0201"),
    "connector options": ("connections.yml", CONNECTIONS + "  colour: red\n", "PZ0301"),
    "dry compile": ("pipelines/cities.sql", "SELECT nothing FROM {{ source('files', 'people') }}", "PZ0401"),
    "plan": ("connections.yml", CONNECTIONS + "  rate_limit: { requests_per_minute: 60 }\n", "PZ0317"),
}
"""Phase: file, content, a code of its refusal."""


@pytest.mark.parametrize("phase", REFUSALS)
def test_refusal_of_every_phase_leaves_no_run_directory(project: ProjectFactory, phase: str) -> None:
    """Whatever is found before data moves: no run, no journal, no state."""
    path, content, code = REFUSALS[phase]
    project.write(path, content)
    with pytest.raises(PzValidationError) as caught:
        project.run()
    assert code in [problem.code for problem in caught.value.errors]
    left = {path.name for path in (project.directory / ".pz").glob("*")}
    assert left <= {"target"}


def test_a_bare_run_of_two_flows_asks_which(project: ProjectFactory) -> None:
    """`PZ0215`; naming a node runs it with its ancestors and descendants."""
    project.pipeline(
        "other", "INSERT INTO {{ sink('out', 'other', format: 'csv', strategy: 'replace') }} SELECT 1 AS one"
    )
    with pytest.raises(PzValidationError) as caught:
        project.run(selection=Selection())
    assert [problem.code for problem in caught.value.errors] == ["PZ0215"]
    outcome = project.run(selection=Selection(names=("other",)))
    assert {result.name for result in outcome.results} == {"other", "out.other"}


def test_test_mode_runs_checks_and_writes_no_sink(project: ProjectFactory) -> None:
    """Checks and their ancestors run; no output appears."""
    project.sidecar("cities", "checks:\n  - not_null: [id]\n")
    outcome = project.run(mode="test")
    assert {result.name for result in outcome.results} == {"src_files__people", "cities", "check_cities_not_null_id"}
    assert not (project.directory / "out").exists()


def test_zero_rows_are_a_success(project: ProjectFactory, tmp_path: Path) -> None:
    """An empty result is a file with columns and types and no row, and `rows` is 0."""
    project.write("in/people.csv", "id,city\n")
    outcome = project.run()
    assert {result.rows for result in outcome.results} == {0}
    assert landed(project, "cities") == []
    with duckdb.connect() as connection:
        path = project.directory / "out" / "cities" / "cities.parquet"
        described = connection.execute(f"describe from '{path}'").fetchall()
    assert [(row[0], row[1]) for row in described] == [("id", "INTEGER"), ("city", "VARCHAR")]


def test_an_old_output_survives_a_failed_replace(project: ProjectFactory) -> None:
    """A run that fails half-way leaves the previous file and no temporary one."""
    project.run()
    before = landed(project, "cities")
    project.write("in/people.csv", "id,city\n1,Rome\nx,Oslo\n")
    outcome = project.run()
    assert outcome.exit_code == 1
    assert landed(project, "cities") == before
    assert [p.name for p in (project.directory / "out" / "cities").iterdir()] == ["cities.parquet"]
    failed = next(result for result in outcome.results if result.status is NodeStatus.FAILED)
    assert failed.name == "src_files__people"
    assert failed.error is not None
    assert "people.csv" in failed.error.message
    assert "line 3" in failed.error.message
    assert "'id'" in failed.error.message
