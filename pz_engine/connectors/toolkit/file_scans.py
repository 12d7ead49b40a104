"""Native scans over local files: the text after `FROM`, one builder for every format.

Columns of csv and tsv bind by header name. DuckDB binds a column map by position when it does not detect anything, so
the map always has the whole header of a file in the file's order, and files with another order get their own reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from pz_engine.base.csv_headers import header_names, match_column
from pz_engine.base.csv_records import LONGEST_ROW_BYTES
from pz_engine.base.near_miss import did_you_mean
from pz_engine.connectors.fragments import NativeScan
from pz_engine.connectors.toolkit.file_options import FileReadOptions
from pz_engine.connectors.toolkit.parquet_files import folder_column_clash, parquet_check
from pz_engine.connectors.toolkit.text_files import (
    is_any_compressed,
    padded_names,
    read_header,
    refuse_repeated,
    text_opener,
    whole_files_check,
    widest_record,
)
from pz_engine.duck.quoting import quote_identifier, quote_literal
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.contract_types import duck_type_of

REJECTS_TABLE = "pz_csv_rejects"
"""Temporary table of the scanning cursor in which DuckDB collects rejected rows."""

REJECT_SCANS_TABLE = "pz_csv_reject_scans"
_BUFFER_BYTES = 2 * LONGEST_ROW_BYTES
"""DuckDB's own default, about; left alone it would grow with the longest row, sixteen times as much."""

_EVERY_FILE = 2**31 - 1
_GLOB_CHARACTERS = str.maketrans({"*": "[*]", "?": "[?]", "[": "[[]"})


class FileSet(Struct, frozen=True):
    """The files one entity is read from."""

    files: tuple[Path, ...]
    root: Path
    partition_columns: tuple[str, ...]
    described_as: str
    """What the user wrote, for messages."""

    pattern_text: str = ""
    """The path or pattern alone."""

    is_folder: bool = False
    """The path is the name of a folder."""

    is_window: bool = False
    """Only the folders of a window: none of them may exist, and that is zero rows under a contract."""


def nothing_matched(found: FileSet) -> PzConnectorError:
    """Describe a read whose path or pattern stands for no file."""
    if found.is_folder:
        return PzConnectorError(
            f"{found.described_as} is a folder, not a file",
            is_transient=False,
            hint=f"add a pattern for the files in it, for example path: {found.pattern_text.rstrip('/')}/*",
        )
    return PzConnectorError(
        f"{found.described_as} matches no file",
        is_transient=False,
        hint="correct 'path', which starts from the connection's root, or set on_empty: zero_rows with columns",
    )


def contentless(name: str, options: FileReadOptions) -> PzConnectorError:
    """Describe a file of zero bytes."""
    lacks = "not even a header line" if options.is_delimited else "it has no object at all"
    return PzConnectorError(
        f"file '{name}' is empty, {lacks}",
        is_transient=False,
        hint="fetch the file again, or set on_empty: zero_rows with columns",
    )


def build_scan(found: FileSet, options: FileReadOptions, contract: Mapping[str, str] | None) -> NativeScan:
    """Return the scan of a set of files; reads the header lines of csv and tsv.

    Raises:
        PzConnectorError: a contract column is in no header (`PZ0353`), or a file has no usable header.
    """
    if not found.files:
        return _empty_scan(found, options, contract)
    if options.is_delimited:
        scan = _delimited_scan(found, options, contract)
    elif options.format == "json":
        scan = _json_scan(found, options, contract)
    else:
        scan = NativeScan(
            fragment=f"read_parquet({_file_list(found.files)}{_union(found)}{_hive(found)})",
            mechanism="read_parquet",
            verify=parquet_check(found.files, found.partition_columns, contract, lambda path: shown(found, path)),
        )
    if options.format != "parquet" and is_any_compressed(found.files, options.compression):
        check = whole_files_check(found.files, options.compression, lambda path: shown(found, path))
        scan = replace(scan, verify=check)
    return replace(scan, files=found.files, root=found.root, partition_columns=found.partition_columns)


def _empty_scan(found: FileSet, options: FileReadOptions, contract: Mapping[str, str] | None) -> NativeScan:
    mechanism = "read_csv" if options.is_delimited else f"read_{options.format}"
    if (options.allows_no_files or found.is_window) and contract:
        columns = ", ".join(
            f"cast(null as {duck_type_of(kind) or 'VARCHAR'}) as {quote_identifier(name)}"
            for name, kind in contract.items()
        )
        return NativeScan(fragment=f"(select {columns} where false)", mechanism=mechanism, root=found.root)
    return replace(_unreadable_scan(mechanism, nothing_matched(found)), schema_inferred=not contract, root=found.root)


