"""What was seen in rows that are taken from an earlier run is told again, and never a guess."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from pz_dagster import PzTranslator, PzTranslatorSettings
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.far_side import Far, Job

FROM_FAILURE = "dagster/is_resume_retry"
LOADS = [f"duo/src_far__events_{name}" for name in ("a", "b")]


@pytest.fixture
def far() -> Iterator[Far]:
    found = Far()
    with found.installed():
        yield found


@pytest.fixture
def job(tmp_path: Path, far: Far, instance: dg.DagsterInstance) -> Job:
    """Two loads without contracts to two sinks in one op; both loads have drifted and the second sink fails once."""
    factory = ProjectFactory(
        tmp_path / "duo", 'name: duo\nversion: "1"\non_source_drift: warn\nengine: { threads: 1 }\n'
    )
    factory.connections("far: { connector: scripted, retry: { max_attempts: 1 } }\n")
    for name in ("a", "b"):
        sink = f"{{{{ sink('far', '{name}', strategy: 'append', duplicates: 'accept') }}}}"
        factory.pipeline(f"p_{name}", f"INSERT INTO {sink}\nSELECT id FROM {{{{ source('far', 'events_{name}') }}}}")
    found = Job(
        factory,
        instance,
        translator=PzTranslator(PzTranslatorSettings(builtin_checks=frozenset({"drift"}))),
        op_per="project",
    )
    found.run()
    assert found.succeeded
    extra = pa.RecordBatch.from_pylist([{"id": 3, "name": "c", "more": 1}])

    far.schema = extra.schema
    far.on_read = lambda call: [extra]
    far.failures = {"b": 1}
    found.run()
    assert not found.succeeded
    far.counts()
    return found


def drift(job: Job) -> dict[str, bool]:
    """Whether each load's drift check passed in the newest run."""
    found = [e.asset_check_evaluation_data for e in job.events if e.event_type_value == "ASSET_CHECK_EVALUATION"]
    return {each.asset_key.to_user_string(): each.passed for each in found}


def test_drift_is_told_again_of_what_is_not_read_again(job: Job, far: Far) -> None:
    """Neither the load that is reused nor the one that is carried forward turns green or falls silent."""
    job.run(FROM_FAILURE, parent=job.last)
    assert job.succeeded
    assert far.counts()[1] == ["b"]
    assert drift(job) == dict.fromkeys(LOADS, False)
    job.run(FROM_FAILURE, parent=job.last)
    assert far.counts() == (0, [])
    assert drift(job) == dict.fromkeys(LOADS, False)
    found = [e.asset_check_evaluation_data for e in job.events if e.event_type_value == "ASSET_CHECK_EVALUATION"]
    assert {each.metadata["pz/provenance"].value for each in found} == {"carried_forward"}


def test_without_the_journal_nothing_is_claimed(job: Job, tmp_path: Path) -> None:
    """The check keeps its last result in Dagster; a line names it, and the run goes on."""
    for journal in (tmp_path / "duo" / ".pz" / "journal").iterdir():
        journal.unlink()
    job.run(FROM_FAILURE, parent=job.last)
    assert job.succeeded
    assert drift(job) == {}
    assert len([text for text in job.messages if "has no result" in text]) == 2


def test_journals_of_a_newer_version_are_read_as_far_as_they_are_known(job: Job, tmp_path: Path) -> None:
    """Fields and events that this version does not know, and lines that broke off, hide nothing that was seen."""
    for journal in (tmp_path / "duo" / ".pz" / "journal").iterdir():
        lines = [{**json.loads(line), "later": {"x": 1}} for line in journal.read_text().splitlines()]
        text = "\n".join(map(json.dumps, [lines[0], {"event": "novelty", "nodeId": "1"}, *lines[1:]]))
        journal.write_text(f'{{"event": "node_co\n[]\n{text}\n')
    job.run(FROM_FAILURE, parent=job.last)
    assert job.succeeded
    assert drift(job) == dict.fromkeys(LOADS, False)


def test_only_the_newest_reading_of_a_load_is_told(job: Job, far: Far, tmp_path: Path) -> None:
    """Its rows were lost and read again before they are reused: what was seen in those that are gone is not mixed in."""
    for staging in (tmp_path / "duo" / ".pz" / "runs").glob("*/staging.duckdb"):
        staging.unlink()
    other = pa.RecordBatch.from_pylist([{"id": 3, "name": "c", "other": 1}])
    far.schema, far.on_read, far.failures = other.schema, lambda call: [other], {"b": 1}
    job.run(FROM_FAILURE, parent=job.last)
    assert (job.succeeded, far.counts()) == (False, (1, []))
    job.run(FROM_FAILURE, parent=job.last)
    assert (job.succeeded, far.counts()) == (True, (0, ["b"]))
    found = [e.asset_check_evaluation_data for e in job.events if e.event_type_value == "ASSET_CHECK_EVALUATION"]
    seen: dict[str, Any] = {each.asset_key.path[-1]: each.metadata["pz/changes"].records for each in found}
    columns = {name: {record.data["column"] for record in records} for name, records in seen.items()}
    assert columns == {"src_far__events_a": {"more"}, "src_far__events_b": {"other"}}
