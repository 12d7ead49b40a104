"""Runs and state in a folder outside the project, by whichever host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest

from pz_engine import PzStateError, RunOutcome, RunRequest, Selection, list_runs, locate_state, run_project
from pz_engine.testing.project_factory import ProjectFactory

EVERYTHING = Selection(everything=True)


@pytest.fixture
def shop(factory: ProjectFactory) -> ProjectFactory:
    """An incremental load that is appended to a table."""
    factory.write("in/events.csv", "id,at\n1,2026-01-01 00:00:00\n2,2026-01-02 00:00:00\n")
    factory.connections(
        "files: { connector: localfiles, root: in, entities: { events: { read: { path: events.csv, columns: "
        "{ id: bigint, at: timestamp }, sync: { mode: incremental, cursor: at } } } } }\n"
        f"lake: {{ connector: duckdb, path: {factory.directory.parent / 'lake.duckdb'} }}\n"
    )
    factory.pipeline(
        "events",
        "insert into {{ sink('lake', 'events', strategy: 'append', duplicates: 'accept') }} select * from {{ source('files', 'events') }}\n",
    )
    return factory


def run(directory: Path, state_dir: Path | None, **options: object) -> RunOutcome:
    """Run everything."""
    return run_project(RunRequest(directory, state_dir=state_dir, selection=EVERYTHING, **options))  # type: ignore[arg-type]


def ids(shop: ProjectFactory) -> list[int]:
    """Return what landed."""
    with duckdb.connect(str(shop.directory.parent / "lake.duckdb"), read_only=True) as lake:
        return [row[0] for row in lake.execute("select id from events order by id").fetchall()]


def pz(shop: ProjectFactory, state_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with the folder in the environment."""
    return subprocess.run(
        [sys.executable, "-m", "pz_engine", *arguments, "--project", str(shop.directory)],
        env={**os.environ, "PZ_STATE_DIR": str(state_dir)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_is_left_in_the_project(shop: ProjectFactory, tmp_path: Path) -> None:
    """Run, journal, positions and lock are in the other folder, and a second run goes on from there."""
    away = tmp_path / "volume"
    outcome = run(shop.directory, away)
    assert outcome.exit_code == 0
    assert not (shop.directory / ".pz").exists()
    assert {each.name for each in away.iterdir()} == {
        "runs",
        "journal",
        "state",
        "target",
        "project.json",
        ".project.json.lock",
    }
    assert (outcome.results_path, outcome.journal_path) == (
        f".pz/runs/{outcome.run_id}/run_results.json",
        f".pz/journal/{outcome.run_id}.jsonl",
    )
    assert run(shop.directory, away).exit_code == 0
    assert ids(shop) == [1, 2]
    assert len(list_runs(shop.directory, state_dir=away)) == 2
    assert list_runs(shop.directory) == ()


def test_the_command_finds_the_same_runs(shop: ProjectFactory, tmp_path: Path) -> None:
    """With `PZ_STATE_DIR` the shell looks at, continues and cleans what a host left there."""
    away = tmp_path / "volume"
    shop.sidecar("events", "checks:\n  - accepted_values: { column: id, values: [1] }\n")
    assert run(shop.directory, away, gate_checks=True).exit_code == 1
    (first,) = list_runs(shop.directory, state_dir=away)
    assert first.run_id in pz(shop, away, "runs").stdout
    shop.sidecar("events", "checks:\n  - not_null: [id]\n")
    retried = pz(shop, away, "retry")
    assert retried.returncode == 0, retried.stdout + retried.stderr
    assert ids(shop) == [1, 2]
    assert "files.events" in pz(shop, away, "state", "show").stdout
    assert pz(shop, away, "clean").returncode == 0
    assert pz(shop, away, "plan").returncode == 0
    assert (away / "target" / "plan.json").exists()
    assert not (shop.directory / ".pz").exists()


def test_a_place_that_is_relative_starts_at_the_project(shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the working directory is; what is given wins over the environment."""
    monkeypatch.setenv("PZ_STATE_DIR", "elsewhere")
    assert locate_state(shop.directory) == shop.directory / "elsewhere"
    assert run(shop.directory, Path("../volume")).exit_code == 0
    assert (shop.directory.parent / "volume" / "runs").is_dir()
    assert not (shop.directory / "elsewhere").exists()
    assert run(shop.directory, None).exit_code == 0
    assert (shop.directory / "elsewhere" / "runs").is_dir()


def test_another_projects_folder_is_refused(shop: ProjectFactory, tmp_path: Path) -> None:
    """Its positions would leave out this one's rows; both are as they were."""
    away = tmp_path / "volume"
    assert run(shop.directory, away).exit_code == 0
    other = tmp_path / "other"
    shutil.copytree(shop.directory, other)
    text = (other / "project.yml").read_text()
    (other / "project.yml").write_text(
        text.replace(json.loads((away / "project.json").read_text())["name"], "stranger")
    )
    before = sorted(path.as_posix() for path in away.rglob("*"))
    with pytest.raises(PzStateError, match="holds the runs and positions of project") as refused:
        run(other, away)
    assert refused.value.code == "PZ0518"
    assert "PZ_STATE_DIR" in str(refused.value.diagnostic)
    assert sorted(path.as_posix() for path in away.rglob("*")) == before
    (away / "project.json").write_text("{")
    with pytest.raises(PzStateError, match="says nothing"):
        run(shop.directory, away)


def test_no_sink_may_write_into_it(shop: ProjectFactory, tmp_path: Path) -> None:
    """The folder is the engine's own wherever it is, and `.pz` in the project, where the snapshot is, stays so."""
    away = tmp_path / "volume"
    shop.connections(f"files: {{ connector: localfiles, root: in }}\nlake: {{ connector: localfiles, root: {away} }}\n")
    shop.pipeline(
        "events",
        "insert into {{ sink('lake', 'out', format: 'csv', strategy: 'replace') }} "
        "select * from {{ source('files', 'events', path: 'events.csv') }}\n",
    )
    with pytest.raises(Exception, match="the engine owns and cleans"):
        run(shop.directory, away)
    assert run(shop.directory, None).exit_code == 0


def test_what_stays_in_the_project_is_protected_as_well(shop: ProjectFactory, tmp_path: Path) -> None:
    """The snapshot is there, and the runs are again when nothing is said about another folder."""
    for path in (".pz/target", str(tmp_path / "volume" / "x")):
        shop.connections(
            f"files: {{ connector: localfiles, root: in }}\nlake: {{ connector: localfiles, root: {path} }}\n"
        )
        shop.pipeline(
            "events",
            "insert into {{ sink('lake', 'out', format: 'csv', strategy: 'replace') }} "
            "select * from {{ source('files', 'events', path: 'events.csv') }}\n",
        )
        with pytest.raises(Exception, match="the engine owns and cleans"):
            run(shop.directory, tmp_path / "volume")


@pytest.mark.parametrize("has_run", [True, False])
def test_the_folder_in_another_project_is_refused(shop: ProjectFactory, tmp_path: Path, *, has_run: bool) -> None:
    """It has no mark of its own, and needs none to be known."""
    other = tmp_path / "other"
    shutil.copytree(shop.directory, other)
    (other / "project.yml").write_text((other / "project.yml").read_text().replace("name: demo", "name: stranger"))
    if has_run:
        assert run(other, None).exit_code == 0
    with pytest.raises(PzStateError, match="is that of project 'stranger'"):
        run(shop.directory, other / ".pz")
    with pytest.raises(PzStateError, match="is that of project 'stranger'"):
        list_runs(shop.directory, state_dir=other / ".pz")


def test_projects_that_start_together_do_not_share_it(shop: ProjectFactory, tmp_path: Path) -> None:
    """One of them has the folder, every other one is refused, and only the rows of the first are in its runs."""
    away, outcomes = tmp_path / "volume", []
    projects = []
    for number in range(4):
        projects.append(tmp_path / f"p{number}")
        shutil.copytree(shop.directory, projects[-1])
        text = (projects[-1] / "project.yml").read_text().replace("name: demo", f"name: p{number}")
        (projects[-1] / "project.yml").write_text(text)

    def start(directory: Path) -> None:
        try:
            outcomes.append(run(directory, away).exit_code)
        except PzStateError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=start, args=(directory,)) for directory in projects]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(map(str, outcomes)) == ["0", "PZ0518", "PZ0518", "PZ0518"]
    assert len(list((away / "runs").iterdir())) == 1


def test_a_renamed_project_goes_on_when_told_to(shop: ProjectFactory, tmp_path: Path) -> None:
    """The message says which file to delete; the position is still there."""
    away = tmp_path / "volume"
    run(shop.directory, away)
    path = shop.directory / "project.yml"
    path.write_text(path.read_text().replace("name: demo", "name: store"))
    with pytest.raises(PzStateError) as refused:
        run(shop.directory, away)
    assert "after a rename delete project.json in it" in str(refused.value.diagnostic)
    (away / "project.json").unlink()
    assert run(shop.directory, away).exit_code == 0
    assert ids(shop) == [1, 2]
    assert json.loads((away / "project.json").read_text()) == {"name": "store"}
