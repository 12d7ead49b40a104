"""Operating system errors as connector errors; only kinds that pass on their own are transient."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.errors.unexpected import diagnose

TRANSIENT_ERRORS = frozenset(
    {errno.EINTR, errno.EAGAIN, errno.EBUSY, errno.ETIMEDOUT, errno.ESTALE, errno.EIO, errno.EWOULDBLOCK}
)
"""Kinds that a network file system recovers from."""


def as_connector_error(error: OSError, operation: str) -> PzConnectorError:
    """Describe a failed file operation: what was tried, on what, and why it failed."""
    reason = error.strerror or type(error).__name__
    is_transient = error.errno in TRANSIENT_ERRORS
    problem = diagnose(error)
    hint = problem.hint if problem.code != "PZ0500" else None
    return PzConnectorError(f"{operation} failed: {reason}", is_transient=is_transient, hint=hint)


@contextmanager
def file_operation(operation: str) -> Iterator[None]:
    """Turn operating system errors of the block into connector errors.

    Raises:
        PzConnectorError: the block failed; transient by the kind of the error.
    """
    try:
        yield
    except OSError as error:
        raise as_connector_error(error, operation) from error
