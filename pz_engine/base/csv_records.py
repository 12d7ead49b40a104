"""Records of delimited text with the physical line each starts on.

Only diagnosis reads files this way; it is exact about quotes, line ends and bytes that are no text.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO

from msgspec import Struct

LONGEST_ROW_BYTES = 16 * 1024 * 1024
"""Size of a record in UTF-8 up to which both tiers read it."""

_LONGEST_FIELD = 2**31 - 1


class RaggedRow(Struct, frozen=True):
    """A record with another number of fields than the header."""

    file: Path
    line: int
    expected: int
    found: int


class UnreadableLine(Struct, frozen=True):
    """A line that is no text of the declared encoding, or breaks the quoting rules."""

    file: Path
    line: int | None
    reason: str


def csv_records(stream: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    r"""Yield every record, the header included, with its line; a blank line is an empty list.

    Raises:
        csv.Error: a quote is never closed, or text follows a closing quote.

    >>> import io
    >>> list(csv_records(io.StringIO('a,b\n1,"x\ny"\n2,z\n', newline=""), ","))
    [(1, ['a', 'b']), (2, ['1', 'x\ny']), (4, ['2', 'z'])]
    """
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    start = 1
    for fields in reader:
        yield start, fields
        start = reader.line_num + 1


def find_shape_problem(
    files: Iterable[Path], open_text: Callable[[Path], TextIO], delimiter: str, *, allow_ragged: bool = False
) -> RaggedRow | UnreadableLine | None:
    """Read files to the end and return the first record that a strict reader cannot take, or None."""
    for path in files:
        expected: int | None = None
        line = 0
        try:
            with open_text(path) as stream:
                for line, fields in csv_records(stream, delimiter):
                    if _is_too_long(fields, delimiter):
                        size = LONGEST_ROW_BYTES // 1024**2
                        return UnreadableLine(path, line, f"begins a row of more than {size} MiB, which is the limit")
                    if any(has_bad_bytes(field) for field in fields):
                        return UnreadableLine(path, line, "holds bytes that are not text of the declared encoding")
                    if expected is None:
                        expected = len(fields)
                    if len(fields) != expected and fields and not allow_ragged:
                        return RaggedRow(path, line, expected, len(fields))
        except csv.Error:
            return UnreadableLine(path, line + 1, "breaks the quoting rules of csv, or a quote is never closed")
        except UnicodeError:
            return UnreadableLine(path, None, "is not text of the declared encoding")
    return None


def _is_too_long(fields: list[str], delimiter: str) -> bool:
    """Measure a record as it is written with quotes around each field; only long ones are looked at closely."""
    if sum(map(len, fields)) < LONGEST_ROW_BYTES // 4:
        return False
    text = delimiter.join(fields)
    return len(text.encode(errors="surrogatepass")) + text.count('"') + 2 * len(fields) > LONGEST_ROW_BYTES


def has_bad_bytes(text: str) -> bool:
    """Tell whether a text holds bytes that could not be decoded and were kept as surrogates."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
