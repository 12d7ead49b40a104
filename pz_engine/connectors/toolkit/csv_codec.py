"""Csv and tsv as Arrow batches: columns bind by header name and keep the contract's order."""

from __future__ import annotations

import contextlib
import csv
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from pz_engine.base.cancellation import CancelToken
from pz_engine.base.csv_headers import header_names, match_column
from pz_engine.base.csv_records import LONGEST_ROW_BYTES, RaggedRow, csv_records, find_shape_problem
from pz_engine.base.file_versions import FileVersion
from pz_engine.base.near_miss import did_you_mean
from pz_engine.connectors.api import BatchOptions
from pz_engine.connectors.toolkit.csv_quotes import QuoteWatch, WatchedStream
from pz_engine.connectors.toolkit.csv_split import MOST_PIECE_BYTES, CsvRange
from pz_engine.connectors.toolkit.file_options import FileReadOptions
from pz_engine.connectors.toolkit.text_files import (
    compression_of,
    file_reading,
    open_bytes,
    read_header,
    refuse_repeated,
    text_opener,
)
from pz_engine.connectors.toolkit.text_values import MisfitError, contract_schema, typed
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.contract_types import duck_type_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CsvPartition", "contract_schema"]

_PADDED_CHUNK_ROWS = 8192


class _ColumnMisfitError(Exception):
    """A text of a column is not exactly a value of its type."""

    def __init__(self, column: str, position: int) -> None:
        self.column, self.position = column, position
        super().__init__(column)


class _Header(Struct, frozen=True):
    """The first line of a file."""

    fields: Sequence[str]
    positions: Mapping[str, int | None]
    """Field of each column of the contract, in its order; None for one that a folder gives."""


