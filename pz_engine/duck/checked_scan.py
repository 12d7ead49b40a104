"""From a connector's native scan to the statement that lands it.

Text files give text to DuckDB's reader and every value is cast under a test that it stays the same; other scans are
cast to their contract under the same promise. No message holds anything of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TextIO

from msgspec import Struct, field
from msgspec.structs import replace

from pz_engine.base.csv_headers import match_column
from pz_engine.base.csv_records import RaggedRow, UnreadableLine, find_shape_problem
from pz_engine.base.near_miss import did_you_mean
from pz_engine.duck.cast_diagnosis import BadCell, locate
from pz_engine.duck.checked_casts import CastFailure, TextType, checked_cast, failed_cast, recast
from pz_engine.duck.csv_inference import decided_formats, infer_types
from pz_engine.duck.json_diagnosis import json_problem
from pz_engine.duck.quoting import quote_identifier
from pz_engine.duck.session import DuckCursor
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.contract_types import duck_type_of
from pz_engine.model.run import ColumnType

__all__ = ["CastFailure", "ResolvedScan", "Scan", "cast_failure", "recover_scan", "resolve_scan"]

_CSV_ERRORS = ("CSV Error on Line", "reached an invalid state", "does not support a full read on this file")
"""What DuckDB says of a malformed file, of mixed line ends, and of a row longer than its buffer."""

_DATED = frozenset({"DATE", "TIMESTAMP"})


class Scan(Protocol):
    """The parts of a `NativeScan` that landing needs."""

    @property
    def fragment(self) -> str:
        """Usable after `FROM`."""

    @property
    def with_columns(self) -> Callable[[Mapping[str, str]], str] | None:
        """The scan with explicit columns."""

    @property
    def relaxed_with_columns(self) -> Callable[[Mapping[str, str]], str] | None:
        """The same, for mixed line ends."""

    @property
    def header(self) -> tuple[str, ...] | None:
        """Names of the header line."""

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Columns from folder names."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Local files."""

    @property
    def root(self) -> Path | None:
        """Folder that messages leave out of file names."""

    @property
    def delimiter(self) -> str:
        """Field delimiter."""

    @property
    def text_format(self) -> str | None:
        """`csv`, `ndjson`, `json` or None."""

    @property
    def open_text(self) -> Callable[[Path], TextIO] | None:
        """Opens a file as text."""

    @property
    def rejects_ragged(self) -> bool:
        """Ragged rows go to a side table."""

    @property
    def pads_ragged(self) -> bool:
        """Ragged rows are padded."""

    @property
    def nothing_to_read(self) -> PzConnectorError | None:
        """Why there is nothing to read."""

    @property
    def verify(self) -> Callable[[], None] | None:
        """Checks that compressed files are whole."""


_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UBIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")


class ResolvedScan(Struct, frozen=True):
    """A select that lands exactly what the source holds."""

    sql: str
    columns: tuple[ColumnType, ...]
    was_inferred: bool
    types: Mapping[str, TextType] = field(default_factory=dict)
    """Per landed column of a text scan, how its text is read."""

    read_whole_file: bool = False
    is_relaxed: bool = False
    note: str | None = None
    """Something the user should know about how the file was read."""

    @property
    def date_formats(self) -> dict[str, str]:
        """Inferred day-first or month-first formats by column."""
        return {name: kind.format for name, kind in self.types.items() if kind.format is not None and kind.is_inferred}


def resolve_scan(
    cursor: DuckCursor,
    scan: Scan,
    contract: Mapping[str, str] | None,
    *,
    whole_file: bool = False,
    is_relaxed: bool = False,
) -> ResolvedScan:
    """Build the select; looks at the first rows of a text file where types or date formats are open.

    Args:
        cursor: used for looking; free again on return.
        scan: what the connector returned; its setup has run.
        contract: column to contract type, or None; any contract means exactly its columns.
        whole_file: infer from every row instead of the first ones.
        is_relaxed: read mixed line ends; only after every record's number of fields was checked.

    Raises:
        PzConnectorError: there is nothing to read, a column is missing, or a file is malformed.
        DuckStatementError: DuckDB failed for another reason.
    """
    if scan.nothing_to_read is not None:
        raise scan.nothing_to_read
    if scan.rejects_ragged and scan.open_text is not None:
        # DuckDB sets aside whatever it cannot take, so everything but a row's length is looked at first.
        problem = find_shape_problem(scan.files, scan.open_text, scan.delimiter, allow_ragged=True)
        if problem is not None:
            raise _shape_error(problem, scan)
    try:
        if scan.text_format is not None and scan.with_columns is not None:
            return _resolve_text(cursor, scan, contract, whole_file=whole_file, is_relaxed=is_relaxed)
        return _resolve_typed(cursor, scan, contract)
    except DuckStatementError as error:
        unresolved = ResolvedScan("", (), not contract, is_relaxed=is_relaxed, read_whole_file=whole_file)
        again = recover_scan(cursor, scan, contract, unresolved, error)
        if again is None:
            raise
        return again


