"""The live view of a run as lines: a pure function of its events and the present instant.

Groups keep the order of the data's way, rows are sorted by name and change in place.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct, field

from pz_engine.cli.render.console import MARKERS, data_warning, rows_text
from pz_engine.cli.render.hints import bottleneck
from pz_engine.events.types import NodeCompleted, NodeProgress, NodeStarted, RetryScheduled, RunEvent
from pz_engine.model.run import NodeKind, NodeResult, NodeStatus

GROUPS: Final = (
    (NodeKind.SOURCE_LOAD, "sources"),
    (NodeKind.PIPELINE, "pipelines"),
    (NodeKind.CHECK, "checks"),
    (NodeKind.SINK_WRITE, "sinks"),
)
RUNNING: Final = ".."

_STYLES = {NodeStatus.SUCCESS: "green", NodeStatus.FAILED: "red", NodeStatus.SKIPPED: "yellow"}
_PROVENANCE = {"reused": "(reused)", "carried_forward": "(carried forward)"}


class TreeLine(Struct, frozen=True):
    """One line: the guides before the text, the text, and how the text looks."""

    guides: str
    text: str
    style: str = ""
    """`green`, `red`, `yellow`, `dim` or nothing."""

    def __str__(self) -> str:
        return f"{self.guides}{self.text}"


class _Row(Struct):
    name: str
    kind: NodeKind
    started_at: datetime | None = None
    progress: NodeProgress | None = None
    result: NodeResult | None = None
    waiting: RetryScheduled | None = None
    warnings: list[str] = field(default_factory=list)


class RunTree:
    """What has been seen of a run; events go in, lines come out."""

    def __init__(self, title: str = "pz run") -> None:
        self._title = title
        self._rows: dict[str, _Row] = {}
        self._early: dict[str, list[str]] = {}

    def apply(self, event: RunEvent) -> None:
        """Take in one event."""
        warning = data_warning(event)
        if warning is not None:
            node_id = getattr(event, "node_id", "")
            row = self._rows.get(node_id)
            (row.warnings if row is not None else self._early.setdefault(node_id, [])).append(warning)
        elif isinstance(event, NodeStarted):
            row = self._row(event.node_id, event.kind, event.node_name)
            row.started_at = event.at
        elif isinstance(event, NodeCompleted):
            row = self._row(event.result.id, event.result.kind, event.result.name)
            row.result = event.result
        elif isinstance(event, (NodeProgress, RetryScheduled)) and event.node_id in self._rows:
            row = self._rows[event.node_id]
            if isinstance(event, NodeProgress):
                row.progress, row.waiting = event, None
            else:
                row.progress, row.waiting = None, event

    def lines(self, now: datetime) -> tuple[TreeLine, ...]:
        """Return the view as of `now`."""
        found = [TreeLine("", self._title)]
        groups = [(label, rows) for kind, label in GROUPS if (rows := self._of_kind(kind))]
        for index, (label, rows) in enumerate(groups):
            is_last_group = index == len(groups) - 1
            found.append(TreeLine("└── " if is_last_group else "├── ", label))
            trunk = "    " if is_last_group else "│   "
            for position, row in enumerate(rows):
                is_last_row = position == len(rows) - 1
                found.append(_row_line(row, trunk + ("└── " if is_last_row else "├── "), now))
                branch = trunk + ("    " if is_last_row else "│   ")
                children = _children(row)
                for order, (text, style) in enumerate(children):
                    found.append(TreeLine(branch + ("└ " if order == len(children) - 1 else "├ "), text, style))
        return tuple(found)

    def _row(self, node_id: str, kind: NodeKind, name: str) -> _Row:
        if node_id not in self._rows:
            self._rows[node_id] = _Row(name, kind, warnings=self._early.pop(node_id, []))
        return self._rows[node_id]

    def _of_kind(self, kind: NodeKind) -> list[_Row]:
        return sorted((row for row in self._rows.values() if row.kind is kind), key=lambda row: row.name)


def draw(events: Iterable[RunEvent], now: datetime, title: str = "pz run") -> tuple[TreeLine, ...]:
    """Return the view after a list of events."""
    tree = RunTree(title)
    for event in events:
        tree.apply(event)
    return tree.lines(now)


def _row_line(row: _Row, guides: str, now: datetime) -> TreeLine:
    result = row.result
    if result is not None:
        text = f"{MARKERS[result.status]} {row.name} {rows_text(result.rows)} rows {result.duration_ms}ms"
        return TreeLine(guides, text, _STYLES[result.status])
    elapsed = max((now - row.started_at).total_seconds(), 0.0) if row.started_at is not None else 0.0
    progress = f" {row.progress.rows} rows" if row.progress is not None else ""
    rate = f" {int(row.progress.rows / elapsed)} rows/s" if row.progress is not None and elapsed >= 1 else ""
    return TreeLine(guides, f"{RUNNING} {row.name}{progress} {int(elapsed)}s{rate}")


def _children(row: _Row) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    result = row.result
    if result is None:
        if row.waiting is not None:
            retry = row.waiting
            found.append(
                (f"retry {retry.attempt}/{retry.max_attempts} in {retry.delay_ms}ms ({retry.reason})", "yellow")
            )
    else:
        if result.status is NodeStatus.FAILED and result.error is not None:
            first = result.error.message.partition("\n")[0]
            found.append((f"{result.error.code}: {first}", "red"))
        hint = bottleneck(result)
        if hint is not None:
            found.append((hint, "dim"))
        if result.provenance is not None:
            found.append((_PROVENANCE.get(result.provenance, f"({result.provenance})"), "dim"))
    found.extend((f"warning: {warning}", "yellow") for warning in row.warnings)
    return found
