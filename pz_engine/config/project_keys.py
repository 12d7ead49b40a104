"""Every key of `project.yml`."""

from __future__ import annotations

from datetime import timedelta

from pz_engine.config.definitions import Block, Either, Key, ListOf, MapOf, Retired, Section, Variants
from pz_engine.config.kinds import (
    Anything,
    Choice,
    Duration,
    Flag,
    Off,
    SingleValue,
    Switch,
    Text,
    Whole,
    Word,
)
from pz_engine.config.located import Listing, Table
from pz_engine.model.policies import DriftPolicy
from pz_engine.model.project import EngineSettings, Project, StateSettings

_ENGINE = EngineSettings()
_STATE = StateSettings()
_KEEP = Project("", "").retention_keep_last or 0

NAME = Key("name", Text(), "Name of the project.", "", is_required=True, may_be_blank=False)
VERSION = Key(
    "version", Text(takes_numbers=True), "Version of the project, kept as it is typed.", "",
    is_required=True, may_be_blank=False, example='"1.0"',
)  # fmt: skip
PZ: Key[str | None] = Key("pz", SingleValue(), "Version of pz the project is made for; not enforced.", None)

PACKAGE = Key("package", Text(), "Distribution that brings the connector.", "", is_required=True, may_be_blank=False)
PACKAGE_VERSION = Key(
    "version", Text(wanted="quoted text"), "Exact version, in quotes.", "", is_required=True, may_be_blank=False,
    example='"1.0.0"',
)  # fmt: skip
CONNECTOR_ENTRY = Block("connectors", "PZ0101", (PACKAGE, PACKAGE_VERSION), "An external connector.")
CONNECTORS: Key[Listing | None] = Key(
    "connectors", ListOf(Section(CONNECTOR_ENTRY)), "External connectors; the built-in ones need no entry.", None,
    example='[{package: <name>, version: "1.0.0"}]',
)  # fmt: skip
VARS: Key[Table | None] = Key(
    "vars", MapOf(Anything()), "Variables for var(); values may use ${NAME}, and --vars replaces them name by name.",
    None, code="PZ0102", example="{name: value}",
)  # fmt: skip

MEMORY_LIMIT: Key[str | None] = Key(
    "memory_limit", Text(takes_numbers=True), "DuckDB's memory limit.", None, example="1GB"
)
DUCKDB_THREADS: Key[int | None] = Key("threads", Whole(1), "Threads of DuckDB's own pool.", None)
TEMP_DIRECTORY: Key[str | None] = Key(
    "temp_directory", Text(takes_numbers=True), "Folder DuckDB spills to.", None, example=".pz/tmp"
)
ALLOW_EXTENSION_DOWNLOAD = Key(
    "allow_extension_download", Flag(), "May DuckDB download an extension that is not installed.",
    _ENGINE.duckdb.allow_extension_download,
)  # fmt: skip
DUCKDB_BLOCK = Block(
    "engine.duckdb", "PZ0120", (MEMORY_LIMIT, DUCKDB_THREADS, TEMP_DIRECTORY, ALLOW_EXTENSION_DOWNLOAD)
)

FAILURE_THRESHOLD: Key[int | None] = Key(
    "failure_threshold", Whole(1), "Transient failures in a row that open the breaker.", None,
    is_required=True, may_be_blank=False, example="5",
)  # fmt: skip
COOL_DOWN: Key[timedelta | None] = Key(
    "cool_down", Duration(), "Shortest time the breaker stays open.", None, is_required=True, may_be_blank=False
)
BREAKER_BLOCK = Block("engine.breaker", "PZ0120", (FAILURE_THRESHOLD, COOL_DOWN))

THREADS = Key("threads", Whole(1), "Nodes that run at once.", _ENGINE.threads)
BATCH_BYTES = Key(
    "batch_bytes", Whole(1_048_576, 536_870_912), "Size of an Arrow batch on the universal path.", _ENGINE.batch_bytes,
    example="33554432",
)  # fmt: skip
FORCE_UNIVERSAL = Key(
    "force_universal", Flag(), "Never let DuckDB read or write files itself.", _ENGINE.force_universal
)
FUSION = Key("fusion", Switch(), "Stream through relations that nothing else needs.", _ENGINE.fusion)
CHECK_SAMPLES = Key("check_samples", Flag(), "Show sample rows of failed checks.", _ENGINE.check_samples)
NODE_TIMEOUT: Key[timedelta | None] = Key("node_timeout", Duration(), "Limit of one attempt of a node.", None)
DUCKDB: Key[Table | None] = Key("duckdb", Section(DUCKDB_BLOCK), "Settings of DuckDB itself.", None)
BREAKER: Key[Table | None] = Key(
    "breaker", Section(BREAKER_BLOCK), "Stops trying a connection that keeps failing; none when absent.", None,
    may_be_blank=False, example="{failure_threshold: 5, cool_down: 30s}",
)  # fmt: skip
ENGINE_BLOCK = Block(
    "engine", "PZ0120",
    (THREADS, BATCH_BYTES, FORCE_UNIVERSAL, FUSION, CHECK_SAMPLES, NODE_TIMEOUT, DUCKDB, BREAKER),
)  # fmt: skip
ENGINE: Key[Table | None] = Key("engine", Section(ENGINE_BLOCK), "How runs are executed.", None, code="PZ0120")

