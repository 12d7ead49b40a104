"""A run's summary as lines; what is not known is shown as missing, never as zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pz_engine.base.printable import printable
from pz_engine.cli.render.tables import table_lines
from pz_engine.events.journal_reader import JournalEnds
from pz_engine.events.run_stats import NodeSummary, RowTotal, RunSummary
from pz_engine.model.run import NodeKind

MISSING: Final = "-"
_HEADER: Final = ("kind", "name", "status", "started", "duration", "rows", "attempts", "checks", "blocked by")
_SHOWN_FIRST: Final = ("nodeId", "name", "kind", "status", "mode", "rows", "durationMs", "errorCode", "errorMessage")
_ENVELOPE: Final = frozenset({"event", "at", "runId", "schemaVersion", "nodes", "live"})


def history_lines(summary: RunSummary) -> list[str]:
    """Return the lines of one run: its end, a table of nodes, why nodes failed, and totals."""
    lines = [f"run {summary.run_id}: {summary.outcome}{_span(summary)}"]
    if not summary.live:
        lines[0] += " (not live)"
    if summary.nodes:
        lines += table_lines(_HEADER, [_cells(node) for node in summary.nodes])
    lines += [line for node in summary.nodes if (line := _error_line(node)) is not None]
    lines.append(f"rows loaded: {_total(summary.rows_loaded)}")
    lines.append(f"rows written: {_total(summary.rows_written)}")
    if any(node.provenance == "carried_forward" for node in summary.nodes):
        lines.append(f"rows carried forward from an earlier run: {_total(summary.rows_carried_forward)}")
    return lines


def journal_rows(journals: Sequence[JournalEnds]) -> list[tuple[str, ...]]:
    """Return one row of cells per journal."""
    return [
        (
            journal.run_id,
            journal.mode or MISSING,
            journal.status or "no end",
            journal.started_at or MISSING,
            _count(journal.nodes),
        )
        for journal in journals
    ]


def record_line(record: Mapping[str, Any]) -> str:
    """Return one journal record as a line: when, what, and its plain values."""
    names = [name for name in _SHOWN_FIRST if name in record]
    names += [name for name in record if name not in names and name not in _ENVELOPE]
    values = [
        f"{name}={printable(str(record[name]))}"
        for name in names
        if record[name] is not None and not _is_nested(record[name])
    ]
    head = [printable(str(record.get("at", MISSING))), printable(str(record["event"]))]
    return " ".join([*head, *values])


def _is_nested(value: Any) -> bool:
    return isinstance(value, (dict, list))


def _span(summary: RunSummary) -> str:
    started = f", started {summary.started_at}" if summary.started_at is not None else ""
    took = f", took {summary.duration_ms}ms" if summary.duration_ms is not None else ""
    return f"{started}{took}"


def _cells(node: NodeSummary) -> tuple[str, ...]:
    checks = MISSING
    if node.checks_passed is not None or node.checks_failed is not None:
        checks = f"{node.checks_passed or 0} passed, {node.checks_failed or 0} failed"
    status = f"{node.status} ({node.provenance})" if node.provenance is not None else node.status
    return (
        node.kind or MISSING,
        node.name or node.node_id,
        status,
        node.started_at or MISSING,
        f"{node.duration_ms}ms" if node.duration_ms is not None else MISSING,
        str(node.rows) if node.rows is not None else _unreported(node),
        _count(node.attempts),
        checks,
        ", ".join(node.blocked_by) if node.blocked_by else MISSING,
    )


def _unreported(node: NodeSummary) -> str:
    return "not reported" if node.status == "success" and node.kind != NodeKind.CHECK.value else MISSING


def _error_line(node: NodeSummary) -> str | None:
    if node.error is None and node.error_code is None:
        return None
    kind = f"{node.error.kind}: " if node.error is not None and node.error.kind else ""
    message = node.error.message if node.error is not None else ""
    details = f" (more in {node.error.details_at})" if node.error is not None and node.error.details_at else ""
    return f"{node.name}: {node.error_code or 'failed'}: {kind}{message}{details}"


def _total(total: RowTotal) -> str:
    if not total.is_at_least:
        return str(total.rows)
    reason = f"{total.unreported} node(s) not reported" if total.unreported else "the run's end is not known"
    return f"at least {total.rows} ({reason})"


def _count(value: int | None) -> str:
    return str(value) if value is not None else MISSING
