"""Every key of `connections.yml`; the named arguments of `source()` and `sink()` are those of a read and a write side."""

from __future__ import annotations

from datetime import timedelta

from pz_engine.base.durations import format_duration
from pz_engine.config.definitions import Block, Key, MapOf, Retired, Section, Variants
from pz_engine.config.kinds import (
    Anything,
    Choice,
    ContractType,
    Duration,
    Flag,
    SingleValue,
    Text,
    TextList,
    Whole,
    Word,
)
from pz_engine.config.located import Table
from pz_engine.model.policies import OnDelete, RetryPolicy, SchemaPolicy, Strategy, SyncMode

ENTITY_NAME = r"[^\s.\x00-\x1f\x7f]+(?:\.[^\s.\x00-\x1f\x7f]+)*"
"""A whole entity name: parts between dots, none of them empty, no blanks."""

COLUMN_NAME = r"[\s\S]*\S[\s\S]*"
"""A whole column name of a contract: not blank."""

CONNECTION_NAME = r"(?!.*__)[A-Za-z_][A-Za-z0-9_]*"
"""A whole connection name."""

_RETRY = RetryPolicy()

MAX_ATTEMPTS: Key[int | None] = Key(
    "max_attempts", Whole(1, 100), f"Tries of a node, the first included; {_RETRY.max_attempts} when nothing says so.",
    None, may_be_blank=False, example=str(_RETRY.max_attempts),
)  # fmt: skip
BASE_DELAY: Key[timedelta | None] = Key(
    "base_delay",
    Duration(),
    f"Wait before the second try; {format_duration(_RETRY.base_delay)} when nothing says so.",
    None,
    may_be_blank=False,
    example="1s",
)
MAX_DELAY: Key[timedelta | None] = Key(
    "max_delay",
    Duration(),
    f"Longest wait; {format_duration(_RETRY.max_delay)} when nothing says so.",
    None,
    may_be_blank=False,
)
RETRY_BLOCK = Block("retry", "PZ0121", (MAX_ATTEMPTS, BASE_DELAY, MAX_DELAY))
RETRY: Key[Table | None] = Key(
    "retry", Section(RETRY_BLOCK), "How failed work is tried again; each key is taken from the nearest block that has it.",
    None, code="PZ0121", may_be_blank=False, example="{max_attempts: 3, base_delay: 1s, max_delay: 30s}",
)  # fmt: skip

REQUESTS_PER_MINUTE: Key[int | None] = Key(
    "requests_per_minute", Whole(1, 1_000_000), "Requests in a minute.", None,
    is_required=True, may_be_blank=False, example="60",
)  # fmt: skip
BURST: Key[int | None] = Key(
    "burst", Whole(1, 1_000_000), "Requests that may come at once; derived when absent.", None, may_be_blank=False
)
RATE_LIMIT_BLOCK = Block("rate_limit", "PZ0318", (REQUESTS_PER_MINUTE, BURST))

MODE = Key(
    "mode", Word(tuple(mode.value for mode in SyncMode)), "How the entity is read.", "",
    is_required=True, may_be_blank=False,
)  # fmt: skip
CURSOR = Key(
    "cursor", SingleValue(), "Column whose highest value is remembered.", "", is_required=True, may_be_blank=False,
    example="<column>",
)  # fmt: skip
MAX_WINDOW: Key[str | None] = Key(
    "max_window", SingleValue(), "Size of one window: a duration, or a number for a number.", None, may_be_blank=False
)
INITIAL: Key[str | None] = Key(
    "initial", SingleValue(), "The first window is above it; rows at it are not read.", None, may_be_blank=False
)
UNTIL: Key[str | None] = Key("until", SingleValue(), "Where the last window ends.", None, may_be_blank=False)
SLOT: Key[str | None] = Key("slot", SingleValue(), "Replication slot.", None, may_be_blank=False)
SYNC_BLOCKS = {
    SyncMode.AUTO: Block("sync", "PZ0334", (MODE,)),
    SyncMode.INCREMENTAL: Block("sync", "PZ0334", (MODE, CURSOR, MAX_WINDOW, INITIAL, UNTIL)),
    SyncMode.CDC: Block("sync", "PZ0334", (MODE, SLOT)),
}
SYNC: Key[Table | None] = Key(
    "sync", Variants(MODE, tuple((mode.value, block) for mode, block in SYNC_BLOCKS.items())),
    "Which rows a run reads; all that the connector offers when absent.", None,
    code="PZ0334", may_be_blank=False, example="{mode: incremental, cursor: <column>}",
)  # fmt: skip

COLUMNS: Key[Table | None] = Key(
    "columns", MapOf(ContractType(), COLUMN_NAME), "Column contract: exactly these columns, with exactly these types.", None,
    example="{id: bigint, name: varchar}",
)  # fmt: skip
_PASSED_ON = tuple(
    Key(name, Anything(), summary, None, is_passed_on=True)
    for name, summary in (
        ("partition_column", "Column by which a read is split."),
        ("partitions", "Parts a read is split into, 1 to 16."),
        ("files_per_partition", "Files that one reader takes on the universal path, at least 1."),
    )
)
_OF_THE_CONNECTION = "move <key> to the connection in connections.yml"
QUALIFIERS = tuple(
    Retired(
        name, "PZ0348", f"{name} moved into the entity's name", "name the entity <schema>.<table>", is_reported=False
    )
    for name in ("schema", "table")
)
"""Retired together, so that both are one problem."""

