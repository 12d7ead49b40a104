"""Text files as they lie on disk: compression, encoding, header line."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from pz_engine.base.csv_headers import header_names, is_repeated
from pz_engine.base.csv_records import csv_records, has_bad_bytes
from pz_engine.connectors.toolkit.os_errors import file_operation
from pz_engine.errors.exceptions import PzConnectorError

_CHUNK_BYTES = 1 << 20

PYTHON_ENCODINGS = {"utf-8": "utf-8-sig", "utf-16": "utf-16", "latin-1": "latin-1"}
"""Spelling of an encoding here to Python's; a byte-order mark is dropped."""


def compression_of(path: Path, declared: str) -> str:
    """Return `none`, `gzip` or `zstd`; `auto` goes by the suffix."""
    if declared != "auto":
        return declared
    return {".gz": "gzip", ".zst": "zstd"}.get(path.suffix.lower(), "none")


def open_bytes(path: Path, compression: str) -> BinaryIO:
    """Open a file for reading, decompressed.

    Raises:
        OSError: the file cannot be opened.
    """
    kind = compression_of(path, compression)
    if kind == "gzip":
        return cast("BinaryIO", gzip.open(path, "rb"))
    if kind == "zstd":
        import pyarrow as pa

        return cast("BinaryIO", pa.CompressedInputStream(pa.OSFile(str(path), "rb"), "zstd"))
    return path.open("rb")


@contextmanager
def file_reading(operation: str, compression: str) -> Iterator[None]:
    """Turn what goes wrong while a file is read, damaged compression included, into connector errors.

    Args:
        operation: what is tried, for the message; names the file.
        compression: of this very file, never `auto`.

    Raises:
        PzConnectorError: the block failed; transient by the kind of an operating system error.
    """
    try:
        with file_operation(operation):
            yield
    except (EOFError, zlib.error) as error:
        raise _damaged(operation, compression) from error
    except PzConnectorError as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno is None and compression != "none":
            raise _damaged(operation, compression) from error.__cause__
        raise


def whole_files_check(files: Sequence[Path], compression: str, shown: Callable[[Path], str]) -> Callable[[], None]:
    """Return a check that reads compressed files to their end, because DuckDB takes what a cut-off one still gives.

    The check raises `PzConnectorError`.
    """

    def check() -> None:
        for path in files:
            kind = compression_of(path, compression)
            with file_reading(f"reading file '{shown(path)}'", kind), open_bytes(path, compression) as stream:
                while stream.read(_CHUNK_BYTES):
                    pass

    return check


def is_any_compressed(files: Sequence[Path], compression: str) -> bool:
    """Tell whether one of the files is compressed."""
    return any(compression_of(path, compression) != "none" for path in files)


def _damaged(operation: str, compression: str) -> PzConnectorError:
    return PzConnectorError(
        f"{operation} failed: it is cut off or damaged, or no {compression} file at all",
        is_transient=False,
        hint="fetch the file again, or set compression: none if it is not compressed",
    )


def text_opener(encoding: str, compression: str) -> Callable[[Path], TextIO]:
    """Return a function that opens a file as text, line ends untouched and undecodable bytes kept as surrogates."""
    errors = "surrogateescape" if encoding == "utf-8" else "strict"

    def open_text(path: Path) -> TextIO:
        return io.TextIOWrapper(
            open_bytes(path, compression), encoding=PYTHON_ENCODINGS[encoding], errors=errors, newline=""
        )

    return open_text


def read_header(path: Path, encoding: str, compression: str, delimiter: str, *, shown_as: str) -> list[str]:
    """Return the fields of the first line, an empty list for a file without any.

    Raises:
        PzConnectorError: the file cannot be read as text of its encoding.
    """
    operation = f"reading the header of file '{shown_as}'"
    open_text = text_opener(encoding, compression)
    try:
        with file_reading(operation, compression_of(path, compression)), open_text(path) as stream:
            for _, fields in csv_records(stream, delimiter):
                if any(map(has_bad_bytes, fields)):
                    raise UnicodeError
                if fields:
                    return fields
    except (UnicodeError, csv.Error) as error:
        raise PzConnectorError(
            f"{operation} failed: it is not text of the declared encoding and delimiter",
            is_transient=False,
            hint="set 'encoding', 'compression' or 'delimiter' to what the file uses",
        ) from error
    return []


def refuse_repeated(fields: Sequence[str], wanted: Iterable[str], shown_as: str) -> None:
    """Refuse a header in which a wanted column could be one of several.

    Raises:
        PzConnectorError: `PZ0353`.
    """
    for name in wanted:
        if is_repeated(fields, name):
            raise PzConnectorError(
                f"file '{shown_as}' has more than one column '{name}'",
                is_transient=False,
                code="PZ0353",
                hint="rename the columns in the file",
            )


def widest_record(path: Path, encoding: str, compression: str, delimiter: str, *, shown_as: str) -> int:
    """Return the largest number of fields in any record; reads the whole file.

    Raises:
        PzConnectorError: the file cannot be read, or breaks the quoting rules.
    """
    operation = f"reading file '{shown_as}'"
    open_text = text_opener(encoding, compression)
    try:
        with file_reading(operation, compression_of(path, compression)), open_text(path) as stream:
            return max((len(fields) for _, fields in csv_records(stream, delimiter)), default=0)
    except (UnicodeError, csv.Error) as error:
        raise PzConnectorError(
            f"{operation} failed: it is not well-formed csv",
            is_transient=False,
            hint="correct the file, or set 'encoding' or 'delimiter' to what it uses",
        ) from error


def padded_names(header: tuple[str, ...], width: int) -> tuple[str, ...]:
    """Name the fields beyond a header `extra_1`, `extra_2`, ….

    >>> padded_names(("a", "b"), 4)
    ('a', 'b', 'extra_1', 'extra_2')
    """
    return header_names((*header, *(f"extra_{number + 1}" for number in range(max(0, width - len(header))))))
