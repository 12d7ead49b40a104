"""Where in which file a bad value is: a second read, only after a failure.

Lines are physical lines, counted from one, the first of a record that spans several. What the file holds there is never
reported.
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO

from msgspec import Struct

from pz_engine.base.csv_headers import header_names, match_column
from pz_engine.base.csv_records import csv_records, has_bad_bytes
from pz_engine.duck.checked_casts import TextType, fits
from pz_engine.duck.session import DuckCursor

_CHUNK_ROWS = 50_000


class ReadableFiles(Protocol):
    """What a diagnosing read needs to know of a scan."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Files in the order of the scan."""

    @property
    def open_text(self) -> Callable[[Path], TextIO] | None:
        """Opens a file as text."""

    @property
    def delimiter(self) -> str:
        """Field delimiter."""

    @property
    def text_format(self) -> str | None:
        """`csv`, `ndjson` or `json`."""

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Columns that come from folder names."""


class BadCell(Struct, frozen=True):
    """Place of a value that does not fit its column."""

    file: Path
    line: int | None
    """None when the value is in the path, or the format has no lines."""


def locate(cursor: DuckCursor, scan: ReadableFiles, column: str, target: TextType | str) -> BadCell | None:
    """Find the first value of a column that does not pass the checked cast; None when every value passes."""
    target = TextType(target) if isinstance(target, str) else target
    for path in scan.files:
        if match_column(scan.partition_columns, column) is not None:
            value = _folder_value(path, column)
            if value is not None and _first_misfit(cursor, [value], target) is not None:
                return BadCell(path, None)
            continue
        lines: list[int] = []
        values: list[str] = []
        for line, value in _cells(scan, path, column):
            lines.append(line)
            values.append(value)
            if len(values) == _CHUNK_ROWS:
                position = _first_misfit(cursor, values, target)
                if position is not None:
                    return BadCell(path, lines[position])
                lines, values = [], []
        position = _first_misfit(cursor, values, target)
        if position is not None:
            return BadCell(path, lines[position])
    return None


def _cells(scan: ReadableFiles, path: Path, column: str) -> Iterator[tuple[int, str]]:
    """Yield the non-null texts of a column with their lines."""
    if scan.text_format != "csv":
        yield from _json_cells(scan, path, column)
        return
    if scan.open_text is None:
        return
    position: int | None = None
    with contextlib.suppress(csv.Error), scan.open_text(path) as stream:
        for line, fields in csv_records(stream, scan.delimiter):
            if position is None:
                names = header_names(fields)
                found = match_column(names, column)
                if found is None:
                    return
                position = names.index(found)
            elif len(fields) > position and fields[position] != "":
                yield line, fields[position]


def _json_cells(scan: ReadableFiles, path: Path, column: str) -> Iterator[tuple[int, str]]:
    if scan.open_text is None or scan.text_format != "ndjson":
        return
    with scan.open_text(path) as stream:
        for line, text in enumerate(stream, start=1):
            if text.strip():
                value = _json_value(text, column)
                if value is not None:
                    yield line, value


def _json_value(text: str, column: str) -> str | None:
    try:
        record: Any = json.loads(text, parse_float=_finite)
    except ValueError:
        return None
    value = record.get(column) if isinstance(record, dict) else None
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value)


def _finite(number: str) -> float | str:
    """Keep the text of a number that a double cannot hold."""
    value = float(number)
    return value if math.isfinite(value) else number


def _first_misfit(cursor: DuckCursor, values: Sequence[str], target: TextType) -> int | None:
    import pyarrow as pa

    if not values:
        return None
    clean = [None if has_bad_bytes(value) else value for value in values]
    table = pa.table({"position": pa.array(range(len(clean)), pa.int64()), "cell": pa.array(clean, pa.string())})
    cursor.raw.register("pz_probed_cells", table)
    try:
        position = cursor.scalar(
            f"select min(position) from pz_probed_cells where cell is not null and not ({fits('cell', target)})"
        )
    finally:
        cursor.raw.unregister("pz_probed_cells")
    return None if position is None else int(position)


def _folder_value(path: Path, column: str) -> str | None:
    from urllib.parse import unquote

    for part in path.parts:
        key, separator, value = part.partition("=")
        if separator and key.lower() == column.lower():
            return None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
    return None
