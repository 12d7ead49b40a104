"""What a validation tier found."""

from __future__ import annotations

from msgspec import Struct

from pz_engine.errors.collector import ProblemCollector
from pz_engine.errors.diagnostics import Diagnostic, ordered


class ValidationReport(Struct, frozen=True):
    """Findings of one tier; a tier without errors passed."""

    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, problems: ProblemCollector, notes: list[str] | None = None) -> ValidationReport:
        """Take what was collected, sorted by file and line."""
        return cls(tuple(ordered(problems.errors)), tuple(ordered(problems.warnings)), tuple(notes or ()))
