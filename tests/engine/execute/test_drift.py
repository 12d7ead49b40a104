"""Schema drift: the first load is the baseline, a difference is said until it is accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from pz_engine import SourceDriftDetected
from pz_engine.events.types import NodeCompleted, RunEvent
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ScriptedConnector

PROJECT = 'name: demo\nversion: "1"\non_source_drift: {policy}\n'
BEFORE = [("id", pa.int64()), ("old", pa.string()), ("day", pa.string())]
AFTER = [("id", pa.int64()), ("day", pa.date32()), ("note", pa.string())]


@pytest.fixture
def source() -> Iterator[ScriptedConnector]:
    """An installed connector; the test sets its columns."""
    with ScriptedConnector().installed() as connector:
        yield connector


@pytest.fixture
def project(factory: ProjectFactory, source: ScriptedConnector) -> ProjectFactory:
    """A full read into a sink, drift watched."""
    factory.write("project.yml", PROJECT.format(policy="warn"))
    factory.connections("api: { connector: scripted }\nstore: { connector: scripted }\n")
    factory.pipeline(
        "copy",
        "INSERT INTO {{ sink('store', 'copy', strategy: 'replace') }}\nSELECT * FROM {{ source('api', 'things') }}",
    )
    shape(source, BEFORE)
    return factory


def shape(source: ScriptedConnector, columns: list[tuple[str, pa.DataType]]) -> None:
    source.schema = pa.schema(columns)
    source.on_read = lambda call: [pa.RecordBatch.from_pylist([], schema=source.schema)]


def baseline(project: ProjectFactory) -> list[str]:
    stored = json.loads((project.directory / ".pz/state/schemas.json").read_text())
    return [f"{column['name']} {column['type']}" for column in stored["schemas"]["api.things"]["columns"]]


def drift(events: list[RunEvent]) -> list[SourceDriftDetected]:
    return [event for event in events if isinstance(event, SourceDriftDetected)]


def test_difference_warns_every_time_until_accepted(project: ProjectFactory, source: ScriptedConnector) -> None:
    """Added columns come first, then removed and retyped ones; zero-row loads count; the baseline stays."""
    first: list[RunEvent] = []
    project.run(events=first)
    assert drift(first) == []
    assert baseline(project) == ["id BIGINT", "old VARCHAR", "day VARCHAR"]
    shape(source, AFTER)
    for _ in range(2):
        events: list[RunEvent] = []
        outcome = project.run(events=events)
        assert outcome.exit_code == 0
        (found,) = drift(events)
        assert [(change.kind, change.column, change.old_type, change.new_type) for change in found.changes] == [
            ("added", "note", None, "VARCHAR"),
            ("removed", "old", "VARCHAR", None),
            ("retyped", "day", "VARCHAR", "DATE"),
        ]
        order = [type(event) for event in events if isinstance(event, (SourceDriftDetected, NodeCompleted))]
        assert order[0] is SourceDriftDetected
    assert baseline(project) == ["id BIGINT", "old VARCHAR", "day VARCHAR"]


def test_policy_fail_fails_the_load_and_keeps_what_accept_needs(
    project: ProjectFactory, source: ScriptedConnector
) -> None:
    """Rows and the observed schema stay in the results; counts of operations do not; the sink is untouched."""
    project.run()
    shape(source, AFTER)
    project.write("project.yml", PROJECT.format(policy="fail"))
    source.written.clear()
    outcome = project.run()
    assert outcome.exit_code == 1
    failed = next(result for result in outcome.results if result.error is not None)
    assert failed.error is not None
    assert failed.error.code == "PZ0331"
    assert "pz schema accept api.things" in failed.error.message
    assert failed.observed_schema is not None
    assert [column.name for column in failed.observed_schema.columns] == ["id", "day", "note"]
    assert failed.timings is not None
    assert failed.ops is None
    assert source.written == {}


def test_ignore_is_a_true_no_op(project: ProjectFactory, source: ScriptedConnector) -> None:
    """Nothing is described, stored or reported."""
    project.write("project.yml", PROJECT.format(policy="ignore"))
    outcome = project.run()
    assert not (project.directory / ".pz/state/schemas.json").exists()
    assert all(result.observed_schema is None for result in outcome.results)


def test_contract_is_never_checked_here(project: ProjectFactory, source: ScriptedConnector) -> None:
    """Declared columns are the contract's business."""
    project.connections(
        """
        api: { connector: scripted, entities: { things: { read: { columns: { id: bigint, old: varchar, day: varchar } } } } }
        store: { connector: scripted }
        """
    )
    project.run()
    assert not (project.directory / ".pz/state/schemas.json").exists()


def test_another_read_of_the_same_entity_starts_a_new_baseline(
    project: ProjectFactory, source: ScriptedConnector
) -> None:
    """When the pushed columns change, the read changed and not the source."""
    project.run()
    project.pipeline(
        "copy",
        "INSERT INTO {{ sink('store', 'copy', strategy: 'replace') }}\nSELECT id FROM {{ source('api', 'things') }}",
    )
    shape(source, AFTER)
    events: list[RunEvent] = []
    project.run(events=events)
    assert drift(events) == []
    assert baseline(project) == ["id BIGINT", "day DATE", "note VARCHAR"]


def test_unreadable_baseline_is_replaced_with_a_note(project: ProjectFactory, source: ScriptedConnector) -> None:
    """A corrupt file costs one comparison, not the run."""
    project.write(".pz/state/schemas.json", "{ torn")
    outcome = project.run()
    assert outcome.exit_code == 0
    assert any("schemas.json is unreadable" in note for note in outcome.notes)
    assert baseline(project) == ["id BIGINT", "old VARCHAR", "day VARCHAR"]
