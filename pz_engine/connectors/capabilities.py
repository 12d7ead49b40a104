"""What a connector promises.

Flags are static: they never depend on a connection. The planner trusts them; the executor checks the protocols.
"""

from __future__ import annotations

from enum import Flag, auto


class Capability(Flag):
    """Promises of a connector."""

    NONE = 0
    COLUMN_PRUNING = auto()
    """Honours `ReadHints.columns`."""

    PREDICATE_PUSHDOWN = auto()
    """Honours `ReadHints.predicate_sql`."""

    PARTITIONED_READ = auto()
    """`plan_read` may return several partitions."""

    NATIVE_SCAN = auto()
    """May return a `NativeScan`."""

    NATIVE_COPY = auto()
    """May return a `NativeCopy`."""

    REPEATABLE_SCAN = auto()
    """A native scan is cheap to repeat and stable during a run, so it may be fused."""

    MERGE = auto()
    """Supports `strategy: merge`."""

    REPLACE_WRITES = auto()
    """Supports `strategy: replace`."""

    TRANSACTIONAL = auto()
    """A commit is atomic."""

    BOUNDED_WINDOW = auto()
    """Applies `ReadSpec.upper_bound` during extraction."""

    INCLUSIVE_BOUND = auto()
    """Applies an inclusive lower bound."""

    PATH_TEMPLATING = auto()
    """Understands date tokens in paths."""

    COLUMN_PARTITIONED_WRITES = auto()
    """The destination records `partition_by` itself."""

    STREAMING_PARTITIONS = auto()
    """Yields partitions lazily."""

    SYNC_STATE = auto()
    """A partition may emit an opaque token."""

    STABLE_PARTITION_IDS = auto()
    """Every partition has a stable unique id."""

    CHECKPOINTABLE_READS = auto()
    """Partitions can resume in the middle of a read."""

    CHECKPOINTABLE_WRITES = auto()
    """Sessions report acknowledged rows."""

    GATED_OPERATIONS = auto()
    """Every remote operation goes through the operation gate."""

    CHANGE_CAPTURE = auto()
    """Supports `sync: {mode: cdc}`."""

    APPLY_DELETES = auto()
    """Applies captured deletes."""

    TEXT_LENGTH_STATS = auto()
    """Wants the longest value of every text column."""

    PUBLIC_TOKENS = auto()
    """Sync tokens hold no secret, so a host may keep a copy of them."""
