"""Feeds: a token is kept after every sink has committed, and handed to the next run as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pz_engine import NodeStatus, PzValidationError
from pz_engine.connectors import Capability
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ScriptedConnector, rows

SINK = "INSERT INTO {{ sink('store', 'copy', strategy: 'merge', keys: ['id']) }}\n"


@pytest.fixture
def feed() -> Iterator[ScriptedConnector]:
    """An installed connector whose reads are a feed; each read ends at the next token."""
    connector = ScriptedConnector(shape="feed")
    connector.token = lambda spec: f"{int(spec.prior_token or 0) + 1}"
    with connector.installed():
        yield connector


@pytest.fixture
def project(factory: ProjectFactory, feed: ScriptedConnector) -> ProjectFactory:
    """A feed merged into a sink."""
    factory.connections("api: { connector: scripted }\nstore: { connector: scripted }\n")
    factory.pipeline("copy", SINK + "SELECT * FROM {{ source('api', 'things') }}")
    return factory


def tokens(project: ProjectFactory) -> dict[str, str]:
    path = project.directory / ".pz" / "state" / "sync-state.json"
    if not path.exists():
        return {}
    return {key: entry["token"] for key, entry in json.loads(path.read_text())["syncState"].items()}


def test_token_moves_with_each_clean_run(project: ProjectFactory, feed: ScriptedConnector) -> None:
    """The first run has none, the next one gets what the first left; a full refresh starts anew and stores again."""
    for _ in range(3):
        assert project.run().exit_code == 0
    assert [spec.prior_token for spec in feed.reads] == [None, "1", "2"]
    assert tokens(project) == {"api.things": "3"}
    assert project.run(full_refresh=True).exit_code == 0
    assert feed.reads[-1].prior_token is None
    assert tokens(project) == {"api.things": "1"}


def test_failed_sink_holds_the_token(project: ProjectFactory, feed: ScriptedConnector) -> None:
    """What a sink did not commit is read again."""

    def refuse(call: object) -> None:
        raise PzConnectorError("no", is_transient=False)

    feed.on_write = refuse
    outcome = project.run()
    assert outcome.exit_code == 1
    assert tokens(project) == {}
    assert outcome.watermarks_held == {"api.things": "sink 'store.copy' did not commit"}


def test_failed_read_gives_no_token(project: ProjectFactory, feed: ScriptedConnector) -> None:
    """A token is asked for after a clean read only."""
    asked: list[str] = []
    feed.token = lambda spec: asked.append(spec.entity)  # type: ignore[func-returns-value]

    def broken(call: object) -> Iterator[object]:
        yield rows(1)
        raise PzConnectorError("gone", is_transient=False)

    feed.on_read = broken  # type: ignore[assignment]
    assert project.run().exit_code == 1
    assert asked == []


def test_no_token_leaves_state_alone(project: ProjectFactory, feed: ScriptedConnector) -> None:
    """A read that ends without a token neither stores nor removes one."""
    project.run()
    feed.token = lambda spec: None
    assert project.run().exit_code == 0
    assert tokens(project) == {"api.things": "1"}


def test_two_runs_on_one_feed_store_one_token(project: ProjectFactory, feed: ScriptedConnector) -> None:
    """The later writer loses with a note that names both codes; its exit code stays."""

    def overtake(call: object) -> None:
        if len(feed.reads) == 1:
            assert project.run().exit_code == 0

    feed.on_write = overtake
    outcome = project.run()
    assert outcome.exit_code == 0
    note = next(note for note in outcome.notes if "PZ0527" in note)
    assert "PZ0520" in note
    assert "api.things" in note
    assert tokens(project) == {"api.things": "1"}


@pytest.mark.parametrize(("strategy", "code"), [("strategy: 'append'", "PZ0214"), ("strategy: 'replace'", "PZ0335")])
def test_feed_into_a_sink_that_would_lose_or_double_is_refused(
    project: ProjectFactory, strategy: str, code: str
) -> None:
    """Refused when planning, on the pipeline with the sink."""
    project.pipeline(
        "copy", "INSERT INTO {{ sink('store', 'copy', " + strategy + ") }}\nSELECT * FROM {{ source('api', 'things') }}"
    )
    with pytest.raises(PzValidationError) as caught:
        project.run()
    assert [(problem.code, problem.file, problem.line) for problem in caught.value.errors] == [
        (code, "pipelines/copy.sql", 1)
    ]
    assert not (project.directory / ".pz" / "runs").exists()


def test_consent_lets_a_feed_append(project: ProjectFactory, feed: ScriptedConnector) -> None:
    """With duplicates: accept a feed may append."""
    project.pipeline(
        "copy",
        "INSERT INTO {{ sink('store', 'copy', strategy: 'append', duplicates: 'accept') }}\n"
        "SELECT * FROM {{ source('api', 'things') }}",
    )
    assert project.run().exit_code == 0


def test_feed_with_a_cursor_is_refused(project: ProjectFactory) -> None:
    """An ordered cursor and a token cannot both say where to go on."""
    project.connections(
        """
        api:
          connector: scripted
          entities: { things: { read: { sync: { mode: incremental, cursor: id } } } }
        store: { connector: scripted }
        """
    )
    with pytest.raises(PzValidationError) as caught:
        project.run()
    assert [problem.code for problem in caught.value.errors] == ["PZ0315"]


def test_feed_on_a_partitioning_or_native_only_connector_is_refused(
    project: ProjectFactory, feed: ScriptedConnector
) -> None:
    """A token belongs to one read that the connector makes itself."""
    feed.capabilities |= Capability.PARTITIONED_READ
    feed.native_only_reads = True
    with pytest.raises(PzValidationError) as caught:
        project.run()
    assert sorted(problem.code for problem in caught.value.errors) == ["PZ0316", "PZ0363"]


def test_feed_that_returns_several_partitions_fails(project: ProjectFactory, feed: ScriptedConnector) -> None:
    """One token cannot speak for several partitions."""
    feed.partitions = ("a", "b")
    outcome = project.run()
    failed = next(result for result in outcome.results if result.status is NodeStatus.FAILED)
    assert failed.error is not None
    assert failed.error.code == "PZ0316"
    assert tokens(project) == {}


def test_token_appears_nowhere_but_in_state(project: ProjectFactory, feed: ScriptedConnector) -> None:
    """A token is a secret of the connector: no result, event, journal or plan holds it."""
    feed.token = lambda spec: "tok-5e6f-sentinel"
    project.run()
    project.run()
    holders = [
        path.relative_to(project.directory).as_posix()
        for path in project.directory.rglob("*")
        if path.is_file() and b"tok-5e6f-sentinel" in path.read_bytes()
    ]
    assert holders == [".pz/state/sync-state.json"]