def recover_scan(
    cursor: DuckCursor,
    scan: Scan,
    contract: Mapping[str, str] | None,
    resolved: ResolvedScan,
    error: DuckStatementError,
) -> ResolvedScan | None:
    """Decide what a failed landing statement means.

    Returns:
        Another select to run instead (its `note` says why), or None when the failure has nothing to do with the file's
        content. Each recovery is offered once, so running the result and calling again terminates.

    Raises:
        PzConnectorError: the file is at fault; names file, line, column and type, never a value.
    """
    failure = failed_cast(error.raw)
    if failure is not None:
        if resolved.was_inferred and not resolved.read_whole_file:
            again = resolve_scan(cursor, scan, contract, whole_file=True, is_relaxed=resolved.is_relaxed)
            note = (
                f"column '{failure.column}' did not fit the type of its first rows, so types come from the whole file"
            )
            return replace(again, note=note)
        raise _misfit(cursor, scan, resolved, failure)
    broken = json_problem(error.raw)
    if broken is not None and scan.files:
        name = _names(scan) if broken.file is None else f"file '{shown(broken.file, scan)}'"
        place = "" if broken.line is None else f", line {broken.line}"
        raise PzConnectorError(f"{name}{place} {broken.reason}", is_transient=False, hint=broken.hint)
    is_csv_error = any(text in error.raw for text in _CSV_ERRORS)
    if scan.text_format != "csv" or scan.open_text is None or not is_csv_error:
        return None
    if scan.verify is not None:
        scan.verify()
    allow_ragged = scan.pads_ragged or scan.rejects_ragged
    problem = find_shape_problem(scan.files, scan.open_text, scan.delimiter, allow_ragged=allow_ragged)
    if problem is not None:
        raise _shape_error(problem, scan)
    if not resolved.is_relaxed and scan.relaxed_with_columns is not None:
        if scan.rejects_ragged:
            raise PzConnectorError(
                "a file mixes several kinds of line end, which 'ragged: reject' cannot read",
                is_transient=False,
                hint="rewrite the file with one kind of line end, or use 'ragged: pad'",
            )
        return resolve_scan(cursor, scan, contract, whole_file=resolved.read_whole_file, is_relaxed=True)
    raise PzConnectorError(
        f"DuckDB cannot read {_names(scan)} as {scan.text_format}: {_first_line(error)}",
        is_transient=False,
        hint="correct the file, or set 'delimiter', 'encoding' or 'compression' to what it uses",
    )


def cast_failure(error: DuckStatementError) -> CastFailure | None:
    """Recognise a value that did not fit its column."""
    return failed_cast(error.raw)


def _resolve_text(
    cursor: DuckCursor, scan: Scan, contract: Mapping[str, str] | None, *, whole_file: bool, is_relaxed: bool
) -> ResolvedScan:
    reader = scan.relaxed_with_columns if is_relaxed else scan.with_columns
    assert reader is not None
    declared = _duck_types(contract)
    names = (*(scan.header if scan.header is not None else declared), *scan.partition_columns)
    own = [name for name in names if name not in scan.partition_columns]
    text = reader(dict.fromkeys(own, "VARCHAR"))
    if contract:
        origin = {name: _require(names, name, scan) for name in declared}
        dated = {origin[name]: kind for name, kind in declared.items() if kind in _DATED}
        formats = decided_formats(cursor, text, dated) if scan.text_format == "csv" else {}
        types = {
            name: TextType(kind, formats.get(origin[name]), is_json=scan.text_format != "csv")
            for name, kind in declared.items()
        }
    else:
        origin = {name: name for name in names}
        free = [name for name in names if name not in scan.partition_columns]
        inferred = infer_types(cursor, text, free, whole_file=whole_file)
        types = {name: inferred.get(name, TextType("VARCHAR")) for name in names}
    items = [
        f"{checked_cast(quote_identifier(origin[name]), kind, name)} as {quote_identifier(name)}"
        for name, kind in types.items()
    ]
    return ResolvedScan(
        f"select {', '.join(items)} from {text}",
        tuple(ColumnType(name, kind.type) for name, kind in types.items()),
        was_inferred=not contract,
        types=types,
        read_whole_file=whole_file,
        is_relaxed=is_relaxed,
    )


