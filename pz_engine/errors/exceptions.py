"""The exception tree.

    PzError
    ├── PzConfigError         one problem of one file, caught at the file's boundary
    ├── PzValidationError     all problems of a phase (`errors`); exit code 2
    ├── PzConnectorError      a connector failed; transient or permanent
    ├── ConnectorHostError    a connector could not be loaded
    ├── RestoreError          the lock file or an installed connector does not match
    ├── PzStateError          the state store is unusable or refused a write
    ├── PzExecutionError      a node failed with a code
    └── PzInternalError       a bug in pz; exit code 3

A problem as a value is a `Diagnostic`; constructors take its parts and keep them as attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pz_engine.errors.diagnostics import Diagnostic


class PzError(Exception):
    """Root of everything pz raises on purpose."""


class PzConfigError(PzError):
    """One problem in a project file."""

    def __init__(
        self, code: str, message: str, *, file: str | None = None, line: int | None = None, hint: str | None = None
    ) -> None:
        self.diagnostic = Diagnostic(code, message, file, line, hint)
        super().__init__(str(self.diagnostic))


class PzValidationError(PzError):
    """Every problem a phase found."""

    def __init__(self, errors: Sequence[Diagnostic]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(problem) for problem in self.errors))


class PzConnectorError(PzError):
    """A connector's operation failed.

    Args:
        message: names the operation and the object, never a value or a credential.
        is_transient: True when trying again may succeed; the engine's retry loop acts on it.
        retry_after: the shortest wait the far side asked for.
        code: a specific code; None means `PZ0501`.
        hint: the next step.
    """

    def __init__(
        self,
        message: str,
        *,
        is_transient: bool,
        retry_after: timedelta | None = None,
        code: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.is_transient = is_transient
        self.retry_after = retry_after
        self.code = code
        self.hint = hint
        super().__init__(message)


class _CodedError(PzError):
    """An error with a code, a message and a next step."""

    def __init__(self, code: str, message: str, *, hint: str | None = None) -> None:
        self.code = code
        self.message = message
        self.hint = hint
        super().__init__(message)

    @property
    def diagnostic(self) -> Diagnostic:
        """Return the problem as a value."""
        return Diagnostic(self.code, self.message, hint=self.hint)


class ConnectorHostError(_CodedError):
    """A connector could not be found, loaded or hosted."""


class RestoreError(_CodedError):
    """The lock file and the installed connectors disagree."""


class PzStateError(_CodedError):
    """The state store is unusable, or refused a write."""


class PzExecutionError(_CodedError):
    """A node failed with a specific code; never retried."""


class PzInternalError(PzError):
    """A bug in pz."""
