"""`pz retry` where something changed since: state, results, the clock. Nothing is taken that may not stand for a new read."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from pz_engine import PzStateError, RunOutcome, Selection
from pz_engine.app.host import LATEST
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.testing.fixed_clock import FixedClock
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ScriptedConnector, WriteCall, rows


@pytest.fixture
def scripted() -> Iterator[ScriptedConnector]:
    """An installed scripted connector whose source has five rows."""
    with ScriptedConnector().installed() as connector:
        connector.on_read = lambda call: [rows(*range(1, 6))]
        yield connector


@pytest.fixture
def project(factory: ProjectFactory, scripted: ScriptedConnector) -> ProjectFactory:
    """An increment into two sinks; 2 is stored as its watermark."""
    factory.connections(
        """
        api:
          connector: scripted
          retry: { max_attempts: 1 }
          entities: { things: { read: { columns: { id: bigint, name: varchar }, sync: { mode: incremental, cursor: id } } } }
        good: { connector: scripted, retry: { max_attempts: 1 } }
        bad: { connector: scripted, retry: { max_attempts: 1 } }
        """
    )
    factory.pipeline(
        "copy",
        "INSERT INTO [{{ sink('good', 'a', strategy: 'merge', keys: ['id']) }},"
        " {{ sink('bad', 'b', strategy: 'merge', keys: ['id']) }}]\nSELECT * FROM {{ source('api', 'things') }}",
    )
    scripted.on_read = lambda call: [rows(1, 2)]
    assert factory.run().exit_code == 0
    scripted.on_read = lambda call: [rows(*range(1, 6))]
    return factory


def retry(project: ProjectFactory, **options: Any) -> RunOutcome:
    return project.run(retry_from=LATEST, selection=Selection(), **options)


def fail_sink(call: WriteCall) -> None:
    if call.spec.entity == "b":
        raise PzConnectorError("refused", is_transient=False)


def failed_run(project: ProjectFactory, scripted: ScriptedConnector, **options: Any) -> RunOutcome:
    """Run with a failing sink, then let it work again."""
    scripted.on_write = fail_sink
    outcome = project.run(**options)
    assert outcome.exit_code == 1
    scripted.on_write = lambda call: None
    scripted.reads.clear()
    return outcome


def stored(project: ProjectFactory) -> str:
    text = (project.directory / ".pz/state/watermarks.json").read_text()
    return str(json.loads(text)["watermarks"]["api.things"]["value"])


def provenance(outcome: RunOutcome) -> dict[str, str | None]:
    return {result.name: result.provenance for result in outcome.results}


def test_state_that_was_set_back_is_read_from(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """The staged slice began later than the state says now, so it would leave rows out."""
    failed_run(project, scripted)
    path = project.directory / ".pz/state/watermarks.json"
    path.write_text(path.read_text().replace('"value": "2"', '"value": "0"'))
    outcome = retry(project)
    assert outcome.exit_code == 0
    assert provenance(outcome)["src_api__things"] is None
    assert len(scripted.reads) == 1
    assert [result.rows for result in outcome.results if result.name == "src_api__things"] == [5]
    assert any("read from another watermark" in note for note in outcome.notes)


def test_state_that_another_run_moved_is_read_from(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """An older slice is not written over newer rows; a sink that was carried with it holds the watermark until a run."""
    failed_run(project, scripted)
    path = project.directory / ".pz/state/watermarks.json"
    path.write_text(path.read_text().replace('"value": "2"', '"value": "4"'))
    outcome = retry(project)
    assert provenance(outcome)["src_api__things"] is None
    assert [result.rows for result in outcome.results if result.name == "src_api__things"] == [1]
    assert stored(project) == "4"
    project.run()
    assert stored(project) == "5"


@pytest.mark.parametrize("full_refresh", [False, True])
def test_retry_of_a_run_that_newer_ones_have_overtaken(
    project: ProjectFactory, scripted: ScriptedConnector, *, full_refresh: bool
) -> None:
    """Its old slice neither moves the watermark back nor brings old rows over the newer run's; no row is lost."""
    first = failed_run(project, scripted)
    scripted.on_read = lambda call: [rows(*range(1, 10))]
    assert project.run().exit_code == 0
    assert stored(project) == "9"
    outcome = project.run(retry_from=first.run_id, selection=Selection(), full_refresh=full_refresh)
    assert outcome.exit_code == 0
    assert stored(project) == "9"
    assert provenance(outcome)["src_api__things"] is None
    assert {row["id"] for row in scripted.written["b"]} == set(range(1, 10))
    assert sum(result.rows or 0 for result in outcome.results if result.name == "bad.b") == (9 if full_refresh else 0)


