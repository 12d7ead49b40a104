"""Copies beside unusual histories: other instances, rolled back positions, copies that are none."""

from __future__ import annotations

import json
import shutil
from typing import Any

import dagster as dg
import pytest

from pz_dagster.state_records import now, state_key
from pz_dagster.state_restore import read_copy, reconcile
from pz_engine import entry_fingerprint, list_runs
from pz_engine.app.state_edits import EditRequest, apply_edit, plan_edit
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_state_copy import EVENTS, KEY, NAME, arrive, copies, position, rows_of, state_file, warnings_of


def test_two_instances_over_one_project(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Each has copies of its own and none moves the position back; the one that knows less reads more, never less."""
    with dg.DagsterInstance.ephemeral() as other:
        first, second = Workbench(shop, instance), Workbench(shop, other)
        first.materialize(EVENTS)
        for number, bench in ((3, second), (4, first), (5, second)):
            arrive(shop, number)
            result = bench.materialize(EVENTS)
            assert rows_of(result) == 1
            assert not [text for text in warnings_of(bench.instance, result) if "PZ07" in text]
        assert (copies(instance)[0], copies(other)[0]) == ("2026-01-04", "2026-01-05")
        shutil.rmtree(shop.directory / ".pz")
        assert rows_of(first.materialize(EVENTS)) == 1
        result = second.materialize(EVENTS)
        assert rows_of(result) == 0
        assert not [text for text in warnings_of(other, result) if "PZ07" in text]
    with dg.DagsterInstance.ephemeral() as fresh:
        assert rows_of(Workbench(shop, fresh).materialize(EVENTS)) == 0
        assert copies(fresh) == ["2026-01-05"]


def test_a_rolled_back_position_stays_back(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Its value is that of an older copy, and still it is no old disk; the same when the log of changes has a fast clock."""
    bench = Workbench(shop, instance)
    bench.materialize(EVENTS)
    (run,) = list_runs(shop.directory)
    arrive(shop, 3)
    bench.materialize(EVENTS)
    apply_edit(plan_edit(shop.directory, EditRequest("rollback", "erp.events", to_run=run.run_id)))
    assert position(shop) == "2026-01-02"
    result = bench.materialize(EVENTS)
    assert rows_of(result) == 1
    assert not [text for text in warnings_of(instance, result) if "PZ07" in text]
    assert position(shop) == copies(instance)[0] == "2026-01-03"


VALID = {
    "cursor": "seen_at",
    "type": "timestamp",
    "value": "2026-01-09T00:00:00.000000",
    "runId": "20261130T100000000Z-ab12",
}


@pytest.mark.parametrize(
    "entry",
    [
        {"x": "y"},
        {**VALID, "type": "fortnight"},
        {**VALID, "value": "soon"},
        {name: value for name, value in VALID.items() if name != "runId"},
        {},
    ],
)
def test_what_is_no_position_is_never_restored(
    entry: dict[str, str], shop: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """An observation reported by hand, or by a pz that spells entries otherwise, moves no position."""
    report(instance, entry)
    done = reconcile(instance, Workbench(shop, instance).project, names=[NAME])
    assert (done.restored, done.problems, position(shop)) == ((), (), None)


def test_what_is_no_position_fails_no_run(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Before anything is stored, and beside what is."""
    bench = Workbench(shop, instance)
    for rows in (2, 0):
        report(instance, {"x": "y"})
        assert rows_of(bench.materialize(EVENTS)) == rows
    assert stored_entry(shop) in [each.entry for each in read_copy(instance, bench.project)[NAME]]


def test_a_copy_whose_fingerprint_is_another_is_none(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Somebody changed the value in it."""
    report(instance, VALID, fingerprint="0123")
    assert rows_of(Workbench(shop, instance).materialize(EVENTS)) == 2


@pytest.mark.parametrize(("name", "alike"), [("магазин", "погода!"), ("n" * 200, None)])
def test_odd_names_keep_what_is_theirs(
    name: str, alike: str | None, shop: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """Names that Dagster spells alike share one asset, and still one project never takes the other's position."""
    shop.write("project.yml", f'name: "{name}"\nversion: "1"\n')
    selection = dg.AssetSelection.assets(["mart", "events"])
    Workbench(shop, instance).materialize(selection)
    shutil.rmtree(shop.directory / ".pz")
    assert rows_of(Workbench(shop, instance).materialize(selection)) == 0
    if alike is not None:
        assert state_key(alike) == state_key(name)
        shutil.rmtree(shop.directory / ".pz")
        shop.write("project.yml", f'name: "{alike}"\nversion: "1"\n')
        assert rows_of(Workbench(shop, instance).materialize(selection)) == 2


def test_names_that_are_none_are_passed_over(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """What is said by hand about nothing that pz stores does nothing."""
    report(instance, VALID)
    done = reconcile(instance, Workbench(shop, instance).project)
    assert done.restored == (NAME,)


def stored_entry(shop: ProjectFactory) -> dict[str, str]:
    found: dict[str, str] = json.loads(state_file(shop).read_text())["watermarks"]["erp.events"]
    return found


def report(instance: dg.DagsterInstance, entry: dict[str, str], fingerprint: str | None = None) -> None:
    found: dict[str, Any] = {
        "fp": fingerprint or entry_fingerprint(entry),
        "prev": "",
        "entry": entry,
        "by": "x",
        "at": now(),
    }
    metadata = {"pz/state": dg.MetadataValue.json({NAME: found, "nonsense": found, "watermarks/": found})}
    instance.report_runless_asset_event(dg.AssetObservation(KEY, metadata=metadata))
