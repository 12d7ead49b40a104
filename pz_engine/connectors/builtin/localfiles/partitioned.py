"""Writes into dated folders: one file per folder that occurs, each published on its own.

The set of folders is not atomic. A failure part-way leaves some published; writing again gives `replace` the same files.
"""

from __future__ import annotations

import contextlib
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pz_engine.base.cancellation import CancelToken
from pz_engine.base.date_tokens import has_date_tokens
from pz_engine.connectors.api import CommitResult
from pz_engine.connectors.builtin.localfiles.sessions import FileSession
from pz_engine.connectors.toolkit.date_paths import strftime_format
from pz_engine.connectors.toolkit.file_options import FileWriteOptions
from pz_engine.errors.exceptions import PzConnectorError

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN_YEARS: Final = (datetime(1, 1, 1, tzinfo=timezone.utc), datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc))


def partition_column(entity: str, options: FileWriteOptions, schema: pa.Schema) -> str:
    """Return the column that decides the folder.

    Raises:
        PzConnectorError: permanent; not exactly one date or timestamp column, or no date token in the path.
    """
    import pyarrow as pa

    if len(options.partition_by) != 1 or not has_date_tokens(options.path or ""):
        raise PzConnectorError(
            f"entity '{entity}': 'partition_by' takes one column, and 'path' the date tokens of its folders",
            is_transient=False,
            hint="for example path: out/{yyyy}/{MM}/{dd} with partition_by: [placed_on]",
        )
    (column,) = options.partition_by
    position = schema.get_field_index(column)
    kind = schema.field(position).type if position >= 0 else None
    if kind is None or not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        found = "is not written" if kind is None else f"is {kind}"
        raise PzConnectorError(
            f"entity '{entity}': the partition column '{column}' {found}; it must be a date or timestamp",
            is_transient=False,
            hint=f"cast '{column}' in the pipeline",
        )
    return column


class PartitionedSession:
    """One write to as many files as there are folders."""

    def __init__(self, template: Path, name: str, options: FileWriteOptions, schema: pa.Schema, column: str) -> None:
        self.location: str | None = str(template / name)
        self._format = strftime_format(str(template))
        self._name = name
        self._options = options
        self._schema = schema
        self._column = column
        self._sessions: dict[str, FileSession] = {}
        self._batches = 0
        self._state = "open"

    def write_batch(self, batch: pa.RecordBatch, cancel: CancelToken) -> None:
        """Split a batch by folder; a folder's file is opened with its first row.

        Raises:
            PzConnectorError: permanent; the partition column names no folder in a row, or a file cannot be written.
        """
        import pyarrow.compute as pc

        self._require_open("write to")
        cancel.raise_if_set()
        moments = batch.column(batch.schema.get_field_index(self._column))
        if moments.null_count:
            raise PzConnectorError(
                f"the partition column '{self._column}' is NULL in {moments.null_count} rows, which have no folder",
                is_transient=False,
                hint=f"filter or fill '{self._column}' in the pipeline",
            )
        folders = pc.strftime(self._whole_seconds(moments), format=self._format)
        for folder in pc.unique(folders).to_pylist():
            session = self._sessions.get(folder)
            if session is None:
                session = FileSession(Path(folder), self._name, self._options, self._schema)
                self._sessions[folder] = session
            session.write_batch(batch.filter(pc.equal(folders, folder)), cancel)
        self._batches += 1

    def _whole_seconds(self, moments: pa.Array) -> pa.Array:
        """Return the second that each moment lies in: the one it has begun, before 1970 too.

        Raises:
            PzConnectorError: permanent; a moment lies outside the years that a folder can show, as infinity does.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_timestamp(moments.type):
            moments = pc.floor_temporal(moments.cast(pa.timestamp(moments.type.unit)), unit="second")
        seconds = moments.cast(pa.timestamp("s"), safe=False)  # -infinity has left the range while it was rounded
        first, last = (pa.scalar(second, seconds.type) for second in _SHOWN_YEARS)
        outside = pc.sum(pc.or_(pc.less(seconds, first), pc.greater(seconds, last))).as_py()
        if outside:
            raise PzConnectorError(
                f"the partition column '{self._column}' is outside the years 1 to 9999 in {outside} rows, which have "
                "no folder",
                is_transient=False,
                hint=f"filter or correct '{self._column}' in the pipeline",
            )
        return seconds

    def commit(self, cancel: CancelToken) -> CommitResult:
        """Publish the folders one after another."""
        self._require_open("commit")
        cancel.raise_if_set()
        self._state = "committed"
        rows = sum(self._sessions[folder].commit(CancelToken()).rows for folder in sorted(self._sessions))
        return CommitResult(rows, self._batches)

    def abort(self) -> None:
        """Remove the unpublished files of every folder."""
        self._require_open("abort")
        self._state = "aborted"
        for session in self._sessions.values():
            session.abort()

    def close(self) -> None:
        """Release every file; a session that never tried to commit is aborted."""
        if self._state == "open":
            self.abort()
        for session in self._sessions.values():
            with contextlib.suppress(Exception):
                session.close()

    def _require_open(self, action: str) -> None:
        if self._state != "open":
            raise RuntimeError(f"cannot {action} a session that is {self._state}")
