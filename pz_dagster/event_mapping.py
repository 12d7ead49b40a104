"""Run events to Dagster results and log lines; the only place that knows both vocabularies.

Nothing here is lost: every event is also in the run's journal and, as NDJSON, in the step's compute log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import dagster as dg

from pz_dagster.checks import check_result
from pz_dagster.discretion import CHECK_FAILED, Discretion
from pz_dagster.event_budget import EventBudget
from pz_dagster.findings import finding
from pz_dagster.lineage import column_lineage_metadata
from pz_dagster.metadata import data_version, result_metadata
from pz_dagster.selection import OpSelection
from pz_dagster.settings import PzTranslatorSettings
from pz_dagster.snapshot import Snapshot
from pz_dagster.visibility import hidden_pipelines
from pz_dagster.watch import Watch
from pz_engine import (
    AmbiguousDateInferenceDetected,
    BreakerStateChanged,
    CheckNode,
    ConnectorLog,
    LossyIntegerInferenceDetected,
    MergeKeyDuplicatesDetected,
    NodeCompleted,
    NodeKind,
    NodeProgress,
    NodeResult,
    NodeStarted,
    NodeStatus,
    RetentionSwept,
    RetryScheduled,
    RunCompleted,
    RunEvent,
    RunStarted,
    SourceDriftDetected,
    event_lines,
)

DagsterResult = dg.MaterializeResult[Any] | dg.AssetCheckResult | dg.AssetObservation
"""What an op may yield."""

Results = Iterator[tuple[str, DagsterResult]]
"""Results, each with the name of its node; an empty name belongs to no place in the order."""

_LEVELS = {"trace": "debug", "debug": "debug", "info": "info", "error": "error", "critical": "critical"}
_WARNING_NOTES = ("PZ0520", "PZ0527")
"""Codes of notes that say a state was not advanced."""

_STARTS_OF_A_LINE = 20
_PROGRESS_SECONDS = 1.0
"""Shortest time between two progress lines of any nodes."""


@dataclass
class EventMapper:
    """Maps the events of one run for one op."""

    snapshot: Snapshot
    selection: OpSelection
    settings: PzTranslatorSettings
    severity_of: Callable[[CheckNode, bool], dg.AssetCheckSeverity]
    """Severity of a failing check, given whether Dagster blocks on it."""

    discretion: Discretion
    budget: EventBudget
    progress_seconds: float = 30.0
    is_partitioned: bool = False
    """The run reads slices: its relations are no whole tables."""

    passes: int | None = None
    """Which run of an op this is that goes on until everything is caught up."""

    shows_positions: bool = True
    """Show the values of watermarks."""

    failed: list[NodeResult] = field(default_factory=list)
    """Nodes that failed, checks that could not be evaluated included."""

    failed_checks: list[NodeResult] = field(default_factory=list)
    """Checks that found violations."""

    skipped: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    completed: dict[str, NodeResult] = field(default_factory=dict)
    """Results by node name."""

    unselected: int = 0
    breaker_opened: int = 0
    """How often a connection's circuit breaker opened."""

    changed: list[str] = field(default_factory=list)
    """Nodes that do something else now than when definitions were loaded."""

    watch: Watch = field(default_factory=Watch)
    """What built-in checks will report."""

    yielded: frozenset[str] = frozenset()
    """Nodes whose success Dagster has already."""

    _starting: list[str] = field(default_factory=list)
    """Nodes whose start is not logged yet."""

    _names: dict[str, str] = field(default_factory=dict)
    _progress_at: dict[str, float] = field(default_factory=dict)
    _any_progress_at: float = float("-inf")

    def __post_init__(self) -> None:
        self._hidden = hidden_pipelines(self.snapshot.compiled.graph, self.settings)

    def map(self, event: RunEvent) -> Results:
        """Log one event and yield its results."""
        handler = HANDLERS.get(type(event))
        if handler is not None:
            yield from handler(self, event)
        elif event.name != "node_queued":
            self._write("debug", f"pz event {event.name}")

    def note(self, text: str) -> None:
        """Log what the engine says beside its events."""
        level = "warning" if any(code in text for code in _WARNING_NOTES) else "info"
        self._write(level, f"note: {text}")

    def pause(self) -> None:
        """Log what has started since the last line; several starts share one, because a line costs as much as an event."""
        if self._starting:
            names, self._starting = self._starting, []
            self.budget.write("debug", f"start {', '.join(names)}")

    def carried(self, name: str, result: NodeResult, run_id: str) -> Iterator[DagsterResult]:
        """Yield the success of a selected node in an earlier run, without its numbers: nothing was moved again."""
        if name in self.yielded:
            return
        result = replace(result, provenance="carried_forward", duration_ms=0, timings=None, delivery=None)
        if name in self.selection.checks:
            for _, found in self._check(result):
                yield found
        elif (key := self.selection.key_of(name)) is not None:
            metadata = result_metadata(
                result, self.snapshot, run_id, is_held=False, shows_positions=self.shows_positions
            )
            version = data_version(result) if self.settings.data_versions else None
            yield dg.MaterializeResult(asset_key=key, metadata=metadata, data_version=version)
        for _, found in self._builtin_checks(result):
            yield found

    def _run_started(self, event: RunStarted) -> Results:
        by_name = self.snapshot.compiled.graph.by_name
        for node in event.nodes:
            self._names[node.node_id] = node.name
            known = by_name.get(node.name)
            if known is not None and known.id != node.node_id:
                self.changed.append(node.name)
        extra = len({node.name for node in event.nodes} - self.selection.names - self._hidden)
        more = f", {extra} of them ancestors that were not selected" if extra else ""
        self._write("info", f"pz run {event.run_id} started: {event.node_count} nodes{more}")
        yield from ()

    def _node_started(self, event: NodeStarted) -> Results:
        self._starting.append(event.node_name)
        if len(self._starting) == _STARTS_OF_A_LINE:
            self.pause()
        yield from ()

    def _node_progress(self, event: NodeProgress) -> Results:
        """Log at most one line per node and interval, and one per second in all."""
        self.pause()
        moment = event.at.timestamp()
        last = self._progress_at.get(event.node_id, float("-inf"))
        if moment - last >= self.progress_seconds and moment - self._any_progress_at >= _PROGRESS_SECONDS:
            self._progress_at[event.node_id] = self._any_progress_at = moment
            self._say("info", event)
        yield from ()

    def _retry_scheduled(self, event: RetryScheduled) -> Results:
        self._say("warning", event)
        yield from ()

    def _seen_in_data(self, event: RunEvent) -> Results:
        """Warn about what was seen in the data; keep it for its check, else leave an observation on the asset."""
        record = event.to_json()
        seen = finding(record)
        if seen is None:
            return
        switch, found = seen
        name = self._names.get(record["nodeId"], record["nodeId"])
        self._say("warning", event)
        if (switch, name) in self.selection.builtin:
            self.watch.see((switch, name), found)
            return
        key = self.selection.key_of(name)
        if key is not None and self.budget.take():
            metadata = {f"pz/{key}": value for key, value in {"event": event.name, **found}.items()}
            yield "", dg.AssetObservation(asset_key=key, metadata=metadata)

    def _breaker_state_changed(self, event: BreakerStateChanged) -> Results:
        is_open = event.new_state == "open"
        self.breaker_opened += is_open
        self._say("warning" if is_open else "info", event)
        yield from ()

    def _run_completed(self, event: RunCompleted) -> Results:
        counts = f"{event.succeeded} succeeded, {event.failed} failed, {event.skipped} skipped"
        self._write("info", f"pz run {event.run_id} ended {event.status.value}: {counts} in {event.duration_ms}ms")
        yield from ()

    def _retention_swept(self, event: RetentionSwept) -> Results:
        self._say("warning" if event.failures else "debug", event)
        yield from ()

    def _connector_log(self, event: ConnectorLog) -> Results:
        message = self.discretion.text(event.message)
        self._write(_LEVELS.get(event.level, "warning"), f"{event.connection}: {message}")
        yield from ()

    def _node_completed(self, event: NodeCompleted) -> Results:
        result = event.result
        self.completed[result.name] = result
        if result.status is NodeStatus.SKIPPED:
            self.skipped.append((result.name, event.blocked_by))
            blocked = ", ".join(event.blocked_by) or "the run being stopped"
            self._write("warning", f"skip {result.name}, blocked by {blocked}")
            return
        if result.status is NodeStatus.FAILED:
            is_violation = result.error is not None and result.error.code == CHECK_FAILED
            (self.failed_checks if is_violation else self.failed).append(result)
            self._say("error", event)
        if result.kind is NodeKind.CHECK:
            yield from self._check(result)
        elif result.status is NodeStatus.SUCCESS:
            yield from self._materialized(event)
        yield from self._builtin_checks(result)

    def _builtin_checks(self, result: NodeResult) -> Results:
        """Tell what the engine saw, or what an earlier run saw whose rows are taken."""
        known = self.snapshot.compiled.graph.by_name.get(result.name)
        is_as_loaded = known is not None and known.id == result.id
        for subject, key in self.selection.builtin.items():
            name = subject[1]
            if name != result.name or name in self.yielded:  # what is found later in one of those, `rest` tells
                continue
            built = self.watch.conclude(subject, key, result, is_as_loaded=is_as_loaded)
            if built is not None:
                yield name, built
            elif result.provenance is not None:
                self._write("warning", f"{key.name} of {name} has no result: nothing is known of what was seen then")

    def _materialized(self, event: NodeCompleted) -> Results:
        result = event.result
        key = self.selection.key_of(result.name)
        if key is None and result.name in self._hidden:
            self._say("debug", event)
            return
        if key is None and result.provenance == "carried_forward":
            self._say("info", event, " (committed by an earlier run)")
            return
        if key is None:
            self.unselected += 1
            self._say("info", event, " (not selected, ran as an ancestor)")
            return
        if result.name in self.yielded:
            return
        metadata = result_metadata(
            result,
            self.snapshot,
            event.run_id,
            is_held=result.name in self.selection.held_loads,
            shows_positions=self.shows_positions,
        )
        if self.is_partitioned:
            metadata.pop("dagster/row_count", None)
        if self.passes is not None and result.kind is NodeKind.SOURCE_LOAD:
            metadata["pz/passes"] = self.passes
        if self.settings.column_lineage:
            metadata.update(column_lineage_metadata(result.name, self.snapshot, self.selection.keys, self._hidden))
        version = data_version(result) if self.settings.data_versions else None
        yield result.name, dg.MaterializeResult(asset_key=key, metadata=metadata, data_version=version)

    def _check(self, result: NodeResult) -> Results:
        found = self.selection.checks.get(result.name)
        if found is not None and not (result.name in self.yielded and result.status is NodeStatus.SUCCESS):
            node, key, is_blocking = found
            severity = self.severity_of(node, is_blocking)
            yield result.name, check_result(result, key, severity, self.discretion)

    def _say(self, level: str, event: RunEvent, ending: str = "") -> None:
        """Log an event in the words of the text renderer."""
        lines = event_lines(self.discretion.event(event), 2)
        if lines:
            self._write(level, " ".join(line.strip() for line in lines) + ending)

    def _write(self, level: str, text: str) -> None:
        self.pause()
        self.budget.write(level, text)


HANDLERS: Mapping[type[RunEvent], Callable[[EventMapper, Any], Results]] = {
    RunStarted: EventMapper._run_started,
    NodeStarted: EventMapper._node_started,
    NodeProgress: EventMapper._node_progress,
    RetryScheduled: EventMapper._retry_scheduled,
    MergeKeyDuplicatesDetected: EventMapper._seen_in_data,
    LossyIntegerInferenceDetected: EventMapper._seen_in_data,
    AmbiguousDateInferenceDetected: EventMapper._seen_in_data,
    SourceDriftDetected: EventMapper._seen_in_data,
    BreakerStateChanged: EventMapper._breaker_state_changed,
    RunCompleted: EventMapper._run_completed,
    RetentionSwept: EventMapper._retention_swept,
    ConnectorLog: EventMapper._connector_log,
    NodeCompleted: EventMapper._node_completed,
}
"""One handler for every event of the wire contract."""
