"""Gathers the problems of one phase and raises them together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pz_engine.errors.diagnostics import Diagnostic, Severity, ordered
from pz_engine.errors.exceptions import PzConfigError, PzValidationError


class ProblemCollector:
    """Collects diagnostics; warnings are kept apart and never raise."""

    def __init__(self) -> None:
        self.errors: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []

    def add(
        self, code: str, message: str, *, file: str | None = None, line: int | None = None, hint: str | None = None
    ) -> None:
        """Record an error."""
        self.errors.append(Diagnostic(code, message, file, line, hint))

    def warn(
        self, code: str, message: str, *, file: str | None = None, line: int | None = None, hint: str | None = None
    ) -> None:
        """Record a warning."""
        self.warnings.append(Diagnostic(code, message, file, line, hint, Severity.WARNING))

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Collect the configuration errors raised inside the block instead of letting them pass."""
        try:
            yield
        except PzConfigError as error:
            self.errors.append(error.diagnostic)
        except PzValidationError as error:
            self.errors.extend(error.errors)

    def raise_if_any(self) -> None:
        """Raise everything collected so far.

        Raises:
            PzValidationError: at least one error was recorded; sorted by file, then line.
        """
        if self.errors:
            raise PzValidationError(ordered(self.errors))
