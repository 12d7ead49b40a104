"""The copy of a project's positions in the Dagster instance, with real runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, PzResource
from pz_dagster.state_records import read_records, state_key
from pz_dagster.state_restore import compare, read_copy, reconcile
from pz_engine import read_audit
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.storages import KINDS, storage
from tests.dagster.test_materialize import materialized, metadata_of

NAME = "watermarks/erp.events"
KEY = state_key("shop")
EVENTS = dg.AssetSelection.assets(["shop", "src_erp__events"], ["shop", "events_merged"], ["mart", "events"])


@pytest.fixture(params=KINDS)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """An instance of each kind of storage."""
    with storage(request.param, tmp_path / "home") as found:
        yield found


def state_file(factory: ProjectFactory, name: str = "watermarks.json") -> Path:
    return factory.directory / ".pz" / "state" / name


def position(factory: ProjectFactory) -> str | None:
    """The watermark that is stored."""
    try:
        found = json.loads(state_file(factory).read_text())["watermarks"].get("erp.events")
    except FileNotFoundError:
        return None
    return str(found["value"])[:10] if found else None


def arrive(factory: ProjectFactory, number: int) -> None:
    """Let the feed grow by one row of a day of its own."""
    with (factory.directory / "in" / "events.csv").open("a") as file:
        file.write(f"{number},2026-01-{number:02} 00:00:00\n")


def warnings_of(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> list[str]:
    return [
        entry.user_message.partition(" - ")[2] or entry.user_message
        for entry in instance.all_logs(result.run_id)
        if entry.level == 30
    ]


def rows_of(result: dg.ExecuteInProcessResult) -> Any:
    return metadata_of(result, "mart", "events")["pz/rows"]


def copies(instance: dg.DagsterInstance) -> list[str | None]:
    """Copied values, newest first; None for a removal."""
    found = read_records(instance, KEY).get(NAME, ())
    return [str(each.entry["value"])[:10] if each.entry else None for each in found]


def test_a_lost_disk_lands_only_what_is_new(shop: ProjectFactory, stored: dg.DagsterInstance) -> None:
    """Without `.pz` the position comes back from the instance, of whatever kind, also after its runs were deleted."""
    bench = Workbench(shop, stored)
    first = bench.materialize(EVENTS)
    assert rows_of(first) == 2
    assert materialized(first) == {"shop/src_erp__events", "shop/events_merged", "mart/events"}
    stored.delete_run(first.run_id)
    shutil.rmtree(shop.directory / ".pz")
    arrive(shop, 3)
    again = bench.materialize(EVENTS)
    assert rows_of(again) == 1
    (warning,) = (text for text in warnings_of(stored, again) if "PZ0705" in text)
    assert "the stored watermark of erp.events is missing" in warning
    assert copies(stored) == ["2026-01-03", "2026-01-02"]
    (line,) = read_audit(shop.directory / ".pz", "erp.events")
    assert (line.action, line.reason) == ("set", "PZ0705: restored from the copy in the Dagster instance")
    quiet = bench.materialize(EVENTS)
    assert rows_of(quiet) == 0
    assert not [text for text in warnings_of(stored, quiet) if "PZ07" in text]


def test_an_old_disk_moves_on_to_the_copy(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A state that equals an older copy is replaced by the newest one, however many lie between."""
    bench = Workbench(shop, instance)
    bench.materialize(EVENTS)
    backup = state_file(shop).read_bytes()
    for number in (3, 4):
        arrive(shop, number)
        bench.materialize(EVENTS)
    state_file(shop).write_bytes(backup)
    found = {each.name: each.decision for each in compare(instance, bench.project)}
    assert (found[NAME].action, found[NAME].reason) == ("restore", "is older than the copy")
    assert rows_of(bench.materialize(EVENTS)) == 0
    assert position(shop) == "2026-01-04"


