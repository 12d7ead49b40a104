"""The memory a run may take, from settings alone.

`total = DuckDB's limit + engine threads x 6 x batch bytes + a fixed overhead`; six is four queued batches, one being
produced and one being consumed.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from pz_engine.base.byte_sizes import format_byte_size, parse_byte_size
from pz_engine.model.project import EngineSettings

FIXED_OVERHEAD_BYTES = 268_435_456
_BATCHES_PER_THREAD = 6
_UNSET = "engine.duckdb.memory_limit is not set; DuckDB takes up to 80 % of the machine's memory, counted as 0 here"
_NOT_FIXED = "engine.duckdb.memory_limit is not a fixed size; it is counted as 0 here"
_THREADS = (
    "engine.duckdb.threads is not set; DuckDB's own floor grows with columns and threads and is not part of the budget"
)


class MemoryBudget(Struct, frozen=True):
    """Bytes a run may take, and what the number leaves out."""

    duckdb_bytes: int | None
    duckdb_disclaimer: str | None
    channel_bytes: int
    threads_disclaimer: str | None

    @property
    def total_bytes(self) -> int:
        """Sum of the known parts."""
        return (self.duckdb_bytes or 0) + self.channel_bytes + FIXED_OVERHEAD_BYTES

    @classmethod
    def of(cls, engine: EngineSettings) -> MemoryBudget:
        """Compute the budget."""
        limit = engine.duckdb.memory_limit
        size = parse_byte_size(limit) if limit is not None else None
        disclaimer = _UNSET if limit is None else (_NOT_FIXED if size is None else None)
        return cls(
            duckdb_bytes=size,
            duckdb_disclaimer=disclaimer,
            channel_bytes=engine.threads * _BATCHES_PER_THREAD * engine.batch_bytes,
            threads_disclaimer=_THREADS if engine.duckdb.threads is None else None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the object of `plan.json`."""
        return {
            "duckdbBytes": self.duckdb_bytes,
            "duckdbDisclaimer": self.duckdb_disclaimer,
            "channelBytes": self.channel_bytes,
            "fixedOverheadBytes": FIXED_OVERHEAD_BYTES,
            "totalBytes": self.total_bytes,
            "duckdbThreadsDisclaimer": self.threads_disclaimer,
        }

    def line(self) -> str:
        """Return the sentence that `pz plan` prints."""
        duckdb = "unknown" if self.duckdb_bytes is None else format_byte_size(self.duckdb_bytes)
        return (
            f"memory budget: {self.total_bytes} bytes (duckdb {duckdb}, channels {format_byte_size(self.channel_bytes)}, "
            f"fixed overhead {format_byte_size(FIXED_OVERHEAD_BYTES)})"
        )
