"""`retry:`, `rate_limit:` and `sync:` blocks, whichever surface they come from."""

from __future__ import annotations

from datetime import timedelta

from pz_engine.base.durations import parse_duration
from pz_engine.base.near_miss import did_you_mean
from pz_engine.config.located import Listing, Located, Scalar, Table, as_int, as_text
from pz_engine.config.reporter import Reporter
from pz_engine.config.shape_check import kind_of, refuse_unknown
from pz_engine.model.policies import RateLimit, RetryDeclaration, Sync, SyncMode

_SYNC_KEYS = {
    SyncMode.INCREMENTAL: ("mode", "cursor", "max_window", "initial", "until"),
    SyncMode.CDC: ("mode", "slot"),
    SyncMode.AUTO: ("mode",),
}


def positive_duration(node: Located | None) -> timedelta | None:
    """Return a duration above zero, or None for anything else."""
    text = as_text(node)
    found = parse_duration(text) if text is not None else None
    return found if found is not None and found > timedelta(0) else None


def parse_retry(node: Located, report: Reporter) -> RetryDeclaration | None:
    """Read a `retry:` block; every problem is `PZ0121`."""
    if not isinstance(node, Table):
        report.add(
            "PZ0121", f"retry must be a mapping, not {kind_of(node)}", line=node.line,
            hint="write retry: {max_attempts: 3, base_delay: 1s, max_delay: 30s}",
        )  # fmt: skip
        return None
    refuse_unknown(node, ("max_attempts", "base_delay", "max_delay"), report, code="PZ0121", block="retry")
    attempts: int | None = None
    if "max_attempts" in node.entries:
        attempts = as_int(node.get("max_attempts"))
        if attempts is None or not 1 <= attempts <= 100:
            report.add(
                "PZ0121", "retry.max_attempts must be a whole number from 1 to 100",
                line=node.line_of("max_attempts"), hint="write max_attempts: 3",
            )  # fmt: skip
    delays: dict[str, timedelta | None] = {"base_delay": None, "max_delay": None}
    for key in tuple(delays):
        if key in node.entries:
            found = positive_duration(node.get(key))
            delays[key] = found
            if found is None:
                report.add(
                    "PZ0121", f"retry.{key} must be a duration above zero", line=node.line_of(key),
                    hint=f"write {key}: 1s (units ms, s, m, h, d)",
                )  # fmt: skip
    base, cap = delays["base_delay"], delays["max_delay"]
    if base is not None and cap is not None and cap < base:
        report.add(
            "PZ0121", "retry.max_delay is shorter than retry.base_delay",
            line=node.line_of("max_delay"), hint="raise max_delay or lower base_delay",
        )  # fmt: skip
    return RetryDeclaration(attempts, base, cap)


def parse_rate_limit(node: Located, report: Reporter) -> RateLimit | None:
    """Read a `rate_limit:` block; every problem is `PZ0318`."""
    if not isinstance(node, Table):
        report.add(
            "PZ0318", f"rate_limit must be a mapping, not {kind_of(node)}", line=node.line,
            hint="write rate_limit: {requests_per_minute: 60}",
        )  # fmt: skip
        return None
    refuse_unknown(node, ("requests_per_minute", "burst"), report, code="PZ0318", block="rate_limit")
    values: dict[str, int | None] = {}
    for key, is_required in (("requests_per_minute", True), ("burst", False)):
        values[key] = as_int(node.get(key))
        is_valid = values[key] is not None and 1 <= (values[key] or 0) <= 1_000_000
        if not is_valid and (is_required or key in node.entries):
            report.add(
                "PZ0318", f"rate_limit.{key} must be a whole number from 1 to 1000000",
                line=node.line_of(key), hint=f"write {key}: 60",
            )  # fmt: skip
    requests = values["requests_per_minute"]
    return RateLimit(requests, values["burst"]) if requests is not None else None


def parse_sync(node: Located, report: Reporter) -> Sync | None:
    """Read a `sync:` block; every problem is `PZ0334`."""
    if not isinstance(node, Table):
        _sync_problem(report, node.line, f"sync must be a mapping, not {kind_of(node)}")
        return None
    mode_text = as_text(node.get("mode"))
    modes = [mode.value for mode in SyncMode]
    if mode_text not in modes:
        line = node.line_of("mode")
        if node.present("mode") is None:
            _sync_problem(report, line, "sync has no mode")
        else:
            hint = did_you_mean(mode_text or "", modes) or "use auto, incremental or cdc"
            _sync_problem(report, line, "sync.mode must be auto, incremental or cdc", hint)
        return None
    mode = SyncMode(mode_text)
    block = f"sync with mode {mode.value}"
    refuse_unknown(node, _SYNC_KEYS[mode], report, code="PZ0334", block=block)
    values: dict[str, str | None] = {}
    for key in _SYNC_KEYS[mode][1:]:
        child = node.get(key)
        if isinstance(child, (Listing, Table)):
            _sync_problem(report, node.line_of(key), f"sync.{key} must be a single value")
        elif child is not None and (child.is_blank or child.text == ""):
            if key != "cursor":
                _sync_problem(report, node.line_of(key), f"sync.{key} has no value")
        elif child is not None:
            values[key] = child.text
    if mode is SyncMode.INCREMENTAL and not _is_cursor(node.get("cursor")):
        if not isinstance(node.get("cursor"), (Listing, Table)):
            line = node.line_of("cursor")
            _sync_problem(report, line, "sync with mode incremental needs a cursor column")
        return None
    return Sync(
        mode, values.get("cursor"), values.get("max_window"), values.get("initial"), values.get("until"), values.get("slot")
    )  # fmt: skip


def _is_cursor(node: Located | None) -> bool:
    return isinstance(node, Scalar) and not node.is_blank and node.text != ""


def _sync_problem(report: Reporter, line: int | None, message: str, hint: str | None = None) -> None:
    default = "write sync: {mode: incremental, cursor: <column>}"
    report.add("PZ0334", message, line=line, hint=hint or default)
