"""Bounded windows of incremental reads (`max_window`, `initial`, `until`); every broken rule is its own `PZ0213`."""

from __future__ import annotations

from msgspec.structs import replace

from pz_engine.config.reporter import Reporter
from pz_engine.model.cursor_values import canonicalize, compare, window_is_valid
from pz_engine.model.entity import ReadSide
from pz_engine.model.policies import Sync

UNTIL_NOW = "now"
"""The value of `until` that means the start of the run."""

_EXAMPLES = {
    "int": "10000",
    "bigint": "10000",
    "decimal": "10000",
    "date": "7d",
    "timestamp": "1d",
}


def check_window(read: ReadSide, sync: Sync, cursor_type: str | None, report: Reporter) -> Sync:
    """Check a window and return the block with `initial` and `until` in canonical form."""
    line = read.line_of("sync.max_window")
    if sync.max_window is None:
        first = "initial" if sync.initial is not None else "until"
        report.add(
            "PZ0213", "initial and until need max_window", line=read.line_of(f"sync.{first}"),
            hint="add max_window to sync, or remove them",
        )  # fmt: skip
    elif sync.initial is None:
        report.add("PZ0213", "max_window needs initial", line=line, hint="add initial: <first value> to sync")
    if sync.max_window is not None and isinstance(read.options.get("query"), str):
        report.add(
            "PZ0213", "a window cannot be cut from a query option", line=read.line_of("query"),
            hint="name the entity instead of giving query, or remove max_window",
        )  # fmt: skip
    if cursor_type is None:
        if sync.max_window is not None:
            report.add(
                "PZ0213", f"max_window needs the type of the cursor '{sync.cursor}'", line=line,
                hint=f"declare columns: {{{sync.cursor}: timestamp, ...}}",
            )  # fmt: skip
        return sync
    if sync.max_window is not None and not window_is_valid(cursor_type, sync.max_window):
        unit = "whole days" if cursor_type == "date" else "a duration above zero"
        wanted = unit if cursor_type in {"date", "timestamp"} else "a whole number above zero"
        report.add(
            "PZ0213", f"max_window must be {wanted} for a {cursor_type} cursor", line=line,
            hint=f"write max_window: {_EXAMPLES[cursor_type]}",
        )  # fmt: skip
    initial = _limit("initial", sync.initial, cursor_type, read.line_of("sync.initial"), report)
    until = _limit("until", sync.until, cursor_type, read.line_of("sync.until"), report)
    if initial is not None and until not in {None, UNTIL_NOW} and compare(cursor_type, until or "", initial) <= 0:
        report.add(
            "PZ0213", "until is not above initial", line=read.line_of("sync.until"), hint="raise until or lower initial"
        )
    return replace(sync, initial=initial, until=until)


def _limit(name: str, text: str | None, cursor_type: str, line: int | None, report: Reporter) -> str | None:
    if text is None:
        return None
    if name == "until" and text == UNTIL_NOW:
        if cursor_type in {"date", "timestamp"}:
            return text
        report.add(
            "PZ0213", f"until: now has no meaning for a {cursor_type} cursor", line=line, hint="write a value, or remove until"
        )  # fmt: skip
        return None
    canonical = canonicalize(cursor_type, text)
    if canonical is None:
        examples = {"date": "2026-01-31", "timestamp": "2026-01-31T00:00:00"}
        report.add(
            "PZ0213", f"{name} is no {cursor_type}", line=line, hint=f"write {name}: {examples.get(cursor_type, '0')}"
        )
    return canonical
