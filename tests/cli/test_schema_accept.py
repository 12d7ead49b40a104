"""`pz schema accept`: the latest run's observed schemas become the accepted ones."""

from __future__ import annotations

import json

import pytest
from command_calls import Call

from pz_engine.testing.project_factory import ProjectFactory


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """Two json sources without a contract, drift watched."""
    factory.write("project.yml", 'name: demo\nversion: "1"\non_source_drift: warn\n')
    factory.connections(
        """
        files:
          connector: localfiles
          root: in
          entities:
            people: { read: { path: people.jsonl, format: json } }
            places: { read: { path: places.jsonl, format: json } }
        """
    )
    factory.write("in/people.jsonl", '{"id": 1, "name": "a"}\n')
    factory.write("in/places.jsonl", '{"id": 1}\n')
    factory.pipeline("people", "SELECT * FROM {{ source('files', 'people') }}")
    factory.pipeline("places", "SELECT * FROM {{ source('files', 'places') }}")
    assert factory.run().exit_code == 0
    return factory


def accepted(project: ProjectFactory, key: str) -> dict[str, str]:
    schemas = json.loads((project.directory / ".pz/state/schemas.json").read_text())["schemas"]
    return {column["name"]: column["type"] for column in schemas[key]["columns"]}


def test_nothing_differs_is_said(pz: Call, project: ProjectFactory) -> None:
    """Right after the first run there is nothing to accept."""
    called = pz("schema", "accept", "--project", project.directory)
    assert (called.code, called.out) == (0, "nothing to accept\n")


def test_every_difference_is_accepted_with_a_line_each(pz: Call, project: ProjectFactory) -> None:
    """The warning names the command; after it the next run is quiet."""
    project.write("in/people.jsonl", '{"id": "x", "mail": "m"}\n')
    project.write("in/places.jsonl", '{"id": 1, "city": "c"}\n')
    warned = pz("run", "--all", "--project", project.directory)
    assert "warning: PZ0331 files.people differs" in warned.out
    assert "pz schema accept files.people" in warned.out
    called = pz("schema", "accept", "--project", project.directory)
    run_id = max(path.name for path in (project.directory / ".pz/runs").iterdir())
    assert called.out.splitlines() == [
        "files.people: mail added (VARCHAR)",
        "files.people: id retyped (BIGINT to VARCHAR)",
        "files.people: name removed (VARCHAR)",
        "files.places: city added (VARCHAR)",
        f"accepted 4 change(s) of 2 source(s) from run {run_id}",
    ]
    assert accepted(project, "files.people") == {"id": "VARCHAR", "mail": "VARCHAR"}
    assert "PZ0331" not in pz("run", "--all", "--project", project.directory).out


def test_named_target_alone_is_accepted(pz: Call, project: ProjectFactory) -> None:
    """The other one goes on warning."""
    project.write("in/people.jsonl", '{"id": 1}\n')
    project.write("in/places.jsonl", '{"id": 1, "city": "c"}\n')
    pz("run", "--all", "--project", project.directory)
    called = pz("schema", "accept", "files.places", "--project", project.directory)
    assert called.out.splitlines()[0] == "files.places: city added (VARCHAR)"
    assert accepted(project, "files.people") == {"id": "BIGINT", "name": "VARCHAR"}


def test_failed_load_can_be_accepted(pz: Call, project: ProjectFactory) -> None:
    """Under the policy fail the observation of the failed load is what accept takes."""
    project.write("project.yml", 'name: demo\nversion: "1"\non_source_drift: fail\n')
    project.write("in/people.jsonl", '{"id": 1}\n')
    assert pz("run", "--all", "--project", project.directory).code == 1
    assert pz("schema", "accept", "--project", project.directory).code == 0
    assert pz("run", "--all", "--project", project.directory).code == 0


@pytest.mark.parametrize("target", ["files.nobody", "nonsense", "files.people.x"])
def test_target_that_was_not_observed_is_refused(pz: Call, project: ProjectFactory, target: str) -> None:
    """With its code and a next step; nothing changes, not even for the targets beside it."""
    project.write("in/people.jsonl", '{"id": 1}\n')
    pz("run", "--all", "--project", project.directory)
    called = pz("schema", "accept", "files.people", target, "--project", project.directory)
    assert called.code == 2
    assert "PZ0127" in called.err
    assert target in called.err
    assert accepted(project, "files.people") == {"id": "BIGINT", "name": "VARCHAR"}


def test_without_any_run_there_is_nothing_to_accept(pz: Call, factory: ProjectFactory) -> None:
    """A fresh project: one line, exit 0; a named target is refused."""
    factory.pipeline("one", "SELECT 1 AS one")
    assert pz("schema", "accept", "--project", factory.directory).out == "nothing to accept\n"
    assert "PZ0127" in pz("schema", "accept", "a.b", "--project", factory.directory).err
    assert not (factory.directory / ".pz").exists()
