"""Universal writes: batches to a file that appears under its final name at commit, complete and flushed."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from pz_engine.base.cancellation import CancelToken
from pz_engine.base.fault_points import fault_point
from pz_engine.connectors.api import CommitResult
from pz_engine.connectors.toolkit.file_options import FileWriteOptions
from pz_engine.connectors.toolkit.file_writers import FileWriter, flush_to_disk, open_writer
from pz_engine.connectors.toolkit.os_errors import file_operation

if TYPE_CHECKING:
    import pyarrow as pa


class _State(Enum):
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


class FileSession:
    """One write to one file."""

    def __init__(self, directory: Path, name: str, options: FileWriteOptions, schema: pa.Schema) -> None:
        self.location: str | None = str(directory / name)
        self._directory = directory
        self._final = directory / name
        self._temporary = directory / f".pz-tmp-{secrets.token_hex(8)}"
        self._state = _State.OPEN
        self._rows = 0
        self._batches = 0
        self._writer: FileWriter | None = None
        try:
            with file_operation(f"creating '{self._final.name}'"):
                self._temporary.mkdir(parents=True)
                self._writer = open_writer(self._temporary / name, options, schema)
        except BaseException:
            shutil.rmtree(self._temporary, ignore_errors=True)
            raise

    def write_batch(self, batch: pa.RecordBatch, cancel: CancelToken) -> None:
        """Add a batch to the temporary file."""
        self._require_open("write to")
        cancel.raise_if_set()
        with file_operation(f"writing '{self._final.name}'"):
            self._open_writer.write(batch)
        self._rows += batch.num_rows
        self._batches += 1

    def commit(self, cancel: CancelToken) -> CommitResult:
        """Complete the file, flush it and rename it over the final name."""
        self._require_open("commit")
        cancel.raise_if_set()
        self._state = _State.COMMITTED
        written = self._temporary / self._final.name
        with file_operation(f"committing '{self._final.name}'"):
            self._open_writer.close()
            self._writer = None
            flush_to_disk(written)
            fault_point("before_rename")
            written.replace(self._final)
            flush_to_disk(self._directory)
        shutil.rmtree(self._temporary, ignore_errors=True)
        return CommitResult(self._rows, self._batches)

    def abort(self) -> None:
        """Remove every trace; the final name keeps what it had."""
        self._require_open("abort")
        self._state = _State.ABORTED
        self._release()
        shutil.rmtree(self._temporary, ignore_errors=True)

    def close(self) -> None:
        """Release the file; a session that never tried to commit is aborted."""
        if self._state is _State.OPEN:
            self.abort()
        self._release()

    @property
    def _open_writer(self) -> FileWriter:
        assert self._writer is not None
        return self._writer

    def _release(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(Exception):
                self._writer.close()
            self._writer = None

    def _require_open(self, action: str) -> None:
        if self._state is not _State.OPEN:
            raise RuntimeError(f"cannot {action} a session that is {self._state.value}")
