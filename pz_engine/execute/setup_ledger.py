"""Session setup, each step once per run.

Steps are keyed by their exact content; concurrent users wait for the first, a failed step is issued again by the next
attempt.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from pz_engine.base.redact import sanitize, statement_label
from pz_engine.connectors.fragments import AttachStep, ExtensionStep, SecretStep, SettingStep, SetupStep
from pz_engine.duck.extensions import load_extension
from pz_engine.duck.quoting import quote_identifier, quote_literal
from pz_engine.duck.session import DuckCursor
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.errors.exceptions import PzConnectorError


class SetupLedger:
    """Which setup steps of a run are done."""

    def __init__(self, *, allow_extension_download: bool) -> None:
        self._allow_download = allow_extension_download
        self._guard = threading.Lock()
        self._step_locks: dict[SetupStep, threading.Lock] = {}
        self._done: set[SetupStep] = set()

    def ensure(self, cursor: DuckCursor, steps: Sequence[SetupStep], *, writes: bool) -> None:
        """Run the steps that nobody ran yet, in order.

        Args:
            cursor: the calling node's cursor; what it sets up is shared by all.
            steps: the fragment's setup.
            writes: whether any node of the run writes the connection; databases are attached read-only otherwise.

        Raises:
            PzConnectorError: `PZ0311`, a step failed; transient by the engine's closed list.
        """
        for step in steps:
            with self._guard:
                lock = self._step_locks.setdefault(step, threading.Lock())
            with lock:
                if step not in self._done:
                    self._run(cursor, step, writes=writes)
                    self._done.add(step)

    def _run(self, cursor: DuckCursor, step: SetupStep, *, writes: bool) -> None:
        if isinstance(step, ExtensionStep):
            load_extension(cursor, step.name, allow_download=self._allow_download)
            return
        sql = _attach_sql(step, writes=writes) if isinstance(step, AttachStep) else _plain_sql(step)
        try:
            cursor.execute(sql)
        except DuckStatementError as error:
            raise PzConnectorError(
                f"{sanitize(error.raw)} (in setup: {statement_label(sql)})",
                is_transient=error.is_transient,
                code=None if error.is_transient else "PZ0311",
                hint=_next_step(step, error),
            ) from None


def _next_step(step: SetupStep, error: DuckStatementError) -> str | None:
    if error.is_transient:
        return None
    if isinstance(step, AttachStep) and "not a valid DuckDB database" in error.raw:
        return "correct 'path' of the connection: it must name a file that DuckDB wrote"
    if isinstance(step, AttachStep) and "newer version" in error.raw:
        return "pip install --upgrade duckdb"
    return "correct the connection's settings and credentials, and test them with 'pz validate --connect'"


def _plain_sql(step: SecretStep | SettingStep) -> str:
    return step.sql


def _attach_sql(step: AttachStep, *, writes: bool) -> str:
    options = [*step.options, *(() if writes else ("read_only",))]
    suffix = f" ({', '.join(options)})" if options else ""
    return f"attach if not exists {quote_literal(step.path)} as {quote_identifier(step.alias)}{suffix}"
