"""Levels, rates and limits of what an op says in Dagster's event log."""

from __future__ import annotations

import logging
from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, PzResource, build_pz_assets
from pz_dagster.event_budget import EventBudget
from pz_dagster.event_mapping import EventMapper
from pz_dagster.snapshot import Snapshot
from pz_engine import NodeStatus
from pz_engine.events import types
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.test_event_mapping import Log, begin, completed, event, log, mapper, snapshot  # noqa: F401 - fixtures

# ruff: noqa: F811 - fixtures


def progress(mapper: EventMapper, second: float, node: str, rows: int) -> None:
    fields = {"node_id": node, "node_name": node, "rows": rows, "bytes": 1, "batches": 1}
    assert list(mapper.map(event(types.NodeProgress, second, **fields))) == []


def test_two_nodes_share_a_second_of_progress(mapper: EventMapper, log: Log) -> None:
    """A second node waits until a second has passed since the first one's line, whatever its own interval allows."""
    for second, node, rows in ((0, "a", 1), (0.9, "b", 2), (1.0, "b", 3), (1.5, "c", 4), (2.0, "c", 5)):
        progress(mapper, second, node, rows)
    assert [text for _, text in log.lines] == ["progress a 1 rows", "progress b 3 rows", "progress c 5 rows"]


def test_the_resource_says_how_often_a_node_shows_progress(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """`log_progress_seconds` is the interval of the op's own lines."""
    seen: list[float] = []

    def watch(mapper: EventMapper) -> None:
        seen.append(mapper.progress_seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventMapper, "pause", watch)
        assets = build_pz_assets(PzProject(shop.directory), select="+mart.events")
        dg.materialize(assets, instance=instance, resources={"pz": PzResource(log_progress_seconds=7)})
    assert set(seen) == {7.0}


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("PZ0520: somebody else moved it", "warning"),
        ("PZ0527: the value went backwards", "warning"),
        ("2 source load(s) are reused", "info"),
    ],
)
def test_notes_warn_when_a_state_was_not_advanced(text: str, level: str, mapper: EventMapper, log: Log) -> None:
    """Every other note is information."""
    mapper.note(text)
    assert log.lines == [(level, f"note: {text}")]


@pytest.mark.parametrize(("level", "logged"), [("debug", "debug"), ("error", "error")])
def test_connectors_debug_and_fail_at_their_level(level: str, logged: str, mapper: EventMapper, log: Log) -> None:
    """An error of a connector is no mere warning."""
    list(mapper.map(event(types.ConnectorLog, level=level, connection="erp", message="pinned")))
    assert log.lines == [(logged, "erp: pinned")]


def test_what_a_stopped_run_skips_is_blocked_by_nothing_else(mapper: EventMapper, snapshot: Snapshot, log: Log) -> None:
    """A skip without a blocking node says that the run was stopped."""
    list(mapper.map(completed(snapshot, "lake.orders", status=NodeStatus.SKIPPED, rows=0)))
    assert log.lines == [("warning", "skip lake.orders, blocked by the run being stopped")]


def test_observations_count_against_the_budget_and_results_do_not(
    mapper: EventMapper, snapshot: Snapshot, log: Log
) -> None:
    """Past the limit a finding is in the journal only; materializations and checks always pass."""
    begin(mapper)
    mapper.budget = EventBudget(log, limit=3)
    node_id = snapshot.compiled.graph.by_name["src_erp__orders"].id
    fields = {"node_id": node_id, "connection": "erp", "entity": "orders", "columns": ("id",)}
    found: list[Any] = []
    for _ in range(3):
        found += mapper.map(event(types.LossyIntegerInferenceDetected, **fields))
    assert len(found) == 1  # a line and an observation, then a line, then nothing
    assert len(list(mapper.map(completed(snapshot, "orders_clean")))) == 1
    assert len(list(mapper.map(completed(snapshot, "check_orders_clean_row_count")))) == 1
    mapper.budget.close()
    assert log.lines[-1] == ("info", "3 more event(s) are only in the run's journal")


def test_an_op_has_two_thousand_entries(log: Log) -> None:
    """That many lines are written; errors and the count of the rest come on top."""
    budget = EventBudget(log)
    for number in range(2003):
        budget.write("info", str(number))
    budget.write("error", "bad")
    budget.close()
    assert len(log.lines) == 2002
    assert log.lines[-1][1].startswith("3 more event(s)")


def test_the_end_of_an_op_says_what_is_left_out(
    shop: ProjectFactory, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One budget serves the whole op; everything is materialized whatever it leaves out."""
    monkeypatch.setattr(EventBudget.__init__, "__defaults__", (1,))
    assets = build_pz_assets(PzProject(shop.directory), select="+mart.events")
    result = dg.materialize(assets, instance=instance, resources={"pz": PzResource()})
    texts = [entry.user_message for entry in instance.all_logs(result.run_id) if entry.level < logging.ERROR]
    assert len([text for text in texts if "only in the run's journal" in text]) == 1
    assert len(result.get_asset_materialization_events()) == 3
