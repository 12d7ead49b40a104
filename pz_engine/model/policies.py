"""Declared policies: how rows land, how reads resume, how failures are retried."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from msgspec import Struct


class Strategy(str, Enum):
    """How a sink's rows land."""

    REPLACE = "replace"
    APPEND = "append"
    MERGE = "merge"


class SchemaPolicy(str, Enum):
    """What a sink does when the target's columns differ."""

    FAIL_ON_CHANGE = "fail_on_change"
    ADDITIVE = "additive"
    EVOLVE = "evolve"


class OnDelete(str, Enum):
    """What a captured delete does at a merge sink."""

    DELETE = "delete"
    SOFT = "soft"
    IGNORE = "ignore"


class DriftPolicy(str, Enum):
    """What happens when a source's schema differs from its baseline."""

    IGNORE = "ignore"
    WARN = "warn"
    FAIL = "fail"


class Materialization(str, Enum):
    """What a pipeline becomes in staging."""

    TABLE = "table"
    VIEW = "view"
    EPHEMERAL = "ephemeral"


class SyncMode(str, Enum):
    """Declared read mode of an entity."""

    AUTO = "auto"
    INCREMENTAL = "incremental"
    CDC = "cdc"


class Sync(Struct, frozen=True):
    """A `sync:` block; scalars are kept as the text typed."""

    mode: SyncMode
    cursor: str | None = None
    max_window: str | None = None
    initial: str | None = None
    until: str | None = None
    slot: str | None = None

    @property
    def is_windowed(self) -> bool:
        """Tell whether any bounded-window key is present."""
        return self.max_window is not None or self.initial is not None or self.until is not None


class RetryDeclaration(Struct, frozen=True):
    """A `retry:` block; every field may be absent and cascades on its own."""

    max_attempts: int | None = None
    base_delay: timedelta | None = None
    max_delay: timedelta | None = None


class RetryPolicy(Struct, frozen=True):
    """Effective retry limits of one node."""

    max_attempts: int = 3
    """Total tries, the first included."""

    base_delay: timedelta = timedelta(seconds=1)
    max_delay: timedelta = timedelta(seconds=30)

    @staticmethod
    def cascade(*nearest_first: RetryDeclaration | None) -> RetryPolicy:
        """Take each field from the nearest declaration that has it, else the engine's default."""
        default = RetryPolicy()
        declared = [declaration for declaration in nearest_first if declaration is not None]
        attempts = [d.max_attempts for d in declared if d.max_attempts is not None]
        base = [d.base_delay for d in declared if d.base_delay is not None]
        cap = [d.max_delay for d in declared if d.max_delay is not None]
        return RetryPolicy(
            attempts[0] if attempts else default.max_attempts,
            base[0] if base else default.base_delay,
            cap[0] if cap else default.max_delay,
        )


class RateLimit(Struct, frozen=True):
    """A connection's `rate_limit:` block."""

    requests_per_minute: int
    burst: int | None = None