class CsvPartition(Struct, frozen=True):
    """Some of an entity's files, read one after another."""

    files: Sequence[Path]
    root: Path
    options: FileReadOptions
    contract: Mapping[str, str]
    partition_columns: tuple[str, ...]

    part: CsvRange | None = None
    """What to read of the only file; None stands for all of it."""

    def read(self, options: BatchOptions, cancel: CancelToken) -> Iterator[pa.RecordBatch]:
        """Yield batches in the order of the files.

        Raises:
            PzConnectorError: a file is missing, malformed, lacks a column, or holds a value that does not fit.
            Cancelled: the token was set.
        """
        for path in self.files:
            operation = f"reading file '{self._shown(path)}'"
            with file_reading(operation, compression_of(path, self.options.compression)):
                version = FileVersion.at(path) if self.part is None else self.part.version
                if self.part is None:
                    yield from self._read_file(path, options, cancel)
                else:
                    yield from self._read_range(path, self.part, options, cancel)
                if FileVersion.at(path) != version:
                    raise self._changed(path)

    def _read_file(self, path: Path, options: BatchOptions, cancel: CancelToken) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        row = 0
        header = self._header(path)
        if header is None:
            return
        is_padded = self.options.ragged == "pad"
        chunks = self._padded_chunks(path) if is_padded else self._arrow_chunks(path, header.fields)
        try:
            for chunk in chunks:
                batch = self._typed_batch(path, header, chunk)
                yield from _slices(batch, options, cancel)
                row += batch.num_rows
        except _ColumnMisfitError as misfit:
            raise self._misfit(path, misfit, row) from None
        except pa.ArrowInvalid:
            if not self._is_header_only(path):
                raise self._malformed(path) from None

    def _read_range(
        self, path: Path, part: CsvRange, options: BatchOptions, cancel: CancelToken
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        share = replace(options, target_bytes=max(1, options.target_bytes // part.readers))
        header = self._header(path)
        if header is None:
            raise self._changed(path)
        try:
            for chunk in self._range_chunks(path, header.fields, part, share.target_bytes):
                yield from _slices(self._typed_batch(path, header, chunk), share, cancel)
        except (_ColumnMisfitError, pa.ArrowInvalid):
            self._raise_first_fault(cancel)
            raise self._changed(path) from None

    def _raise_first_fault(self, cancel: CancelToken) -> None:
        """Read the file from its beginning, so that what is reported is what a single reader would have met first."""
        for _ in replace(self, part=None).read(BatchOptions(), cancel):
            cancel.raise_if_set()

    def _header(self, path: Path) -> _Header | None:
        options, shown = self.options, self._shown(path)
        fields = read_header(path, options.encoding, options.compression, options.delimiter, shown_as=shown)
        if not fields:
            return None
        refuse_repeated(fields, self.contract, shown)
        return _Header(fields, self._positions(path, header_names(fields)))

    def _positions(self, path: Path, names: tuple[str, ...]) -> dict[str, int | None]:
        positions: dict[str, int | None] = {}
        for wanted in self.contract:
            if match_column(self.partition_columns, wanted) is not None:
                positions[wanted] = None
                continue
            found = match_column(names, wanted)
            if found is None and wanted.startswith("extra_") and self.options.ragged == "pad":
                positions[wanted] = len(names) + int(wanted.removeprefix("extra_")) - 1
            elif found is None:
                raise PzConnectorError(
                    f"column '{wanted}' is not in the header of file '{self._shown(path)}'",
                    is_transient=False,
                    code="PZ0353",
                    hint=did_you_mean(wanted, names) or f"the columns are: {', '.join(names)}",
                )
            else:
                positions[wanted] = names.index(found)
        return positions

    def _arrow_chunks(self, path: Path, fields: Sequence[str]) -> Iterator[list[pa.Array]]:
        from pyarrow import csv as arrow_csv

        watch = QuoteWatch(self.options.delimiter)
        with open_bytes(path, self.options.compression) as stream:
            read_options = arrow_csv.ReadOptions(block_size=LONGEST_ROW_BYTES, encoding=self.options.encoding)
            watched = WatchedStream(stream, watch)
            for batch in arrow_csv.open_csv(watched, read_options=read_options, **self._parsing(fields)):
                self._decide(path, watch)
                yield batch.columns
        self._decide(path, watch)

    def _range_chunks(
        self, path: Path, fields: Sequence[str], part: CsvRange, target_bytes: int
    ) -> Iterator[list[pa.Array]]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        with path.open("rb") as stream:
            if FileVersion.of(stream) != part.version:
                raise self._changed(path)
            for start, end in part.pieces(min(target_bytes, MOST_PIECE_BYTES)):
                stream.seek(start)
                data = stream.read(end - start)
                if len(data) < end - start:
                    raise self._changed(path)
                table = arrow_csv.read_csv(
                    pa.BufferReader(data),
                    # One block, for a piece is never cut within a record, and the other readers keep the processors busy.
                    read_options=arrow_csv.ReadOptions(
                        use_threads=False, block_size=len(data) + 1, column_names=list(fields)
                    ),
                    **self._parsing(fields),
                )
                yield [column.chunk(0) for column in table.columns]

    def _decide(self, path: Path, watch: QuoteWatch) -> None:
        """Let a strict reader decide about doubtful quotes, once; Arrow takes them off without a word.

        Raises:
            PzConnectorError: permanent; the file breaks the rules.
        """
        if watch.is_doubtful and not watch.is_cleared:
            open_text = text_opener(self.options.encoding, self.options.compression)
            if find_shape_problem([path], open_text, self.options.delimiter, allow_ragged=True) is not None:
                raise self._malformed(path)
            watch.is_cleared = True

    def _parsing(self, fields: Sequence[str]) -> dict[str, Any]:
        """Return how Arrow is to take records: every field is text, and an empty one is NULL."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        return {
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self.options.delimiter, newlines_in_values=True, ignore_empty_lines=len(fields) > 1
            ),
            "convert_options": arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(fields, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        }

    def _is_header_only(self, path: Path) -> bool:
        """Tell whether nothing follows the header; Arrow refuses such a file when its line has no end."""
        open_text = text_opener(self.options.encoding, self.options.compression)
        with contextlib.suppress(csv.Error, UnicodeError), open_text(path) as stream:
            return len(list(itertools.islice(csv_records(stream, self.options.delimiter), 2))) == 1
        return False

    def _padded_chunks(self, path: Path) -> Iterator[list[pa.Array]]:
        open_text = text_opener(self.options.encoding, self.options.compression)
        problem = find_shape_problem([path], open_text, self.options.delimiter, allow_ragged=True)
        if problem is not None:
            raise self._malformed(path)
        rows: list[list[str]] = []
        with open_text(path) as stream:
            records = csv_records(stream, self.options.delimiter)
            width = len(next(records)[1])
            for _, fields in records:
                if fields or width == 1:
                    rows.append(fields)
                if len(rows) == _PADDED_CHUNK_ROWS:
                    yield _transpose(rows, width)
                    rows = []
        if rows:
            yield _transpose(rows, width)

    def _folder_texts(self, path: Path, name: str, rows: int) -> pa.Array:
        import pyarrow as pa

        value: str | None = None
        for part in path.parts[:-1]:
            key, separator, text = part.partition("=")
            if separator and key.lower() == name.lower():
                value = None if text == "__HIVE_DEFAULT_PARTITION__" else unquote(text)
        return pa.repeat(pa.scalar(value, pa.string()), rows)

    def _typed_batch(self, path: Path, header: _Header, chunk: Sequence[pa.Array]) -> pa.RecordBatch:
        import pyarrow as pa

        arrays = []
        for name, position in header.positions.items():
            texts = self._folder_texts(path, name, len(chunk[0])) if position is None else _column(chunk, position)
            try:
                arrays.append(typed(texts, self.contract[name]))
            except MisfitError as misfit:
                raise _ColumnMisfitError(name, misfit.position) from None
        return pa.RecordBatch.from_arrays(arrays, schema=contract_schema(self.contract))

    def _misfit(self, path: Path, misfit: _ColumnMisfitError, rows_before: int) -> PzConnectorError:
        name = misfit.column
        try:
            line = self._line_of_row(path, rows_before + misfit.position)
        except (csv.Error, UnicodeError):
            return self._malformed(path)
        return PzConnectorError(
            f"file '{self._shown(path)}', line {line}: column '{name}' holds a value that "
            f"{duck_type_of(self.contract[name])} cannot take unchanged",
            is_transient=False,
            hint=f"correct the file, or declare '{name}' with a type that holds the value, such as varchar",
        )

    def _changed(self, path: Path) -> PzConnectorError:
        return PzConnectorError(
            f"file '{self._shown(path)}' changed while it was read",
            is_transient=True,
            hint="let a file be complete before it gets the name that is read",
        )

    def _line_of_row(self, path: Path, row: int) -> int:
        open_text = text_opener(self.options.encoding, self.options.compression)
        seen = -1
        line = 0
        width = 0
        with open_text(path) as stream:
            for line, fields in csv_records(stream, self.options.delimiter):
                width = width or len(fields)
                if fields or width == 1:
                    seen += 1
                if seen == row + 1:
                    return line
        return line

    def _malformed(self, path: Path) -> PzConnectorError:
        open_text = text_opener(self.options.encoding, self.options.compression)
        problem = find_shape_problem(
            [path], open_text, self.options.delimiter, allow_ragged=self.options.ragged == "pad"
        )
        name = self._shown(path)
        if isinstance(problem, RaggedRow):
            return PzConnectorError(
                f"file '{name}', line {problem.line}: expected {problem.expected} fields, found {problem.found}",
                is_transient=False,
                hint="correct the file, or set 'ragged: pad' to fill up such rows",
            )
        hint = "correct the file, or set 'encoding' or 'delimiter' to what it uses"
        if problem is not None:
            place = "" if problem.line is None else f", line {problem.line}"
            return PzConnectorError(f"file '{name}'{place} {problem.reason}", is_transient=False, hint=hint)
        what = f"file '{name}' is not well-formed {self.options.format}"
        return PzConnectorError(what, is_transient=False, hint=hint)

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.name


def _slices(batch: pa.RecordBatch, options: BatchOptions, cancel: CancelToken) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch in batches of the wanted size."""
    fitting = batch.num_rows * options.target_bytes // max(1, batch.nbytes)
    size = max(1, min(options.max_rows, int(fitting)))
    for start in range(0, batch.num_rows, size):
        cancel.raise_if_set()
        yield batch.slice(start, size)


def _column(chunk: Sequence[pa.Array], position: int) -> pa.Array:
    import pyarrow as pa

    return chunk[position] if position < len(chunk) else pa.nulls(len(chunk[0]), pa.string())


def _transpose(rows: Sequence[Sequence[str]], width: int) -> list[pa.Array]:
    import pyarrow as pa

    widest = max(width, *map(len, rows))
    return [
        pa.array([(row[index] or None) if index < len(row) else None for row in rows], pa.string())
        for index in range(widest)
    ]
