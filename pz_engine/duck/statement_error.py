"""A statement that DuckDB refused, as our own exception.

The raw text may hold literals, so only `summary` may leave the engine.
"""

from __future__ import annotations

import errno
import os

import duckdb

from pz_engine.base.redact import sanitize
from pz_engine.duck.transient_errors import is_transient_message

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_OF_FILES = frozenset({"IOException", "TransactionException", "FatalException"})
"""Classes whose messages may come from a file that could not be written, and not from a value."""

_TOLD = (*sorted(_FULL), errno.EACCES, errno.EPERM, errno.EROFS)


class DuckStatementError(Exception):
    """DuckDB failed a statement."""

    def __init__(self, raw: str, kind: str, *, is_transient: bool) -> None:
        self.raw = raw
        """The whole message; may hold literals and row values, never shown."""

        self.kind = kind
        """DuckDB's exception class, for example `BinderException`."""

        self.is_transient = is_transient
        super().__init__(self.summary)

    @classmethod
    def from_duckdb(cls, error: duckdb.Error) -> DuckStatementError:
        """Wrap a driver exception and classify it."""
        text = str(error)
        return cls(text, type(error).__name__, is_transient=is_transient_message(text))

    @property
    def os_error(self) -> int | None:
        """Number of the operating system's error behind it: a full disk or a denied access; None otherwise."""
        if self.kind not in _OF_FILES:
            return None
        return next((number for number in _TOLD if os.strerror(number) in self.raw), None)

    @property
    def is_out_of_space(self) -> bool:
        """Tell whether a disk, a quota or the limit of a file's size is reached."""
        return self.os_error in _FULL

    @property
    def is_out_of_spill_space(self) -> bool:
        """Tell whether rows that do not fit in memory do not fit on the disk of the spill folder either."""
        return self.kind == "OutOfMemoryException" and "failed to offload data block" in self.raw

    @property
    def summary(self) -> str:
        """The message without statement echo and quoted values."""
        return sanitize(self.raw)