def _json_scan(found: FileSet, options: FileReadOptions, contract: Mapping[str, str] | None) -> NativeScan:
    layout = "array" if options.layout == "array" else "newline_delimited"
    fixed = f"{_file_list(found.files)}, format='{layout}', records=true, compression={quote_literal(_json_compression(options))}{_hive(found)}"
    if contract:

        def with_columns(columns: Mapping[str, str]) -> str:
            own = {name: kind for name, kind in columns.items() if match_column(found.partition_columns, name) is None}
            return f"read_json({fixed}, auto_detect=false, columns={_column_map(own)})"

        return NativeScan(
            fragment=with_columns(dict.fromkeys(contract, "VARCHAR")),
            mechanism="read_json",
            with_columns=with_columns,
            header=tuple(name for name in contract if match_column(found.partition_columns, name) is None),
            text_format="ndjson" if options.layout == "ndjson" else "json",
            open_text=text_opener("utf-8", options.compression),
        )
    if all(path.stat().st_size == 0 for path in found.files):
        return _contentless_scan(found, options, "read_json")
    whole = f"sample_size=-1, maximum_sample_files={_EVERY_FILE}{_union(found)}"
    return NativeScan(fragment=f"read_json({fixed}, {whole})", mechanism="read_json", schema_inferred=True)


class _HeaderGroup(Struct, frozen=True):
    """Files whose header lines are the same."""

    names: tuple[str, ...]
    files: tuple[Path, ...]
    is_read: bool = True
    """False when the names are the contract's, because no file has a header."""


def _delimited_scan(found: FileSet, options: FileReadOptions, contract: Mapping[str, str] | None) -> NativeScan:
    open_text = text_opener(options.encoding, options.compression)
    try:
        groups = _header_groups(found, options, contract)
    except PzConnectorError as error:
        if error.code is not None:
            raise
        return _unreadable_scan("read_csv", error)
    if not groups:
        if not (contract and options.allows_no_files):
            return _contentless_scan(found, options, "read_csv")
        groups = [_HeaderGroup(tuple(contract), found.files, is_read=False)]
    for group in groups:
        for column in found.partition_columns:
            if group.is_read and match_column(group.names, column) is not None:
                return _unreadable_scan("read_csv", folder_column_clash(shown(found, group.files[0]), column))
    header = _common_names(found, groups, contract)

    def reader(columns: Mapping[str, str], *, is_strict: bool) -> str:
        parts = [_read_csv(found, group, options, columns, is_strict=is_strict) for group in groups]
        if len(parts) == 1:
            return parts[0]
        wanted = ", ".join(quote_identifier(name) for name in (*columns, *found.partition_columns))
        return "(" + " union all ".join(f"select {wanted} from {part}" for part in parts) + ")"

    def with_columns(columns: Mapping[str, str]) -> str:
        return reader(columns, is_strict=True)

    def relaxed_with_columns(columns: Mapping[str, str]) -> str:
        return reader(columns, is_strict=False)

    return NativeScan(
        fragment=with_columns(dict.fromkeys(header, "VARCHAR")),
        mechanism="read_csv",
        schema_inferred=not contract,
        with_columns=with_columns,
        relaxed_with_columns=relaxed_with_columns,
        header=header,
        delimiter=options.delimiter,
        encoding=options.encoding,
        rejects_ragged=options.ragged == "reject",
        pads_ragged=options.ragged == "pad",
        text_format="csv",
        open_text=open_text,
        readers=len(groups),
    )


def _header_groups(found: FileSet, options: FileReadOptions, contract: Mapping[str, str] | None) -> list[_HeaderGroup]:
    """Read the header of every file; a file without a single byte of content belongs to no group.

    Raises:
        PzConnectorError: with `PZ0353`, the columns do not fit the contract; without a code, a file cannot be read.
    """
    encoding, compression = options.encoding, options.compression
    by_names: dict[tuple[str, ...], list[Path]] = {}
    for path in found.files:
        name_of_file = shown(found, path)
        fields = read_header(path, encoding, compression, options.delimiter, shown_as=name_of_file)
        if not fields:
            continue
        refuse_repeated(fields, contract or (), name_of_file)
        names = header_names(fields)
        if options.ragged == "pad":
            width = widest_record(path, encoding, compression, options.delimiter, shown_as=name_of_file)
            names = padded_names(names, width)
        by_names.setdefault(names, []).append(path)
    return [_HeaderGroup(names, tuple(paths)) for names, paths in by_names.items()]