KEEP_LAST = Key(
    "keep_last", Whole(1), "Runs that keep their staging database.", _KEEP, is_required=True, may_be_blank=False,
    example=str(_KEEP),
)  # fmt: skip
RETENTION_BLOCK = Block("retention", "PZ0123", (KEEP_LAST,))
OFF = Off()
RETENTION: Key[object] = Key(
    "retention", Either((OFF, Section(RETENTION_BLOCK))), f"What is kept of past runs; keep_last: {_KEEP} when absent.",
    None, code="PZ0123", may_be_blank=False, example=f"{{keep_last: {_KEEP}}}",
)  # fmt: skip

BACKEND = Key(
    "backend", Word(("local", "sqlserver", "postgres", "http")), "Where state lives; else PZ_STATE_BACKEND.",
    _STATE.backend, may_be_blank=False,
)  # fmt: skip
STATE_CONNECTION: Key[str | None] = Key(
    "connection", Text(), "Connection of a SQL backend; else PZ_STATE_CONNECTION_STRING.", None, example="<name>"
)
STATE_SCHEMA: Key[str | None] = Key(
    "schema", Text(), "Schema of the state tables; else PZ_STATE_SCHEMA, else pz.", None
)
ARTIFACTS: Key[bool | None] = Key(
    "artifacts", Flag(), "Keep run results there too; else PZ_STATE_ARTIFACTS, else true for SQL.", None
)
EVENTS: Key[bool | None] = Key("events", Flag(), "Keep run events there too; else PZ_STATE_EVENTS, else false.", None)
URL: Key[str | None] = Key(
    "url", Text(), "Address of an http backend; else PZ_STATE_URL.", None, code="PZ0125", example="https://..."
)
TIMEOUT_SECONDS: Key[int | None] = Key(
    "timeout_seconds", Whole(1), f"Limit of one request; else PZ_STATE_TIMEOUT_SECONDS, else {_STATE.timeout_seconds}.",
    None, example=str(_STATE.timeout_seconds),
)  # fmt: skip
_SQL_KEYS = (BACKEND, STATE_CONNECTION, STATE_SCHEMA, ARTIFACTS, EVENTS)
_TOKEN = Retired(
    "token", "PZ0124", "state.token may not be written in a file", "set PZ_STATE_TOKEN instead", placeholder=""
)
STATE_BLOCKS = {
    "local": Block("state", "PZ0124", (BACKEND,), retired=(_TOKEN,)),
    "sqlserver": Block("state", "PZ0124", _SQL_KEYS, retired=(_TOKEN,)),
    "postgres": Block("state", "PZ0124", _SQL_KEYS, retired=(_TOKEN,)),
    "http": Block("state", "PZ0124", (BACKEND, ARTIFACTS, EVENTS, URL, TIMEOUT_SECONDS), retired=(_TOKEN,)),
}
STATE: Key[Table | None] = Key(
    "state", Variants(BACKEND, tuple(STATE_BLOCKS.items())), "Where watermarks and other state are kept.", None,
    code="PZ0124", may_be_blank=False, example="{backend: local}",
)  # fmt: skip
ON_SOURCE_DRIFT = Key(
    "on_source_drift", Choice(DriftPolicy), "What a source's changed schema does to a run.", DriftPolicy.IGNORE,
    code="PZ0126", may_be_blank=False,
)  # fmt: skip

PROJECT = Block(
    "", "PZ0101", (NAME, VERSION, PZ, CONNECTORS, VARS, ENGINE, RETENTION, STATE, ON_SOURCE_DRIFT),
    "Name and settings of a pz project.",
    (
        Retired("outputs", "PZ0347", "outputs is retired",
                "declare the connection in connections.yml and write with INSERT INTO {{ sink('<connection>', '<entity>') }}"),
        Retired("feeds", "PZ0352", "feeds is retired", "remove it; connectors are installed with pip"),
    ),
)  # fmt: skip
