"""What a connector's failure may say to the user.

A connector's own message is shown; of any other exception only what holds no value.
"""

from __future__ import annotations

from msgspec import Struct

from pz_engine.base.redact import ErrorSummary, sanitize
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.validate.time_limit import TimeLimitError

_TRY_AGAIN = "try again; if it stays, check the connection's settings and the network"
_CORRECT = "correct the connection's settings"
_KINDS = {"transient": _TRY_AGAIN, "permanent": _CORRECT}


class Failure(Struct, frozen=True):
    """Why a question was not answered, and what to do."""

    message: str
    hint: str


def failure_of_probe(message: str) -> Failure:
    """Take apart what a probe says: `transient: …` or `permanent: …`."""
    kind, separator, rest = message.partition(": ")
    if separator and kind in _KINDS:
        return Failure(rest, _KINDS[kind])
    return Failure(message, _CORRECT)


def failure_of(error: Exception, limit: str) -> Failure:
    """Describe an exception out of a connector or out of DuckDB."""
    if isinstance(error, TimeLimitError):
        return Failure(f"no answer within {limit}", _TRY_AGAIN)
    if isinstance(error, PzConnectorError):
        return Failure(error.message, error.hint or (_TRY_AGAIN if error.is_transient else _CORRECT))
    if isinstance(error, DuckStatementError):
        first = (error.summary.splitlines() or [error.kind])[0]
        return Failure(first, _TRY_AGAIN if error.is_transient else _CORRECT)
    kind = type(error).__name__
    summary = ErrorSummary.from_message(sanitize(f"{kind}: {error}").removeprefix(f"{kind}:")).message
    detail = f": {summary}" if summary else ""
    return Failure(f"the connector failed unexpectedly ({kind}{detail})", _CORRECT)
