"""Each run event becomes what the chapter says, and no event is forgotten."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, PzResource, PzTranslatorSettings, pz_assets
from pz_dagster.discretion import Discretion
from pz_dagster.event_budget import EventBudget
from pz_dagster.event_mapping import HANDLERS, EventMapper
from pz_dagster.failures import run_error
from pz_dagster.ordering import ResultBuffer
from pz_dagster.selection import OpSelection
from pz_dagster.snapshot import Snapshot
from pz_engine import CheckNode, NodeKind, NodeResult, NodeStatus, RunOutcome, RunStatus
from pz_engine.events import types
from pz_engine.model.run import (
    ChannelTimings,
    DeliveryReport,
    NodeError,
    NodeStats,
    OperationCounts,
    PartitionCounts,
)
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.test_running import stalled

START = datetime(2026, 11, 4, 6, 15, tzinfo=timezone.utc)
RUN = "20261104T061500250Z-1b3c"


class Log:
    """Collects what would be logged."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def __getattr__(self, level: str) -> Any:
        return lambda text: self.lines.append((level, text))


@pytest.fixture
def snapshot(shop: ProjectFactory) -> Snapshot:
    return PzProject(shop.directory).snapshot


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def mapper(snapshot: Snapshot, log: Log) -> EventMapper:
    """Everything but the load of events is selected."""
    nodes = snapshot.compiled.nodes
    assets = {n.name: dg.AssetKey([n.name]) for n in nodes if not isinstance(n, CheckNode)}
    del assets["src_erp__events"]
    checks = {
        n.name: (n, dg.AssetCheckKey(dg.AssetKey([n.pipeline]), n.name), True)
        for n in nodes
        if isinstance(n, CheckNode)
    }
    return EventMapper(
        snapshot,
        OpSelection(assets, checks),
        PzTranslatorSettings(),
        lambda node, is_blocking: dg.AssetCheckSeverity.ERROR,
        Discretion(Path("/srv/shop")),
        EventBudget(log),
    )


def event(type_: type[types.RunEvent], seconds: float = 0, **fields: Any) -> types.RunEvent:
    return type_(at=START + timedelta(seconds=seconds), run_id=RUN, **fields)


def completed(snapshot: Snapshot, name: str, **fields: Any) -> types.RunEvent:
    node = snapshot.compiled.graph.by_name[name]
    blocked = fields.pop("blocked_by", ())
    defaults: dict[str, Any] = {"status": NodeStatus.SUCCESS, "rows": 3, "duration_ms": 7}
    result = NodeResult(id=node.id, kind=node.kind, name=name, **{**defaults, **fields})
    return event(types.NodeCompleted, result=result, blocked_by=blocked)


def begin(mapper: EventMapper, **ids: str) -> None:
    nodes = tuple(
        types.NodeReference(ids.get(node.name, node.id), node.kind, node.name)
        for node in mapper.snapshot.compiled.nodes
    )
    list(mapper.map(event(types.RunStarted, project_name="shop", node_count=len(nodes), nodes=nodes)))


def test_every_event_of_the_contract_has_a_handler() -> None:
    """A new event class fails here until somebody decides what Dagster shows of it."""
    assert set(HANDLERS) == set(types.EVENT_TYPES)


def test_a_run_starts_with_counts_and_names_what_changed(mapper: EventMapper, log: Log) -> None:
    """Run id, size of the effective set, ancestors that were not selected; changed nodes are kept for the end."""
    begin(mapper, orders_clean="another-id")
    assert log.lines == [("info", f"pz run {RUN} started: 8 nodes, 1 of them ancestors that were not selected")]
    assert mapper.changed == ["orders_clean"]


def test_starts_are_debug_lines(mapper: EventMapper, log: Log) -> None:
    """No event per start, and one line for all since the last one: before whatever is said next, or in a pause."""

    def start(name: str) -> None:
        kind = NodeKind.PIPELINE
        assert list(mapper.map(event(types.NodeStarted, node_id=name, kind=kind, node_name=name))) == []

    start("a")
    start("b")
    assert log.lines == []
    mapper.pause()
    mapper.pause()
    start("c")
    mapper.note("PZ0520: somebody else moved it")
    for number in range(20):
        start(str(number))
    lines = [("debug", "start a, b"), ("debug", "start c"), ("warning", "note: PZ0520: somebody else moved it")]
    assert log.lines[:3] == lines
    assert log.lines[3:] == [("debug", f"start {', '.join(map(str, range(20)))}")]


