"""The plain lines of text mode, as pure functions.

A success is exactly one line; everything a person must act on names its code.
"""

from __future__ import annotations

from pz_engine.base.byte_sizes import format_byte_size
from pz_engine.cli.render.hints import bottleneck
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.events.types import (
    AmbiguousDateInferenceDetected,
    BreakerStateChanged,
    ColumnChange,
    ConnectorLog,
    LossyIntegerInferenceDetected,
    MergeKeyDuplicatesDetected,
    NodeCompleted,
    NodeProgress,
    NodeStarted,
    RetentionSwept,
    RetryScheduled,
    RunEvent,
    RunStarted,
    SourceDriftDetected,
)
from pz_engine.model.run import NodeResult, NodeStatus

QUIET = -1
NORMAL = 0
VERBOSE = 1
VERY_VERBOSE = 2

MARKERS = {NodeStatus.SUCCESS: "ok", NodeStatus.FAILED: "FAIL", NodeStatus.SKIPPED: "skip"}
"""First word of a finished node's line."""

_SILENT_LEVELS = frozenset({"trace", "debug"})


def event_lines(event: RunEvent, verbosity: int = NORMAL) -> tuple[str, ...]:
    """Return the lines of one event.

    Args:
        event: any event; most have no line.
        verbosity: -1 shows failures only, 1 adds starts and progress, 2 adds what connectors say at level info.
    """
    if isinstance(event, NodeCompleted):
        is_shown = verbosity > QUIET or event.result.status is NodeStatus.FAILED
        return _completed(event.result) if is_shown else ()
    if verbosity == QUIET:
        return ()
    if isinstance(event, RetentionSwept):
        line = retention_line(event)
        return (line,) if line is not None else ()
    if isinstance(event, ConnectorLog):
        return _connector_lines(event, verbosity)
    if isinstance(event, (RunStarted, NodeStarted, NodeProgress)):
        return _verbose_lines(event) if verbosity >= VERBOSE else ()
    if isinstance(event, RetryScheduled):
        tries = f"attempt {event.attempt}/{event.max_attempts}"
        return (f"retry: {event.node_name} {tries} in {event.delay_ms}ms ({event.reason})",)
    if isinstance(event, BreakerStateChanged):
        return (_breaker_line(event),)
    warning = data_warning(event)
    return (f"warning: {warning}",) if warning is not None else ()


def data_warning(event: RunEvent) -> str | None:
    """Return what a run-time warning says, with its code; None for any other event."""
    if isinstance(event, MergeKeyDuplicatesDetected):
        keys = ", ".join(event.keys)
        return (
            f"PZ0522 {event.output}: {event.duplicate_groups} merge key value(s) occur more than once"
            f" ({event.extra_rows} extra row(s)); of each the last row stays — deduplicate by [{keys}] in the pipeline"
        )
    if isinstance(event, LossyIntegerInferenceDetected):
        return (
            f"PZ0523 {event.connection}.{event.entity}: {', '.join(event.columns)} read as DOUBLE hold whole numbers"
            " beyond 2^53, so digits may be lost — declare them in columns:"
        )
    if isinstance(event, AmbiguousDateInferenceDetected):
        return (
            f"PZ0524 {event.connection}.{event.entity}: {', '.join(event.columns)} read as {event.format},"
            " and no value tells day from month — declare varchar and parse in the pipeline, or use ISO dates"
        )
    if isinstance(event, SourceDriftDetected):
        changes = ", ".join(column_change(change) for change in event.changes)
        return (
            f"PZ0331 {event.connection}.{event.entity} differs from its accepted schema: {changes}"
            f" — pz schema accept {event.connection}.{event.entity}"
        )
    return None


def column_change(change: ColumnChange) -> str:
    """Return one difference of a schema in words."""
    if change.old_type is None:
        return f"{change.column} added ({change.new_type})"
    if change.new_type is None:
        return f"{change.column} removed ({change.old_type})"
    return f"{change.column} retyped ({change.old_type} to {change.new_type})"


def problem_line(problem: Diagnostic) -> str:
    """Return an error's line."""
    return str(problem)


def warning_line(warning: Diagnostic) -> str:
    """Return a compile-time warning's line."""
    place = f" ({warning.file})" if warning.file else ""
    hint = f" — {warning.hint}" if warning.hint else ""
    return f"warning: {warning.code} {warning.message}{place}{hint}"


def note_line(note: str) -> str:
    """Return a note's line."""
    return f"note: {note}"


def summary_line(run_id: str, results: tuple[NodeResult, ...], where: str | None) -> str:
    """Return the closing line of a run."""
    counts = {status: sum(result.status is status for result in results) for status in NodeStatus}
    place = f" ({where})" if where else ""
    return (
        f"run {run_id}: {counts[NodeStatus.SUCCESS]} succeeded, {counts[NodeStatus.FAILED]} failed,"
        f" {counts[NodeStatus.SKIPPED]} skipped{place}"
    )


def retention_line(event: RetentionSwept) -> str | None:
    """Return what the retention sweep did; None when there is nothing to say."""
    if not (event.runs_swept or event.bytes_freed or event.failures):
        return None
    noun = "database" if event.runs_swept == 1 else "databases"
    failed = f", {event.failures} could not be deleted" if event.failures else ""
    return f"cleaned {event.runs_swept} staging {noun}, freed {format_byte_size(event.bytes_freed)}{failed}"


def rows_text(rows: int | None) -> str:
    """Return a count, or a dash when nobody counted."""
    return "-" if rows is None else str(rows)


def _completed(result: NodeResult) -> tuple[str, ...]:
    lines = [f"{MARKERS[result.status]} {result.name} {rows_text(result.rows)} rows {result.duration_ms}ms"]
    if result.status is NodeStatus.FAILED and result.error is not None:
        message = f"{result.error.code}: {result.error.message}"
        lines.extend(f"  {line}".rstrip() for line in message.splitlines())
    hint = bottleneck(result)
    if hint is not None:
        lines.append(f"hint: {result.name}: {hint}")
    delivery = result.delivery
    if delivery is not None and result.status is NodeStatus.FAILED:
        lines.append(
            f"delivery stopped: up to {delivery.rows_visible} row(s) already visible at the destination"
            f" (abort: {delivery.abort_semantics})"
        )
    if delivery is not None and delivery.resumed_rows:
        lines.append(f"resumed past {delivery.resumed_rows} delivered row(s)")
    return tuple(lines)


def _breaker_line(event: BreakerStateChanged) -> str:
    connection = event.instance.partition(":")[2]
    wait = f"; cool down {event.cool_down_ms / 1000:g}s" if event.cool_down_ms else ""
    return f"breaker: connection {connection} {event.old_state}->{event.new_state} ({event.trigger}{wait})"


def _connector_lines(event: ConnectorLog, verbosity: int) -> tuple[str, ...]:
    level = event.level.lower()
    is_hidden = level in _SILENT_LEVELS or (level == "info" and verbosity < VERY_VERBOSE)
    return () if is_hidden else (f"connector [{event.level}] {event.connection}: {event.message}",)


def _verbose_lines(event: RunStarted | NodeStarted | NodeProgress) -> tuple[str, ...]:
    if isinstance(event, RunStarted):
        return (f"start run {event.run_id}: {event.node_count} node(s)",)
    if isinstance(event, NodeStarted):
        return (f"start {event.node_name}",)
    return (f"progress {event.node_name} {event.rows} rows",)
