"""The staging database of an earlier run, attached read-only and once for a whole run.

One that cannot be opened costs one note and extraction as usual; it is never a failure of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pz_engine.base.redact import sanitize
from pz_engine.duck.quoting import quote_literal, quote_qualified
from pz_engine.duck.session import DuckCursor
from pz_engine.duck.statement_error import DuckStatementError

ALIAS: Final = "pz_prior"


class PriorDatabase:
    """Attaches on first use; safe from any thread."""

    def __init__(self, database: Path, run_id: str, note: Callable[[str], None]) -> None:
        self._database = database
        self._run_id = run_id
        self._note = note
        self._guard = threading.Lock()
        self._is_open: bool | None = None

    def is_usable(self, cursor: DuckCursor) -> bool:
        """Attach the database unless it is; False when it cannot be."""
        with self._guard:
            if self._is_open is None:
                self._is_open = self._attach(cursor)
            return self._is_open

    @contextmanager
    def opened(self, cursor: DuckCursor) -> Iterator[bool]:
        """Hold the database open for the block; gives False when it cannot be opened."""
        is_usable = self.is_usable(cursor)
        try:
            yield is_usable
        finally:
            if is_usable:
                cursor.execute(f"detach {ALIAS}")
            self._is_open = None

    def relation(self, schema: str, name: str) -> str:
        """Return the quoted name of a relation in it."""
        return quote_qualified(ALIAS, schema, name)

    def has_table(self, cursor: DuckCursor, schema: str, name: str) -> bool:
        """Tell whether it holds a table, not a view, of that name."""
        query = "select count(*) from duckdb_tables() where database_name = ? and schema_name = ? and table_name = ?"
        return bool(cursor.scalar(query, [ALIAS, schema, name]))

    @contextmanager
    def falling_back(self, what: str) -> Iterator[None]:
        """Turn a failure of the block into a note."""
        try:
            yield
        except DuckStatementError as error:
            self._say(f"{what}: {sanitize(error.summary).splitlines()[0]}")

    def say_unusable(self, what: str, why: str) -> None:
        """Note why something is done again."""
        self._say(f"{what}: {why}")

    def _attach(self, cursor: DuckCursor) -> bool:
        try:
            cursor.execute(f"attach {quote_literal(str(self._database))} as {ALIAS} (read_only)")
        except DuckStatementError as error:
            reason = sanitize(error.summary).splitlines()[0]
            self._say(f"nothing is taken from its staging database, which cannot be opened: {reason}")
            return False
        return True

    def _say(self, text: str) -> None:
        self._note(f"run {self._run_id}: {text}")