READ_BLOCK = Block(
    "", "PZ0101", (COLUMNS, SYNC, RETRY, *_PASSED_ON), "Options of a read.",
    (
        Retired("incremental", "PZ0332", "incremental is now sync", "write sync: {mode: incremental, cursor: <value>}",
                "cursor", "<column>"),
        *(Retired(name, "PZ0318", f"{name} belongs to the connection", _OF_THE_CONNECTION.replace("<key>", name))
          for name in ("rate_limit", "max_concurrency")),
        *QUALIFIERS,
    ),
    is_open=True,
)  # fmt: skip

STRATEGY = Key("strategy", Choice(Strategy), "How rows land.", Strategy.APPEND, code="PZ0334", may_be_blank=False)
KEYS: Key[tuple[str, ...]] = Key(
    "keys", TextList(wanted="a list of column names"), "Columns that identify a row of a merge.", (),
    may_be_blank=False, example="[id]",
)  # fmt: skip
DUPLICATES: Key[str | None] = Key(
    "duplicates", Word(("accept",)), "Accept that an append may deliver a row twice.", None,
    code="PZ0334", may_be_blank=False,
)  # fmt: skip
ON_DELETE: Key[OnDelete | None] = Key(
    "on_delete", Choice(OnDelete), "What a captured delete does; needs strategy: merge.", None,
    code="PZ0334", may_be_blank=False,
)  # fmt: skip
SCHEMA_POLICY = Key(
    "schema_policy", Choice(SchemaPolicy), "What happens when the target's columns differ.",
    SchemaPolicy.FAIL_ON_CHANGE, code="PZ0334", may_be_blank=False,
)  # fmt: skip
WRITE_BLOCK = Block(
    "", "PZ0101", (STRATEGY, KEYS, DUPLICATES, ON_DELETE, SCHEMA_POLICY, RETRY), "Options of a write.",
    (
        Retired("mode", "PZ0333", "mode is now strategy", "write strategy: <value>", placeholder="append"),
        Retired("accept_duplicates", "PZ0333", "accept_duplicates is now duplicates",
                "write duplicates: accept, or remove the key"),
        Retired("write", "PZ0333", "the wrapper write is retired", "write its keys directly, without the wrapper"),
        Retired("input", "PZ0112", "input is removed; the pipeline is the input",
                "start the pipeline's file with INSERT INTO {{ sink('<connection>', '<entity>') }}"),
        Retired("rate_limit", "PZ0318", "rate_limit belongs to the connection",
                _OF_THE_CONNECTION.replace("<key>", "rate_limit")),
        Retired("max_concurrency", "PZ0122", "max_concurrency belongs to the connection",
                _OF_THE_CONNECTION.replace("<key>", "max_concurrency")),
        *QUALIFIERS,
    ),
    is_open=True,
)  # fmt: skip

READ: Key[Table | None] = Key("read", Section(READ_BLOCK), "How it is read; may be empty.", None)
WRITE: Key[Table | None] = Key("write", Section(WRITE_BLOCK), "How it is written; may be empty.", None)
ENTITY_BLOCK = Block("", "PZ0101", (READ, WRITE), "A table, file or endpoint; it needs read, write or both.", least=1)

CONNECTOR = Key(
    "connector", Text(), "Name of the connector.", "", is_required=True, may_be_blank=False, example="localfiles"
)
ENTITIES: Key[Table | None] = Key(
    "entities", MapOf(Section(ENTITY_BLOCK), ENTITY_NAME), "Entities by the names the remote system gives them.", None,
    example="{<entity>: {read: {}}}",
)  # fmt: skip
MAX_CONCURRENCY: Key[int | None] = Key(
    "max_concurrency", Whole(1), "Nodes of this connection that run at once; unlimited when absent.", None,
    code="PZ0122", may_be_blank=False,
)  # fmt: skip
RATE_LIMIT: Key[Table | None] = Key(
    "rate_limit", Section(RATE_LIMIT_BLOCK), "Requests the connection may make.", None,
    code="PZ0318", may_be_blank=False, example="{requests_per_minute: 60}",
)  # fmt: skip
ALLOW_UNSIGNED_EXTENSIONS = Key(
    "allow_unsigned_extensions", Flag(), "Consent to unsigned DuckDB extensions that a connector brings.", False
)
CONNECTION_BLOCK = Block(
    "", "PZ0101", (CONNECTOR, ENTITIES, MAX_CONCURRENCY, RATE_LIMIT, RETRY, ALLOW_UNSIGNED_EXTENSIONS),
    "A place with credentials; further keys belong to its connector, and their values may use ${NAME}.", is_open=True,
)  # fmt: skip
CONNECTIONS = MapOf(
    Section(CONNECTION_BLOCK), CONNECTION_NAME,
    (Retired("outputs", "PZ0347", "outputs is retired",
             "declare a connection and write with INSERT INTO {{ sink('<connection>', '<entity>') }}"),),
)  # fmt: skip
