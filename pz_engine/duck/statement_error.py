"""A statement that DuckDB refused, as our own exception.

The raw text may hold literals, so only `summary` may leave the engine.
"""

from __future__ import annotations

import duckdb

from pz_engine.base.redact import sanitize
from pz_engine.duck.transient_errors import is_transient_message


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
    def is_out_of_space(self) -> bool:
        """Tell whether a disk is full."""
        return "no space left on device" in self.raw.lower()

    @property
    def summary(self) -> str:
        """The message without statement echo and quoted values."""
        return sanitize(self.raw)
