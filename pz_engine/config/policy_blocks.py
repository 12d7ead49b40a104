"""`retry:`, `rate_limit:` and `sync:` blocks, whichever surface they come from."""

from __future__ import annotations

from pz_engine.config import connection_keys as keys
from pz_engine.config.block_reader import BlockReader
from pz_engine.config.definitions import Key
from pz_engine.config.located import Table, as_text
from pz_engine.config.reporter import Reporter
from pz_engine.model.policies import RateLimit, RetryDeclaration, Sync, SyncMode

_NO_MODES = {
    "full": "remove sync: everything is read without it",
    "feed": "remove sync: a connector that offers a feed is read by it",
    "windowed": "write mode: incremental with max_window and initial",
}
"""How a read is called elsewhere, but not here, and what to write for it."""


def parse_retry(table: Table | None, report: Reporter) -> RetryDeclaration | None:
    """Read a `retry:` block; every problem is `PZ0121`."""
    if table is None:
        return None
    reader = BlockReader(keys.RETRY_BLOCK, table, report)
    reader.refuse_other_keys()
    attempts, base, cap = reader.read(keys.MAX_ATTEMPTS), reader.read(keys.BASE_DELAY), reader.read(keys.MAX_DELAY)
    if base is not None and cap is not None and cap < base:
        reader.add(
            keys.RETRY_BLOCK.code, "retry.max_delay is shorter than retry.base_delay", keys.MAX_DELAY.name,
            "raise max_delay or lower base_delay",
        )  # fmt: skip
    return RetryDeclaration(attempts, base, cap)


def parse_rate_limit(table: Table | None, report: Reporter) -> RateLimit | None:
    """Read a `rate_limit:` block; every problem is `PZ0318`."""
    if table is None:
        return None
    reader = BlockReader(keys.RATE_LIMIT_BLOCK, table, report)
    reader.refuse_other_keys()
    requests, burst = reader.read(keys.REQUESTS_PER_MINUTE), reader.read(keys.BURST)
    return RateLimit(requests, burst) if requests is not None else None


def parse_sync(table: Table | None, report: Reporter) -> Sync | None:
    """Read a `sync:` block; every problem is `PZ0334`."""
    if table is None:
        return None
    written = as_text(table.get(keys.MODE.name)) or ""
    if written in _NO_MODES:
        report.add(
            "PZ0334", f"sync.mode {written} does not exist", line=table.line_of(keys.MODE.name), hint=_NO_MODES[written]
        )
        return None
    mode_text = BlockReader(keys.SYNC_BLOCKS[SyncMode.AUTO], table, report).read(keys.MODE)
    if not mode_text:
        return None
    mode = SyncMode(mode_text)
    reader = BlockReader(keys.SYNC_BLOCKS[mode], table, report)
    reader.refuse_other_keys()

    def read(key: Key[str | None]) -> str | None:
        return reader.read(key) if key in reader.block.keys else None

    cursor = reader.read(keys.CURSOR) if mode is SyncMode.INCREMENTAL else None
    if mode is SyncMode.INCREMENTAL and not cursor:
        return None
    return Sync(mode, cursor, read(keys.MAX_WINDOW), read(keys.INITIAL), read(keys.UNTIL), read(keys.SLOT))
