"""Reports problems of one place: a file, and what inside it is being read."""

from __future__ import annotations

from dataclasses import dataclass

from pz_engine.errors.collector import ProblemCollector


@dataclass(frozen=True, slots=True)
class Reporter:
    """A collector together with the file and the place that messages name."""

    problems: ProblemCollector
    file: str
    where: str
    """Starts every message, for example `connection 'erp'`."""

    def add(self, code: str, cause: str, *, line: int | None = None, hint: str | None = None) -> None:
        """Record an error."""
        self.problems.add(code, f"{self.where}: {cause}", file=self.file, line=line, hint=hint)

    def at(self, where: str) -> Reporter:
        """Return a reporter of the same file for another place."""
        return Reporter(self.problems, self.file, where)