def _resolve_typed(cursor: DuckCursor, scan: Scan, contract: Mapping[str, str] | None) -> ResolvedScan:
    everything = f"select * from {scan.fragment}"
    if not contract:
        return ResolvedScan(everything, cursor.describe(everything), was_inferred=True, read_whole_file=True)
    found = {column.name: column.type for column in cursor.describe(everything)}
    items: list[str] = []
    declared = _duck_types(contract)
    for name, kind in declared.items():
        origin = _require(tuple(found), name, scan)
        items.append(f"{recast(quote_identifier(origin), found[origin], kind, name)} as {quote_identifier(name)}")
    return ResolvedScan(
        f"select {', '.join(items)} from {scan.fragment}",
        tuple(ColumnType(name, kind) for name, kind in declared.items()),
        was_inferred=False,
        read_whole_file=True,
    )


def _duck_types(contract: Mapping[str, str] | None) -> dict[str, str]:
    declared: dict[str, str] = {}
    for name, kind in (contract or {}).items():
        duck_type = duck_type_of(kind)
        if duck_type is None:
            raise PzConnectorError(f"column '{name}' declares the unknown type '{kind}'", is_transient=False)
        declared[name] = duck_type
    return declared


def _require(names: tuple[str, ...], wanted: str, scan: Scan) -> str:
    found = match_column(names, wanted)
    if found is None:
        raise PzConnectorError(
            f"column '{wanted}' of the contract is not in {_names(scan)}",
            is_transient=False,
            code="PZ0353",
            hint=did_you_mean(wanted, names) or f"the columns are: {', '.join(names)}",
        )
    return found


def _misfit(cursor: DuckCursor, scan: Scan, resolved: ResolvedScan, failure: CastFailure) -> PzConnectorError:
    target = resolved.types.get(failure.column, TextType(failure.type))
    cell: BadCell | None = locate(cursor, scan, failure.column, target) if scan.text_format is not None else None
    place = "the source" if cell is None else f"file '{shown(cell.file, scan)}'"
    if cell is not None and cell.line is not None:
        place += f", line {cell.line}"
    return PzConnectorError(
        f"{place}: column '{failure.column}' holds a value that {failure.type} cannot take unchanged",
        is_transient=False,
        hint=_remedy(scan, failure.column, target.type),
    )


def _remedy(scan: Scan, column: str, kind: str) -> str:
    """Say what to do about a value.

    DuckDB reads a json number with a point as a double, also into a text column, so varchar is no advice for one.
    """
    is_json_number = scan.text_format in {"ndjson", "json"} and kind.startswith(_NUMBERS)
    if is_json_number and kind.startswith("DECIMAL"):
        return (
            f"declare '{column}' with enough digits; beyond 15 of them put the numbers into quotes in the file, declare "
            "varchar and cast in the pipeline, or declare double if they may be rounded"
        )
    fitting = "a wider number, or varchar for words" if is_json_number else "such as varchar"
    return f"correct the file, or declare '{column}' with a type that holds the value, {fitting}"


def _shape_error(problem: RaggedRow | UnreadableLine, scan: Scan) -> PzConnectorError:
    if isinstance(problem, RaggedRow):
        return PzConnectorError(
            f"file '{shown(problem.file, scan)}', line {problem.line}: expected {problem.expected} fields, "
            f"found {problem.found}",
            is_transient=False,
            hint="correct the file, or set 'ragged: pad' to fill up such rows or 'ragged: reject' to set them aside",
        )
    line = "" if problem.line is None else f", line {problem.line}"
    return PzConnectorError(
        f"file '{shown(problem.file, scan)}'{line} {problem.reason}",
        is_transient=False,
        hint="correct the file, or set 'encoding' or 'delimiter' to what it uses",
    )


def _names(scan: Scan) -> str:
    if not scan.files:
        return "the source"
    first = f"file '{shown(scan.files[0], scan)}'"
    return first if len(scan.files) == 1 else f"{first} and {len(scan.files) - 1} more"


def shown(path: Path, scan: Scan) -> str:
    """Return a file's name for messages."""
    if scan.root is not None and path.is_relative_to(scan.root):
        return path.relative_to(scan.root).as_posix()
    return path.name


def _first_line(error: DuckStatementError) -> str:
    kept = [line for line in error.summary.splitlines() if not line.startswith("Original Line")]
    return kept[0].partition(": ")[2] or kept[0] if kept else error.kind