def test_a_start_is_logged_while_the_node_runs(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A long statement without any event does not keep its own start from the log."""
    seen: list[str] = []

    @pz_assets(project=PzProject(shop.directory), select="+mart.events")
    def slow(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        invocation = pz.run(context=context)
        mapped = EventMapper.pause

        def pause(mapper: EventMapper) -> None:
            mapped(mapper)
            seen.extend(e.user_message for e in instance.all_logs(context.run.run_id) if e.user_message)
            if any("events_merged" in text for text in seen if text.startswith("start ")):
                invocation.cancel()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(EventMapper, "pause", pause)
            yield from invocation.stream()

    stalled(shop)
    result = dg.materialize([slow], instance=instance, resources={"pz": PzResource()}, raise_on_error=False)
    assert not result.success  # cancelled once the line was there


def test_progress_is_rare(mapper: EventMapper, log: Log) -> None:
    """One line per node and interval, one per second in all, never an event."""
    for second, node in ((0, "a"), (0.5, "b"), (5, "a"), (6, "b"), (31, "a"), (31.5, "b"), (40, "b")):
        fields = {"node_id": node, "node_name": node, "rows": 10, "bytes": 1, "batches": 1}
        assert list(mapper.map(event(types.NodeProgress, second, **fields))) == []
    assert [text for _, text in log.lines] == [f"progress {node} 10 rows" for node in ("a", "b", "a", "b")]


def test_a_retry_is_a_warning_without_values(mapper: EventMapper, log: Log) -> None:
    """The reason is summarised."""
    fields = {"node_id": "1", "node_name": "src_erp__orders", "attempt": 2, "max_attempts": 3, "delay_ms": 5}
    list(mapper.map(event(types.RetryScheduled, **fields, reason="IO Error: cannot open 'secret.csv'")))
    assert log.lines == [
        ("warning", "retry: src_erp__orders attempt 2/3 in 5ms (IO Error: cannot open [value removed])")
    ]


@pytest.mark.parametrize(
    ("kind", "name", "fields", "metadata"),
    [
        (
            types.MergeKeyDuplicatesDetected,
            "mart.events",
            {"output": "events", "keys": ("id", "day"), "duplicate_groups": 3, "extra_rows": 5},
            {"pz/keys": "id, day", "pz/duplicate_groups": 3, "pz/extra_rows": 5},
        ),
        (
            types.LossyIntegerInferenceDetected,
            "src_erp__orders",
            {"connection": "erp", "entity": "orders", "columns": ("id", "ref")},
            {"pz/columns": "id, ref"},
        ),
        (
            types.AmbiguousDateInferenceDetected,
            "src_erp__orders",
            {"connection": "erp", "entity": "orders", "columns": ("sold",), "format": "%d/%m/%Y"},
            {"pz/columns": "sold", "pz/format": "%d/%m/%Y"},
        ),
    ],
)
def test_what_was_seen_in_the_data_is_an_observation_and_a_warning(
    mapper: EventMapper,
    log: Log,
    kind: type[types.RunEvent],
    name: str,
    fields: dict[str, Any],
    metadata: dict[str, Any],
) -> None:
    """The observation is on the node's asset even when the node's id is newer than the definitions."""
    begin(mapper, **{name: "newer-id"})
    ((place, found),) = mapper.map(event(kind, node_id="newer-id", **fields))
    assert isinstance(found, dg.AssetObservation)
    assert (place, list(found.asset_key.path)) == ("", [name])
    assert {key: value.value for key, value in found.metadata.items()} == {"pz/event": kind.name, **metadata}
    level, text = log.lines[-1]
    assert level == "warning"
    assert "PZ05" in text


def test_what_was_seen_in_an_unselected_ancestor_is_a_warning_only(mapper: EventMapper, log: Log) -> None:
    """Its asset was not asked for."""
    begin(mapper)
    node_id = mapper.snapshot.compiled.graph.by_name["src_erp__events"].id
    fields = {"node_id": node_id, "connection": "erp", "entity": "events", "columns": ("id",)}
    assert list(mapper.map(event(types.LossyIntegerInferenceDetected, **fields))) == []
    assert log.lines[-1][0] == "warning"


def test_a_success_is_a_materialization(mapper: EventMapper, log: Log) -> None:
    """Selected nodes are materialized, zero rows included; unselected ones are one line and a count."""
    ((name, found),) = mapper.map(completed(mapper.snapshot, "orders_clean", rows=0))
    assert isinstance(found, dg.MaterializeResult)
    assert (name, found.metadata["pz/rows"]) == ("orders_clean", 0)  # type: ignore[index]
    assert list(mapper.map(completed(mapper.snapshot, "src_erp__events"))) == []
    assert mapper.unselected == 1
    assert log.lines[-1] == ("info", "ok src_erp__events 3 rows 7ms (not selected, ran as an ancestor)")


def test_what_was_measured_is_shown_and_nothing_else(mapper: EventMapper) -> None:
    """Operations, extract partitions, stalls, delivery, the window; keys of numbers that nobody measured are missing."""
    whole = completed(
        mapper.snapshot,
        "src_erp__orders",
        ops=OperationCounts(5, 2, 30),
        partitions=PartitionCounts(4, 3, 1, 0),
        timings=ChannelTimings(900, 1),
        delivery=DeliveryReport("discard", 0, 7),
        rejected=1,
        caught_up=False,
        stats=NodeStats(window=("2026-01-01", "2026-01-02"), attempts=2),
    )
    ((_, found),) = mapper.map(whole)
    shown = {
        key: value.value if isinstance(value, dg.MetadataValue) else value for key, value in found.metadata.items()
    }  # type: ignore[union-attr]
    assert shown["pz/ops"] == {"executed": 5, "retried": 2, "throttle_wait_ms": 30}
    assert shown["pz/extract_partitions"] == {"total": 4, "completed": 3, "reused": 1, "resumed": 0}
    assert shown["pz/stall_ms"] == {"producer": 900, "consumer": 1}
    assert shown["pz/delivery"] == {"abort_semantics": "discard", "rows_visible": 0, "resumed_rows": 7}
    assert shown["pz/window"] == {"after": "2026-01-01", "to": "2026-01-02"}
    assert (shown["pz/rejected"], shown["pz/caught_up"], shown["pz/attempts"]) == (1, False, 2)
    ((_, bare),) = mapper.map(completed(mapper.snapshot, "orders_clean", rows=None))
    assert set(bare.metadata) == {"pz/run_id", "pz/duration_ms", "pz/results", "pz/journal"}  # type: ignore[union-attr,arg-type]


def test_breakers_warn_when_they_open_and_are_counted(mapper: EventMapper, log: Log) -> None:
    """A failing run says how often in its metadata."""
    for old, new in (("closed", "open"), ("open", "half_open"), ("half_open", "open")):
        fields = {"instance": "conn:erp", "old_state": old, "new_state": new, "trigger": "failures", "cool_down_ms": 9}
        assert list(mapper.map(event(types.BreakerStateChanged, **fields))) == []
    assert [level for level, _ in log.lines] == ["warning", "info", "warning"]
    error = NodeError("PZ0506", "unavailable")
    list(mapper.map(completed(mapper.snapshot, "lake.orders", status=NodeStatus.FAILED, error=error)))
    outcome = RunOutcome(RUN, RunStatus.COMPLETED_WITH_FAILURES, 1, ())
    failure = run_error(outcome, mapper, mapper.discretion, gating=frozenset())
    assert failure is not None
    assert failure.metadata["pz/breaker_opened"].value == 2


def test_a_failure_is_an_error_line(mapper: EventMapper, log: Log) -> None:
    """Name, code and summary; no event of its own."""
    error = NodeError("PZ0501", "IO Error: cannot write '/srv/shop/x' or /mnt/disk/y.csv now")
    failed = completed(mapper.snapshot, "lake.orders", status=NodeStatus.FAILED, rows=0, error=error)
    assert list(mapper.map(failed)) == []
    ((level, text),) = log.lines
    assert level == "error"
    assert text == ("FAIL lake.orders 0 rows 7ms PZ0501: IO Error: cannot write [value removed] or …/y.csv now")
    assert [result.name for result in mapper.failed] == ["lake.orders"]


def test_a_skip_names_what_blocks(mapper: EventMapper, log: Log) -> None:
    """Nothing is yielded, so the asset stays as it was."""
    skipped = completed(
        mapper.snapshot, "lake.orders", status=NodeStatus.SKIPPED, rows=0, duration_ms=0, blocked_by=("orders_clean",)
    )
    assert list(mapper.map(skipped)) == []
    assert log.lines == [("warning", "skip lake.orders, blocked by orders_clean")]


def test_checks_that_were_not_selected_are_never_yielded(mapper: EventMapper) -> None:
    """Dagster may fail a step over one."""
    mapper.selection = OpSelection({}, {})
    assert list(mapper.map(completed(mapper.snapshot, "check_orders_clean_row_count", rows=0))) == []


@pytest.mark.parametrize(
    ("level", "logged"),
    [("trace", "debug"), ("info", "info"), ("warn", "warning"), ("critical", "critical"), ("loud", "warning")],
)
def test_connectors_speak_at_their_level(mapper: EventMapper, log: Log, level: str, logged: str) -> None:
    """An unknown level is a warning; values are removed."""
    list(mapper.map(event(types.ConnectorLog, level=level, connection="erp", message="pinned to 'server-7'")))
    assert log.lines == [(logged, "erp: pinned to [value removed]")]


def test_the_end_of_a_run_and_of_a_sweep(mapper: EventMapper, log: Log) -> None:
    """Counts at info; a sweep is debug unless something could not be deleted."""
    counts = {"succeeded": 2, "failed": 1, "skipped": 0, "duration_ms": 9}
    list(mapper.map(event(types.RunCompleted, status=RunStatus.COMPLETED_WITH_FAILURES, **counts)))
    list(mapper.map(event(types.RetentionSwept, runs_swept=1, bytes_freed=10, failures=0)))
    list(mapper.map(event(types.RetentionSwept, runs_swept=0, bytes_freed=0, failures=2)))
    assert [level for level, _ in log.lines] == ["info", "debug", "warning"]
    assert "2 succeeded, 1 failed, 0 skipped" in log.lines[0][1]


def test_an_unknown_event_is_a_debug_line(mapper: EventMapper, log: Log) -> None:
    """The contract only grows; what the journal alone knows is not even that."""

    class Novelty(types.RunEvent):
        name = "novelty"

    assert list(mapper.map(event(Novelty))) == []
    list(mapper.map(event(types.NodeQueued, node_id="1")))
    assert log.lines == [("debug", "pz event novelty")]


def test_a_flood_of_events_is_cut_and_counted(mapper: EventMapper, log: Log) -> None:
    """Past the budget the rest is in the journal only; errors always pass."""
    mapper.budget = EventBudget(log, limit=2)
    for number in range(5):
        mapper.budget.write("info", str(number))
    mapper.budget.write("error", "bad")
    mapper.budget.close()
    assert [text for _, text in log.lines] == ["0", "1", "bad", "3 more event(s) are only in the run's journal"]


def test_results_wait_for_their_selected_ancestors(mapper: EventMapper, snapshot: Snapshot) -> None:
    """Whatever order the engine reports a group in, Dagster gets parents first and checks after their asset."""
    buffer = ResultBuffer(snapshot.compiled.graph, mapper.selection)
    seen: list[str] = []
    for name in ("lake.orders", "check_orders_clean_row_count", "orders_clean", "src_erp__orders"):
        for node, found in mapper.map(completed(snapshot, name)):
            assert list(buffer.add(node, found)) == []
        for found in buffer.settle(mapper.completed):
            key = found.asset_key
            assert key is not None
            seen.append(found.check_name if isinstance(found, dg.AssetCheckResult) else key.path[0])  # type: ignore[arg-type]
    assert seen[:2] == ["src_erp__orders", "orders_clean"]
    assert set(seen[2:]) == {"lake.orders", "check_orders_clean_row_count"}


def test_a_failed_ancestor_releases_what_is_below(mapper: EventMapper, snapshot: Snapshot) -> None:
    """A node can also be reported when its ancestor never will be."""
    buffer = ResultBuffer(snapshot.compiled.graph, mapper.selection)
    for node, found in mapper.map(completed(snapshot, "check_orders_clean_row_count")):
        list(buffer.add(node, found))
    mapper.completed.update({"src_erp__orders": replace_result(snapshot, "src_erp__orders")})
    assert list(buffer.settle(mapper.completed)) == []
    mapper.completed.update({"orders_clean": replace_result(snapshot, "orders_clean")})
    assert len(list(buffer.settle(mapper.completed))) == 1
    assert list(buffer.flush()) == []


def replace_result(snapshot: Snapshot, name: str) -> NodeResult:
    found = completed(snapshot, name, status=NodeStatus.FAILED, error=NodeError("PZ0501", "x"))
    assert isinstance(found, types.NodeCompleted)
    return replace(found.result, stats=NodeStats(is_transient=True))