def _common_names(
    found: FileSet, groups: Sequence[_HeaderGroup], contract: Mapping[str, str] | None
) -> tuple[str, ...]:
    """Return the columns every file has, in the order of the first; complain about those a read would lose."""
    first = groups[0]
    for group in groups:
        known = (*group.names, *found.partition_columns)
        for name in contract or first.names:
            if match_column(known, name) is None:
                raise PzConnectorError(
                    f"column '{name}' is not in the header of file '{shown(found, group.files[0])}'",
                    is_transient=False,
                    code="PZ0353",
                    hint=did_you_mean(name, known) or f"the columns are: {', '.join(known)}",
                )
        surplus = [name for name in group.names if match_column(first.names, name) is None]
        if surplus and not contract:
            raise PzConnectorError(
                f"file '{shown(found, group.files[0])}' has a column '{surplus[0]}' that "
                f"'{shown(found, first.files[0])}' lacks",
                is_transient=False,
                code="PZ0353",
                hint="declare the columns that every file has under 'columns'",
            )
    return tuple(
        name
        for name in first.names
        if match_column(found.partition_columns, name) is None
        and all(match_column(group.names, name) is not None for group in groups)
    )


def _read_csv(
    found: FileSet, group: _HeaderGroup, options: FileReadOptions, columns: Mapping[str, str], *, is_strict: bool
) -> str:
    canonical = {match_column(group.names, name): name for name in columns}
    own: dict[str, str] = {}
    for name in group.names:
        spelled = canonical.get(name)
        own[spelled or name] = columns[spelled] if spelled is not None else "VARCHAR"
    settings = [
        "header=true",
        "auto_detect=false",
        f"delim={quote_literal(options.delimiter)}",
        "quote='\"'",
        "escape='\"'",
        f"columns={_column_map(own)}",
        f"max_line_size={LONGEST_ROW_BYTES}",
        f"buffer_size={_BUFFER_BYTES}",
    ]
    if not is_strict:
        settings.append("strict_mode=false")
    if options.encoding != "utf-8":
        settings.append(f"encoding={quote_literal(options.encoding)}")
    if options.compression != "auto":
        settings.append(f"compression={quote_literal(options.compression)}")
    if options.ragged == "pad":
        settings += ["null_padding=true", "parallel=false"]
    if options.ragged == "reject":
        # Several readers of one file drop a row that is longer than a buffer without a record of it.
        settings += [
            "parallel=false",
            "store_rejects=true",
            f"rejects_table='{REJECTS_TABLE}'",
            f"rejects_scan='{REJECT_SCANS_TABLE}'",
        ]
    return f"read_csv({_file_list(group.files)}, {', '.join(settings)}{_hive(found)})"


def _column_map(columns: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{quote_literal(name)}: {quote_literal(kind)}" for name, kind in columns.items()) + "}"


def _file_list(files: Sequence[Path]) -> str:
    return "[" + ", ".join(quote_literal(str(path).translate(_GLOB_CHARACTERS)) for path in files) + "]"


def _union(found: FileSet) -> str:
    return ", union_by_name=true" if len(found.files) > 1 else ""


def _hive(found: FileSet) -> str:
    if not found.partition_columns:
        return ", hive_partitioning=false"
    return ", hive_partitioning=true, hive_types_autocast=false"


def _contentless_scan(found: FileSet, options: FileReadOptions, mechanism: str) -> NativeScan:
    """A file without a single byte was probably cut off: the load fails; no rows at all are spelled differently."""
    return _unreadable_scan(mechanism, contentless(shown(found, found.files[0]), options))


def _unreadable_scan(mechanism: str, reason: PzConnectorError) -> NativeScan:
    return NativeScan(
        fragment="(select 1 where false)", mechanism=mechanism, schema_inferred=True, nothing_to_read=reason
    )


def shown(found: FileSet, path: Path) -> str:
    """Return a file's name for messages."""
    return path.relative_to(found.root).as_posix() if path.is_relative_to(found.root) else path.name


def _json_compression(options: FileReadOptions) -> str:
    return "auto_detect" if options.compression == "auto" else options.compression
