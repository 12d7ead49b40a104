"""Byte ranges of large csv files, for several readers of one file.

A file is cut only where a record certainly begins: the scan follows every quote from the header to the end, and one
quote that may or may not open a field leaves the file to a single reader.
"""

from __future__ import annotations

import itertools
import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from pz_engine.base.cancellation import CancelToken
from pz_engine.base.csv_records import LONGEST_ROW_BYTES
from pz_engine.base.file_versions import FileVersion
from pz_engine.connectors.toolkit.csv_quotes import QuoteWatch
from pz_engine.connectors.toolkit.file_options import FileReadOptions
from pz_engine.connectors.toolkit.text_files import compression_of

SMALLEST_FILE_BYTES = 64 * 1024**2
"""Size from which a file is worth a scan."""

SMALLEST_RANGE_BYTES = 32 * 1024**2
"""No reader gets less of a file that is split."""

MOST_READERS = 8
"""Readers of split files at a time, however many processors there are."""

SCAN_BLOCK_BYTES = 1024**2
"""Distance of the places where a file may be cut."""

MOST_PIECE_BYTES = 4 * 1024**2
"""What a reader takes at a time; larger pieces are no faster and keep more memory."""

_MARK = b"\xef\xbb\xbf"


class CsvRange(Struct, frozen=True):
    """Consecutive records of a file, the header never among them."""

    version: FileVersion
    """The content that was scanned; the places mean nothing in another one."""

    cuts: tuple[int, ...]
    """Where records begin, in bytes, and at last where the range ends."""

    readers: int
    """How many readers share the file."""

    def pieces(self, target_bytes: int) -> Iterator[tuple[int, int]]:
        """Yield start and end of pieces that are to be read one at a time; only long rows make one exceed the target.

        >>> part = CsvRange(FileVersion(0, 0, 99, 0), (10, 14, 18, 30), 2)
        >>> list(part.pieces(8))
        [(10, 18), (18, 30)]
        """
        start = last = self.cuts[0]
        for cut in self.cuts[1:]:
            if cut - start > target_bytes and last > start:
                yield start, last
                start = last
            last = cut
        yield start, last


def reader_limit() -> int:
    """Return how many readers a connection's large files may have together."""
    return min(os.cpu_count() or 1, MOST_READERS)


def plan_ranges(
    files: Sequence[Path], options: FileReadOptions, cancel: CancelToken
) -> Mapping[Path, tuple[CsvRange, ...]]:
    """Return the ranges of each file that is to be split, in their order; reads those files.

    Files that cannot be read are left out, for their reader to say why.

    Raises:
        Cancelled: the token was set.
    """
    large = [path for path in files if _may_be_split(path, options)]
    readers = reader_limit() // max(1, len(large))
    if readers < 2:
        return {}
    ranges = {path: _ranges(path, readers, cancel) for path in large}
    return {path: parts for path, parts in ranges.items() if len(parts) > 1}


def _may_be_split(path: Path, options: FileReadOptions) -> bool:
    is_plain = options.delimiter == "," and options.encoding == "utf-8" and options.ragged == "fail"
    if not is_plain or compression_of(path, options.compression) != "none":
        return False
    try:
        return path.stat().st_size >= SMALLEST_FILE_BYTES
    except OSError:
        return False


def _ranges(path: Path, readers: int, cancel: CancelToken) -> tuple[CsvRange, ...]:
    try:
        with path.open("rb") as stream:
            version = FileVersion.of(stream)
            start = _end_of_plain_header(stream)
            cuts = None if start is None else _cuts(stream, start, cancel)
            if cuts is None or cuts[-1] != version.size or FileVersion.of(stream) != version:
                return ()
    except OSError:
        return ()
    bounds = _bounds(cuts, readers)
    return tuple(
        CsvRange(version, tuple(cuts[first : last + 1]), len(bounds) - 1) for first, last in itertools.pairwise(bounds)
    )


def _end_of_plain_header(stream: BinaryIO) -> int | None:
    r"""Return where the records begin, None unless the first line is just names with commas between them.

    A quote may hide a comma or a line end, and a carriage return of its own ends the line for some readers.

    >>> import io
    >>> _end_of_plain_header(io.BytesIO(b"k,v\r\n1,2\r\n"))
    5
    >>> _end_of_plain_header(io.BytesIO(b'k,"v"\n1,2\n'))
    """
    line = stream.readline(LONGEST_ROW_BYTES)
    text = line.removeprefix(_MARK).removesuffix(b"\n").removesuffix(b"\r")
    if not line.endswith(b"\n") or not text or b'"' in text or b"\r" in text:
        return None
    return len(line)


def _cuts(stream: BinaryIO, start: int, cancel: CancelToken) -> list[int] | None:
    """Return places where records begin and the end of the file; None when a place cannot be certain."""
    cuts = [start]
    position = start
    watch = QuoteWatch(",")
    while block := stream.read(SCAN_BLOCK_BYTES):
        cancel.raise_if_set()
        if not block.endswith(b"\n"):
            block += stream.readline(LONGEST_ROW_BYTES)
        if block.startswith(_MARK):
            # Arrow drops a byte-order mark wherever it begins to read, and in the middle of a file it is data.
            if cuts[-1] == start:
                return None
            if cuts[-1] == position:
                cuts.pop()
        watch.see(block)
        if watch.is_doubtful:
            return None
        position += len(block)
        if position - cuts[-1] > LONGEST_ROW_BYTES:
            return None
        if not block.endswith(b"\n"):
            break
        if not watch.is_inside:
            cuts.append(position)
    watch.end()
    if watch.is_doubtful or watch.is_inside:
        return None
    return cuts if cuts[-1] == position else [*cuts, position]


def _bounds(cuts: Sequence[int], readers: int) -> list[int]:
    """Return the indices of the cuts between ranges of about one size, both ends included."""
    end = cuts[-1]
    wanted = max(SMALLEST_RANGE_BYTES, -(-(end - cuts[0]) // readers))
    bounds = [0]
    while True:
        index = bisect_left(cuts, cuts[bounds[-1]] + wanted)
        if index >= len(cuts) or end - cuts[index] < SMALLEST_RANGE_BYTES:
            return [*bounds, len(cuts) - 1]
        bounds.append(index)
