"""One open output file per format; batches in, a complete file on close."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from pz_engine.connectors.toolkit.file_options import FileWriteOptions
from pz_engine.connectors.toolkit.text_rows import csv_header, csv_lines, is_zoned, ndjson_lines

if TYPE_CHECKING:
    import pyarrow as pa


class FileWriter(Protocol):
    """An output file being written."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""

    def close(self) -> None:
        """Complete the file."""


def open_writer(path: Path, options: FileWriteOptions, schema: pa.Schema) -> FileWriter:
    """Create a file and return its writer.

    Raises:
        OSError: the file cannot be created.
    """
    if options.format == "parquet":
        return _ParquetWriter(path, options, schema)
    return _TextWriter(path, options, schema)


def flush_to_disk(path: Path) -> None:
    """Make a file's or folder's content survive a power cut.

    Raises:
        OSError: the device reports an error.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _TextWriter:
    def __init__(self, path: Path, options: FileWriteOptions, schema: pa.Schema) -> None:
        self._schema = schema
        self._options = options
        self._stream = _open_compressed(path, options.compression)
        if options.format != "json":
            self._stream.write(csv_header(schema.names, options.delimiter).encode())

    def write(self, batch: pa.RecordBatch) -> None:
        if self._options.format == "json":
            text = ndjson_lines(batch, self._schema)
        else:
            text = csv_lines(batch, self._schema, self._options.delimiter)
        self._stream.write(text.encode())

    def close(self) -> None:
        self._stream.close()


class _ParquetWriter:
    def __init__(self, path: Path, options: FileWriteOptions, schema: pa.Schema) -> None:
        from pyarrow import parquet

        self._schema = _stored_schema(schema)
        self._writer = parquet.ParquetWriter(str(path), self._schema, compression=options.compression)

    def write(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa

        if batch.num_rows:
            stored = [
                _as_wall_clock(column) if field.type == pa.timestamp("us") else column
                for column, field in zip(batch.columns, self._schema, strict=True)
            ]
            group = pa.RecordBatch.from_arrays(stored, schema=self._schema)
            self._writer.write_batch(group, row_group_size=batch.num_rows)

    def close(self) -> None:
        self._writer.close()


def _stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return the file's schema: wall-clock columns lose the zone they only had in transit."""
    import pyarrow as pa

    fields = []
    for field in schema:
        kind = pa.timestamp("us") if pa.types.is_timestamp(field.type) and not is_zoned(field) else field.type
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def _as_wall_clock(column: Any) -> Any:
    import pyarrow.compute as pc

    return pc.local_timestamp(column) if column.type.tz is not None else column


def _open_compressed(path: Path, compression: str) -> BinaryIO:
    if compression == "gzip":
        return cast("BinaryIO", gzip.GzipFile(path, "wb", mtime=0))
    if compression == "zstd":
        import pyarrow as pa

        return cast("BinaryIO", pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd"))
    return path.open("wb")
