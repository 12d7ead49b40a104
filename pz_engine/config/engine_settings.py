"""`engine:` and `retention:`; every malformed value is reported together."""

from __future__ import annotations

from datetime import timedelta

from pz_engine.config.located import Located, Scalar, Table, as_bool, as_int, as_text
from pz_engine.config.policy_blocks import positive_duration
from pz_engine.config.reporter import Reporter
from pz_engine.config.shape_check import kind_of, refuse_unknown
from pz_engine.model.project import BreakerSettings, DuckDbSettings, EngineSettings

_KEYS = (
    "threads", "batch_bytes", "force_universal", "fusion", "check_samples", "node_timeout", "duckdb", "breaker",
)  # fmt: skip
_DUCKDB_KEYS = ("memory_limit", "threads", "temp_directory", "allow_extension_download")
_MAX_INT = 2_147_483_647
_OFF_WORDS = frozenset({"off", "no", "false"})


def parse_engine(node: Located | None, report: Reporter) -> EngineSettings:
    """Read `engine:`; every problem is `PZ0120`."""
    table = _table(node, "engine", report)
    if table is None:
        return EngineSettings()
    refuse_unknown(table, _KEYS, report, code="PZ0120", block="engine")
    values = _Values(table, "engine", report)
    default = EngineSettings()
    batch = values.integer("batch_bytes", 1_048_576, 536_870_912)
    return EngineSettings(
        threads=values.integer("threads", 1, _MAX_INT) or default.threads,
        batch_bytes=batch or default.batch_bytes,
        force_universal=values.boolean("force_universal", default=default.force_universal),
        fusion=values.switch("fusion", default=default.fusion),
        check_samples=values.boolean("check_samples", default=default.check_samples),
        node_timeout=values.duration("node_timeout"),
        duckdb=_parse_duckdb(table.present("duckdb"), report),
        breaker=_parse_breaker(table.get("breaker"), report),
    )


def parse_retention(node: Located | None, report: Reporter) -> int | None:
    """Read `retention:`: how many runs keep their staging, None for off; every problem is `PZ0123`."""
    if node is None:
        return 10
    if isinstance(node, Scalar) and node.text.lower() in _OFF_WORDS:
        return None
    keep = as_int(node.get("keep_last")) if isinstance(node, Table) else None
    if isinstance(node, Table):
        refuse_unknown(node, ("keep_last",), report, code="PZ0123", block="retention")
    if keep is None or keep < 1:
        report.add(
            "PZ0123", "retention needs keep_last, a whole number of at least 1",
            line=node.line_of("keep_last") if isinstance(node, Table) else node.line,
            hint="write retention: {keep_last: 10}, or retention: off",
        )  # fmt: skip
        return 10
    return keep


def _parse_duckdb(node: Located | None, report: Reporter) -> DuckDbSettings:
    table = _table(node, "engine.duckdb", report)
    if table is None:
        return DuckDbSettings()
    refuse_unknown(table, _DUCKDB_KEYS, report, code="PZ0120", block="engine.duckdb")
    values = _Values(table, "engine.duckdb", report)
    return DuckDbSettings(
        memory_limit=values.text("memory_limit"),
        threads=values.integer("threads", 1, _MAX_INT),
        temp_directory=values.text("temp_directory"),
        allow_extension_download=values.boolean("allow_extension_download", default=False),
    )


def _parse_breaker(node: Located | None, report: Reporter) -> BreakerSettings | None:
    if node is None:
        return None
    if not isinstance(node, Table):
        report.add(
            "PZ0120", f"engine.breaker must be a mapping, not {kind_of(node)}", line=node.line,
            hint="write breaker: {failure_threshold: 5, cool_down: 30s}",
        )  # fmt: skip
        return None
    refuse_unknown(node, ("failure_threshold", "cool_down"), report, code="PZ0120", block="engine.breaker")
    values = _Values(node, "engine.breaker", report)
    threshold = values.integer("failure_threshold", 1, _MAX_INT, is_required=True)
    cool_down = values.duration("cool_down", is_required=True)
    return BreakerSettings(threshold, cool_down) if threshold is not None and cool_down is not None else None


def _table(node: Located | None, name: str, report: Reporter) -> Table | None:
    if node is None or node.is_blank:
        return None
    if isinstance(node, Table):
        return node
    report.add(
        "PZ0120", f"{name} must be a mapping, not {kind_of(node)}", line=node.line, hint="write its keys below it"
    )
    return None


class _Values:
    """Typed access to the keys of one block; a key with no body counts as absent."""

    def __init__(self, table: Table, block: str, report: Reporter) -> None:
        self._table = table
        self._block = block
        self._report = report

    def integer(self, key: str, low: int, high: int, *, is_required: bool = False) -> int | None:
        node = self._table.present(key)
        if node is None and not is_required:
            return None
        value = as_int(node)
        if value is None or not low <= value <= high:
            limit = f"of at least {low}" if high == _MAX_INT else f"from {low} to {high}"
            self._bad(key, f"must be a whole number {limit}", f"write {key}: {max(low, 4)}")
            return None
        return value

    def boolean(self, key: str, *, default: bool) -> bool:
        node = self._table.present(key)
        if node is None:
            return default
        value = as_bool(node)
        if value is None:
            self._bad(key, "must be true or false", f"write {key}: true")
        return default if value is None else value

    def switch(self, key: str, *, default: bool) -> bool:
        node = self._table.present(key)
        if node is None:
            return default
        value = as_bool(node)
        if value is None:
            value = {"on": True, "off": False}.get(as_text(node) or "")
        if value is None:
            self._bad(key, "must be on or off", f"write {key}: on")
        return default if value is None else value

    def text(self, key: str) -> str | None:
        node = self._table.present(key)
        if node is None:
            return None
        if not isinstance(node, Scalar) or isinstance(node.value, bool) or not node.text:
            self._bad(key, "must be text", f"write {key}: <text>")
            return None
        return node.text

    def duration(self, key: str, *, is_required: bool = False) -> timedelta | None:
        node = self._table.present(key)
        if node is None and not is_required:
            return None
        value = positive_duration(node)
        if value is None:
            self._bad(key, "must be a duration above zero", f"write {key}: 30s (units ms, s, m, h, d)")
        return value

    def _bad(self, key: str, cause: str, hint: str) -> None:
        self._report.add("PZ0120", f"{self._block}.{key} {cause}", line=self._table.line_of(key), hint=hint)