def test_a_change_by_hand_wins(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """`pz state set` and `clear` are copied by the next run and undone by none."""
    from pz_engine.app.state_edits import EditRequest, apply_edit, plan_edit

    bench = Workbench(shop, instance)
    bench.materialize(EVENTS)
    apply_edit(plan_edit(shop.directory, EditRequest("set", "erp.events", value="2026-01-01")))
    assert rows_of(bench.materialize(EVENTS)) == 1
    apply_edit(plan_edit(shop.directory, EditRequest("clear", "erp.events")))
    done = reconcile(instance, bench.project)
    assert [record.entry for record in done.to_copy] == [None]
    assert copies(instance)[0] is None
    shutil.rmtree(shop.directory / ".pz")
    assert rows_of(bench.materialize(EVENTS)) == 2
    assert copies(instance)[0] == "2026-01-02"


def test_two_histories_keep_the_lower_value_and_say_both(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Whichever it is: the stored one, or the copy."""
    bench = Workbench(shop, instance)
    bench.materialize(EVENTS)
    content = state_file(shop).read_text()
    for day, kept in (("01", "2026-01-01"), ("09", "2026-01-02")):
        foreign = json.loads(content)
        foreign["watermarks"]["erp.events"].update(
            value=f"2026-01-{day}T00:00:00.000000", runId="20200101T000000000Z-beef"
        )
        state_file(shop).write_text(json.dumps(foreign))
        done = reconcile(instance, bench.project, names=[NAME])
        assert position(shop) == kept
        (problem,) = done.problems
        assert problem.code == "PZ0706"
        assert "2026-01-" + day in problem.message
        assert "2026-01-02" in problem.message
        assert not reconcile(instance, bench.project).problems
        instance.wipe_assets([KEY])
        state_file(shop).write_text(content)
        reconcile(instance, bench.project)


def test_a_wiped_copy_is_made_again(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Also the one that a full event log lost: the next run copies what is instance."""
    bench = Workbench(shop, instance)
    bench.materialize(EVENTS)
    instance.wipe_assets([KEY])
    assert copies(instance) == []
    assert rows_of(bench.materialize(EVENTS)) == 0
    assert copies(instance) == ["2026-01-02"]


def test_one_observation_holds_what_one_run_stored(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """In the documented form, outside of every Dagster run, and linked to one."""
    result = Workbench(shop, instance).materialize()
    (event,) = instance.fetch_observations(KEY, limit=10).records
    observation = event.asset_observation
    assert observation is not None
    assert event.run_id == ""
    document = observation.metadata["pz/state"].value
    assert set(document) == {NAME}
    assert set(document[NAME]) == {"fp", "prev", "entry", "by", "at"}
    assert set(document[NAME]["entry"]) == {"cursor", "type", "value", "runId"}
    assert document[NAME]["by"] == document[NAME]["entry"]["runId"]
    assert document[NAME]["prev"] == ""
    assert observation.metadata["pz/run"].value == result.run_id
    assert not [entry for entry in instance.all_logs(result.run_id) if "pz/state" in str(entry)]


def test_reading_goes_on_for_as_long_as_it_may_matter(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A backup that is 120 copies old is still recognised as one, and what is no copy is passed over."""
    bench = Workbench(shop, instance)
    bench.materialize(EVENTS)
    backup = state_file(shop).read_text()
    for each in range(120):
        newer = json.loads(backup)
        newer["watermarks"]["erp.events"]["runId"] = f"2999{each:04}T000000000Z-beef"
        state_file(shop).write_text(json.dumps(newer))
        reconcile(instance, bench.project)
    for nonsense in ({}, {"pz/state": 5}, {"pz/state": {NAME: 5}}, {"pz/state": {NAME: {"fp": 1, "entry": []}}}):
        instance.report_runless_asset_event(dg.AssetObservation(KEY, metadata=nonsense))
    assert len(read_copy(instance, bench.project)[NAME]) == 121
    state_file(shop).write_text(backup)
    (problem,) = reconcile(instance, bench.project, names=[NAME]).problems
    assert "is older than the copy" in problem.message


def test_off_keeps_every_position_out_of_the_instance(shop: ProjectFactory, tmp_path: Path) -> None:
    """No copy, no metadata, no note; the whole home of the instance is searched."""
    text = (shop.directory / "connections.yml").read_text()
    window = "cursor: seen_at, initial: 2026-01-01, max_window: 4d, until: 2026-01-02 }"
    shop.write("connections.yml", text.replace("cursor: seen_at }", window))
    with storage("sqlite", tmp_path / "home") as instance:
        bench = Workbench(shop, instance, resource=PzResource(state_copy="off"))
        first = metadata_of(bench.materialize(EVENTS), "shop", "src_erp__events")
        assert not {"pz/watermark_from", "pz/watermark_to", "pz/window"} & set(first)
        result = bench.materialize(EVENTS)
        assert "is caught up" in str([entry.user_message for entry in instance.all_logs(result.run_id)])
        assert not instance.fetch_observations(KEY, limit=1).records
        assert not {"pz/watermark_from", "pz/watermark_to"} & set(metadata_of(result, "shop", "src_erp__events"))
    found = [path for path in (tmp_path / "home").rglob("*") if path.is_file() and b"2026-01-0" in path.read_bytes()]
    assert position(shop) == "2026-01-02"
    assert not found


def test_a_copy_that_cannot_be_read_or_written_is_a_note(
    shop: ProjectFactory, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on with the project's own state."""

    fetch = instance.fetch_observations

    def fail(*arguments: object, **options: object) -> Any:
        if arguments[0] != KEY and not isinstance(arguments[0], dg.AssetObservation):
            return fetch(*arguments, **options)  # type: ignore[arg-type]
        raise OSError("the storage is away")

    monkeypatch.setattr(instance, "fetch_observations", fail)
    monkeypatch.setattr(instance, "report_runless_asset_event", fail)
    result = Workbench(shop, instance).materialize(EVENTS)
    found = [text for text in warnings_of(instance, result) if "PZ0705" in text]
    assert ["read" in found[0], "written" in found[1], len(found)] == [True, True, 2]
    assert rows_of(result) == 2


def test_two_projects_and_two_prefixes_have_copies_of_their_own() -> None:
    """Keys are made of the project's name and the prefix of its assets."""
    keys = {state_key("shop"), state_key("shop", ("eu",)), state_key("shop-2")}
    assert {key.to_user_string() for key in keys} == {"shop/pz_state", "eu/shop/pz_state", "shop_2/pz_state"}


def test_the_copy_wakes_no_automation_and_nothing_runs_it(bench: Workbench) -> None:
    """It has no condition, no dependency and nothing to execute."""
    graph = bench.definitions.resolve_asset_graph()
    node = graph.get(KEY)
    assert (node.is_executable, node.automation_condition, set(node.child_keys)) == (False, None, set())
    assert PzProject(bench.factory.directory).snapshot.project_name == "shop"