def test_retry_of_a_retry_reuses_an_increment(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """What a retry took over can be taken over again, watermark included."""
    failed_run(project, scripted)
    scripted.on_write = fail_sink
    assert provenance(retry(project))["src_api__things"] == "reused"
    scripted.on_write = lambda call: None
    outcome = retry(project)
    assert provenance(outcome)["src_api__things"] == "reused"
    assert (scripted.reads, stored(project)) == ([], "5")


def test_only_sinks_that_rest_on_reused_loads_are_carried(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """Not one whose pipeline was edited since, whose load is read by nobody who failed, or that has no load at all."""
    merge = "strategy: 'merge', keys: ['id']"
    project.pipeline(
        "second",
        f"INSERT INTO {{{{ sink('good', 'c', {merge}) }}}}\nSELECT id, 'x' AS name FROM {{{{ source('api', 'things') }}}}",
    )
    project.pipeline(
        "apart", f"INSERT INTO {{{{ sink('good', 'd', {merge}) }}}}\nSELECT * FROM {{{{ source('api', 'other') }}}}"
    )
    project.pipeline("alone", f"INSERT INTO {{{{ sink('good', 'e', {merge}) }}}}\nSELECT 1 AS id")
    failed_run(project, scripted)
    project.pipeline("second", (project.directory / "pipelines/second.sql").read_text().replace("'x'", "'y'"))
    outcome = retry(project)
    assert provenance(outcome) == {
        "good.a": "carried_forward",
        "src_api__things": "reused",
        "copy": None,
        "bad.b": None,
    }
    assert outcome.watermarks_held == {"api.things": "sink 'good.c' was not part of this run"}
    assert stored(project) == "2"


EDITS: dict[str, Callable[[list[dict[str, Any]]], None]] = {
    "watermark": lambda nodes: nodes[0]["watermark"].update(value="999"),
    "no watermark": lambda nodes: nodes[0].pop("watermark"),
    "watermark of another column": lambda nodes: nodes[0]["watermark"].update(cursor="name", type="date"),
    "watermark with another column's name": lambda nodes: nodes[0]["watermark"].update(cursor="name"),
    "watermark of another type": lambda nodes: nodes[0]["watermark"].update(type="decimal"),
    "rows": lambda nodes: nodes[0].update(rows=2),
    "negative rows": lambda nodes: nodes[0].update(rows=-3),
    "failed load": lambda nodes: nodes[0].update(status="failed", error={"code": "PZ0501", "message": "edited"}),
    "node twice": lambda nodes: nodes.append(dict(nodes[0])),
    "node gone": lambda nodes: nodes.pop(0),
    "pipeline gone": lambda nodes: nodes.pop(1),
    "foreign node": lambda nodes: nodes.append({**nodes[0], "id": "ffffffff", "name": "src_x__y"}),
    "provenance": lambda nodes: nodes[0].update(provenance="carried_forward"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_results_edited_by_hand_lose_nothing(project: ProjectFactory, scripted: ScriptedConnector, edit: str) -> None:
    """Whatever they say, both sinks end up with every row, the watermark where the rows are, and the next run has nothing."""
    first = failed_run(project, scripted)
    path = project.directory / ".pz/runs" / first.run_id / "run_results.json"
    document = json.loads(path.read_text())
    EDITS[edit](document["nodes"])
    path.write_text(json.dumps(document))
    outcome = retry(project)
    assert outcome.exit_code == 0, outcome
    written = {name: {row["id"] for row in scripted.written[name]} for name in ("a", "b")}
    assert written == {"a": {1, 2, 3, 4, 5}, "b": {1, 2, 3, 4, 5}}
    assert stored(project) in ("2", "5")
    assert project.run().exit_code == 0
    assert stored(project) == "5"


def test_two_retries_at_once_deliver_once(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """The second one is refused while the first runs, and finds nothing to do afterwards."""
    first = failed_run(project, scripted)
    entered, leave = threading.Event(), threading.Event()
    before = len(scripted.written["b"])

    def wait(call: WriteCall) -> None:
        entered.set()
        assert leave.wait(30)

    scripted.on_write = wait
    outcomes: list[RunOutcome] = []
    running = threading.Thread(target=lambda: outcomes.append(retry(project)))
    running.start()
    assert entered.wait(30)
    with pytest.raises(PzStateError, match="another process") as refused:
        project.run(retry_from=first.run_id, selection=Selection())
    assert refused.value.code == "PZ0503"
    leave.set()
    running.join()
    assert outcomes[0].exit_code == 0
    assert len(scripted.written["b"]) - before == 3
    assert retry(project).results == ()


def test_staging_that_was_swept_costs_one_note(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """The load is read again, and another note says which sink keeps the watermark where it is."""
    first = failed_run(project, scripted)
    (project.directory / ".pz/runs" / first.run_id / "staging.duckdb").unlink()
    outcome = retry(project)
    assert outcome.exit_code == 0
    assert [note for note in outcome.notes if "staging" in note] == [
        f"run {first.run_id} has no staging database any more, so everything is extracted again"
    ]
    assert not [note for note in outcome.notes if "reused" in note or "carried" in note]
    assert "the watermark of api.things stays: sink 'good.a' was not part of this run" in outcome.notes
    assert stored(project) == "2"


def test_staging_that_cannot_be_opened_is_not_said_to_be_reused(
    project: ProjectFactory, scripted: ScriptedConnector
) -> None:
    """One note says that nothing is taken, and none says the contrary."""
    first = failed_run(project, scripted)
    (project.directory / ".pz/runs" / first.run_id / "staging.duckdb").write_bytes(b"garbage" * 1000)
    outcome = retry(project)
    assert outcome.exit_code == 0
    assert len([note for note in outcome.notes if "nothing is taken from its staging database" in note]) == 1
    assert not [note for note in outcome.notes if "reused" in note]
    assert scripted.reads


def test_newer_run_without_readable_results_is_named(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """The newest readable run is the one to continue; that another one came after it is said."""
    first = failed_run(project, scripted)
    path = project.directory / ".pz/runs" / first.run_id / "run_results.json"
    path.write_text(path.read_text()[:100])
    outcome = retry(project)
    assert (outcome.exit_code, outcome.results) == (0, ())
    assert outcome.notes[0].startswith(
        f"run {first.run_id} is passed over, because it left no results that can be read"
    )
    assert outcome.notes[1].startswith("nothing to retry: run ")


def test_results_edited_to_success_move_nothing(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """A failed sink that is said to have succeeded leaves nothing to retry; state stays, so the next run delivers it."""
    first = failed_run(project, scripted)
    path = project.directory / ".pz/runs" / first.run_id / "run_results.json"
    path.write_text(path.read_text().replace('"status":"failed"', '"status":"success"'))
    outcome = retry(project)
    assert (outcome.exit_code, outcome.results) == (0, ())
    assert stored(project) == "2"
    project.run()
    assert {row["id"] for row in scripted.written["b"]} == {1, 2, 3, 4, 5}


def test_clock_that_went_back_is_said(project: ProjectFactory, scripted: ScriptedConnector, tmp_path: Path) -> None:
    """The retry ends well; that the run it continued stays the latest is said, and continuing it again loses nothing."""
    future = datetime.now(timezone.utc) + timedelta(days=2)
    first = failed_run(project, scripted, clock=FixedClock(future), random=random.Random(1))
    for _ in range(2):
        outcome = retry(project)
        assert outcome.exit_code == 0
        assert any(f"the clock is behind run {first.run_id}" in note for note in outcome.notes)
        assert {row["id"] for row in scripted.written["b"]} == {1, 2, 3, 4, 5}
        assert stored(project) == "5"


@pytest.mark.parametrize("later", [timedelta(0), timedelta(milliseconds=400)])
def test_runs_that_start_together_do_not_doubt_the_clock(project: ProjectFactory, later: timedelta) -> None:
    """A run may start in the same millisecond, or while this one prepares, and still be no sign of a wrong clock."""
    moment = datetime.now(timezone.utc) + timedelta(days=1)
    other = project.run(clock=FixedClock(moment + later), random=random.Random(2))
    clock = FixedClock(moment)
    suffix = random.Random(1)
    outcome = project.run(clock=clock, random=suffix, on_run_id=lambda _: clock.advance(later))
    assert outcome.run_id < other.run_id
    assert [note for note in outcome.notes if "clock" in note] == []
