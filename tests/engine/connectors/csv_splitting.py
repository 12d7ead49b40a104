"""Reads small csv files the way large ones are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import BatchOptions, Partition, ReadHints, ReadSpec
from pz_engine.connectors.registry import find_connector
from pz_engine.connectors.toolkit import csv_split
from pz_engine.errors.exceptions import PzConnectorError


@contextmanager
def small_limits(*, readers: int = 4, range_bytes: int = 1, block_bytes: int = 1) -> Iterator[None]:
    """Split files of any size, at the next safe line end after each block."""
    with mock.patch.multiple(
        csv_split,
        SMALLEST_FILE_BYTES=1,
        SMALLEST_RANGE_BYTES=range_bytes,
        SCAN_BLOCK_BYTES=block_bytes,
        reader_limit=lambda: readers,
    ):
        yield


def plan(
    path: Path, columns: dict[str, str], cancel: CancelToken | None = None, *, depth: int = 1, **options: Any
) -> list[Partition]:
    """Return the partitions of a file or pattern; the root is so many folders above it."""
    connector: Any = find_connector("localfiles")
    folder = path.parents[depth - 1]
    source = connector.open_source({"base_dir": str(folder)})
    spec = ReadSpec("files", "t", {"path": path.relative_to(folder).as_posix(), "columns": columns, **options})
    return list(source.plan_read(spec, ReadHints(), cancel or CancelToken()))


def rows_of(partitions: list[Partition], target_bytes: int = 1 << 20) -> list[tuple[Any, ...]]:
    """Return all rows, in the order of the partitions."""
    found: list[tuple[Any, ...]] = []
    for partition in partitions:
        for batch in partition.read(BatchOptions(target_bytes=target_bytes), CancelToken()):
            found.extend(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return found


def outcome(partitions: list[Partition], target_bytes: int = 1 << 20) -> tuple[str, Any]:
    """Return the sorted rows, or what the first partition that fails says."""
    try:
        return "rows", sorted(rows_of(partitions, target_bytes), key=repr)
    except PzConnectorError as error:
        return "error", (error.message, error.hint, error.code, error.is_transient)
