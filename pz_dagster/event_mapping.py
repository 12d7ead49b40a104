"""Run events to Dagster results and log lines; the only place that knows both vocabularies.

Nothing here is lost: every event is also in the run's journal and, as NDJSON, in the step's compute log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from pz_dagster.metadata import data_version, result_metadata
from pz_dagster.selection import OpSelection
from pz_dagster.settings import PzTranslatorSettings
from pz_dagster.snapshot import Snapshot
from pz_engine import (
    AmbiguousDateInferenceDetected,
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
    event_lines,
)

DagsterResult = dg.MaterializeResult[Any] | dg.AssetCheckResult | dg.AssetObservation
"""What an op may yield."""

_LEVELS = {
    "trace": "debug",
    "debug": "debug",
    "info": "info",
    "warn": "warning",
    "error": "error",
    "critical": "critical",
}


@dataclass
class EventMapper:
    """Maps the events of one run for one op."""

    snapshot: Snapshot
    selection: OpSelection
    settings: PzTranslatorSettings
    severity_of: Callable[[CheckNode], dg.AssetCheckSeverity]
    error_text: Callable[[str], str]
    """Shortens an engine message to what the event log may show."""

    log: Any
    run_id: str = ""
    progress_seconds: float = 30.0
    failed: list[NodeResult] = field(default_factory=list)
    failed_checks: list[NodeResult] = field(default_factory=list)
    skipped: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    completed: dict[str, NodeResult] = field(default_factory=dict)
    """Results by node name."""

    unselected: int = 0
    _progress_at: dict[str, float] = field(default_factory=dict)

    def map(self, event: RunEvent) -> Iterator[tuple[str, DagsterResult]]:
        """Log one event and yield its results, each with the name of its node."""
        match event:
            case NodeCompleted():
                yield from self._node_completed(event)
            case RunStarted():
                extra = event.node_count - len(self.selection.node_ids)
                more = f", {extra} of them unselected ancestors" if extra > 0 else ""
                self.log.info(f"pz run {event.run_id} started: {event.node_count} nodes{more}")
            case NodeStarted():
                self.log.debug(f"started {event.node_name}")
            case NodeProgress():
                self._progress(event)
            case RetryScheduled():
                self.log.warning(
                    f"retry: {event.node_name} attempt {event.attempt}/{event.max_attempts} in {event.delay_ms}ms "
                    f"({self.error_text(event.reason)})"
                )
            case MergeKeyDuplicatesDetected():
                yield from self._warn(
                    event.node_id,
                    event,
                    {"keys": ", ".join(event.keys), "groups": event.duplicate_groups, "extra_rows": event.extra_rows},
                )
            case LossyIntegerInferenceDetected():
                yield from self._warn(event.node_id, event, {"columns": ", ".join(event.columns)})
            case AmbiguousDateInferenceDetected():
                yield from self._warn(
                    event.node_id, event, {"columns": ", ".join(event.columns), "format": event.format}
                )
            case RunCompleted():
                self.log.info(
                    f"pz run {event.run_id} ended {event.status.value}: {event.succeeded} succeeded, {event.failed} failed, "
                    f"{event.skipped} skipped in {event.duration_ms}ms"
                )
            case RetentionSwept():
                level = self.log.warning if event.failures else self.log.debug
                level(
                    f"retention: {event.runs_swept} runs swept, {event.bytes_freed} bytes freed, {event.failures} failures"
                )
            case ConnectorLog():
                getattr(self.log, _LEVELS.get(event.level, "warning"))(f"{event.connection}: {event.message}")
            case _:
                self.log.debug(f"pz event {event.name}")

    def _node_completed(self, event: NodeCompleted) -> Iterator[tuple[str, DagsterResult]]:
        result = event.result
        self.completed[result.name] = result
        if result.kind is NodeKind.CHECK:
            yield from self._check(result)
        elif result.status is NodeStatus.FAILED:
            self.failed.append(result)
            self.log.error(f"FAIL {result.name}: {self._error(result)}")
        if result.status is NodeStatus.SKIPPED:
            self.skipped.append((result.name, event.blocked_by))
            self.log.warning(f"skip {result.name}, blocked by {', '.join(event.blocked_by) or 'the run being stopped'}")
        elif result.status is NodeStatus.SUCCESS and result.kind is not NodeKind.CHECK:
            key = self.selection.key_of(result.name)
            line = event_lines(event)[0]
            if key is None:
                self.unselected += 1
                self.log.info(f"{line} (not selected, ran as an ancestor)")
                return
            self.log.info(line)
            yield (
                result.name,
                dg.MaterializeResult(
                    asset_key=key,
                    metadata=result_metadata(
                        result, self.snapshot, event.run_id, is_held=result.name in self.selection.held_loads
                    ),
                    data_version=data_version(result) if self.settings.data_versions else None,
                ),
            )

    def _check(self, result: NodeResult) -> Iterator[tuple[str, DagsterResult]]:
        found = self.selection.checks.get(result.name)
        if result.status is NodeStatus.SKIPPED:
            return
        is_violation = result.error is not None and result.error.code == "PZ0510"
        if result.status is NodeStatus.FAILED:
            self.failed_checks.append(result) if is_violation else self.failed.append(result)
            self.log.error(f"FAIL {result.name}: {self._error(result)}")
        if found is None:
            return
        node, check_key = found
        metadata: dict[str, Any] = {"pz/duration_ms": result.duration_ms, "pz/run_id": self.run_id}
        description: str | None = None
        severity = dg.AssetCheckSeverity.ERROR
        if result.status is NodeStatus.SUCCESS:
            metadata["pz/violations"] = 0
        elif is_violation and result.error is not None:
            metadata["pz/violations"] = result.rows if result.rows is not None else 0
            metadata["pz/error_code"] = result.error.code
            first, _, sample = result.error.message.partition("\n")
            is_bound = node.check.type.value in ("row_count", "freshness")
            show = self.settings.expose_check_samples or is_bound
            description = f"{first}: {sample}" if show and sample else first
            severity = self.severity_of(node)
        elif result.error is not None:
            metadata["pz/evaluated"] = False
            metadata["pz/error_code"] = result.error.code
            description = self._error(result)
        yield (
            result.name,
            dg.AssetCheckResult(
                asset_key=check_key.asset_key,
                check_name=check_key.name,
                passed=result.status is NodeStatus.SUCCESS,
                severity=severity,
                metadata=metadata,
                description=description,
            ),
        )

    def _warn(self, node_id: str, event: RunEvent, metadata: Mapping[str, Any]) -> Iterator[tuple[str, DagsterResult]]:
        node = self.snapshot.compiled.graph.by_id.get(node_id)
        name = node.name if node is not None else node_id
        self.log.warning(f"{event.name}: {name} ({', '.join(f'{key} {value}' for key, value in metadata.items())})")
        key = self.selection.key_of(name)
        if key is not None:
            yield (
                "",
                dg.AssetObservation(
                    asset_key=key, metadata={f"pz/{k}": v for k, v in {"event": event.name, **metadata}.items()}
                ),
            )

    def _progress(self, event: NodeProgress) -> None:
        """Log at most one line per node and interval."""
        moment = event.at.timestamp()
        if moment - self._progress_at.get(event.node_id, 0.0) >= self.progress_seconds:
            self._progress_at[event.node_id] = moment
            self.log.info(f"{event.node_name}: {event.rows} rows, {event.batches} batches so far")

    def _error(self, result: NodeResult) -> str:
        if result.error is None:
            return "failed"
        return f"{result.error.code} {self.error_text(result.error.message)}"
