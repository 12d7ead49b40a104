"""What a connector hands to DuckDB: setup steps, scans and copies, all of it text that the engine runs.

Every identifier and literal in a fragment is quoted by the connector; credentials ride in setup steps only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from msgspec import Struct

from pz_engine.errors.exceptions import PzConnectorError

SOURCE_PLACEHOLDER = "{{source}}"
"""Stands for the staged relation in the statements of a `NativeCopy`."""


class ExtensionStep(Struct, frozen=True):
    """Setup: load a DuckDB extension; answered from installed packages, never downloaded unless allowed."""

    name: str


@dataclass(frozen=True, slots=True)
class SecretStep:
    """Setup: create a temporary secret."""

    name: str
    sql: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SettingStep:
    """Setup: a `set …` statement."""

    sql: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class AttachStep:
    """Setup: attach a database once under a connection-specific alias."""

    alias: str
    path: str = field(repr=False)
    options: tuple[str, ...] = ()
    """Attach options without `read_only`, which the engine adds when nothing in the run writes the connection."""


SetupStep = ExtensionStep | SecretStep | SettingStep | AttachStep


class NativeScan(Struct, frozen=True):
    """A source that DuckDB reads itself."""

    fragment: str
    """Usable after `FROM`; every identifier and literal in it is quoted."""

    mechanism: str
    """Short label for plan reasons, for example `read_csv`."""

    setup: tuple[SetupStep, ...] = ()
    bounds_pushed: bool = False
    """False: the engine wraps the fragment in the bounds."""

    schema_inferred: bool = False
    with_columns: Callable[[Mapping[str, str]], str] | None = None
    """Csv and tsv: the same scan with the given columns (name to DuckDB type, whole header in file order) and nothing
    inferred. The engine passes VARCHAR for a column it casts and checks itself."""

    header: tuple[str, ...] | None = None
    """Csv and tsv: column names of the header line, in file order."""

    files: tuple[Path, ...] = ()
    """Local files the scan reads, in the order of the scan."""

    table: str | None = None
    """The one table the scan reads, as a statement's profile spells it (`database.schema.table`)."""

    delimiter: str = ","
    encoding: str = "utf-8"
    rejects_ragged: bool = False
    """`ragged: reject`: rows with another number of fields go to a side table."""

    relaxed_with_columns: Callable[[Mapping[str, str]], str] | None = None
    """Csv and tsv: `with_columns` for files with several kinds of line end. DuckDB then cuts surplus fields silently,
    so the engine uses it only after it counted the fields itself."""

    partition_columns: tuple[str, ...] = ()
    """Text columns that come from `key=value` folders, in addition to the file's own."""

    text_format: str | None = None
    """`csv`, `ndjson` or `json` when values are text that the engine casts and checks; None for typed scans."""

    open_text: Callable[[Path], TextIO] | None = None
    """Opens one of `files` as text, decompressed, undecodable bytes kept as surrogates; used to find a bad line."""

    pads_ragged: bool = False
    """`ragged: pad`: missing fields are NULL and `header` holds names for the surplus ones."""

    root: Path | None = None
    """Messages name `files` relative to it."""

    readers: int = 1
    """Number of readers the fragment is made of; only a single one can be counted inside a larger statement."""

    verify: Callable[[], None] | None = None
    """Checks what DuckDB does not: that compressed files are whole; raises `PzConnectorError` naming the file."""

    nothing_to_read: PzConnectorError | None = None
    """Why the scan cannot run: nothing matched, or a file is not readable. Planning ignores it, landing raises it."""


class FileMove(Struct, frozen=True):
    """A finished temporary file and its final name."""

    temporary: Path
    final: Path


class NativeCopy(Struct, frozen=True):
    """A destination that DuckDB writes itself."""

    statements: tuple[str, ...]
    """Run in order, with `{{source}}` replaced; the last one's row count is the node's."""

    mechanism: str
    setup: tuple[SetupStep, ...] = ()
    is_transactional: bool = False
    """Run all statements in one transaction."""

    decimal_hugeint: bool = False
    """The format would write HUGEINT as DOUBLE: cast such columns to DECIMAL(38,0) first."""

    target_table: str | None = None
    """Quoted name of a table whose columns the engine reconciles under the schema policy before the statements."""

    delete_sql: str | None = None
    """With `{{deletes}}`: applies captured deletes after the statements, in the same transaction."""

    finalizations: tuple[FileMove, ...] = ()
    location: str | None = None
    """Where the rows land, for people: a path or a table, never a credential."""

    identity: str | None = None
    """What is written, so that two outputs with one target are refused; None when every write makes something new."""
