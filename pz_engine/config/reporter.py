"""Reports problems of one place: a file, and what inside it is being read.

A message stays short, however long the names in it are.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from pz_engine.base.near_miss import did_you_mean
from pz_engine.errors.collector import ProblemCollector

_LONGEST_CAUSE = 2000
_LONGEST_NAME = 100
_MANY_PROBLEMS = 200


class Reporter(Struct, frozen=True):
    """A collector together with the file and the place that messages name."""

    problems: ProblemCollector
    file: str
    where: str
    """Starts every message, for example `connection 'erp'`."""

    def add(self, code: str, cause: str, *, line: int | None = None, hint: str | None = None) -> None:
        """Record an error."""
        self.problems.add(code, self._message(cause), file=self.file, line=line, hint=hint)

    def warn(self, code: str, cause: str, *, line: int | None = None, hint: str | None = None) -> None:
        """Record a warning."""
        self.problems.warn(code, self._message(cause), file=self.file, line=line, hint=hint)

    def at(self, where: str) -> Reporter:
        """Return a reporter of the same file for another place."""
        return Reporter(self.problems, self.file, where)

    def near_miss(self, name: str, candidates: Iterable[str]) -> str | None:
        """Return a hint for a misspelled name, or None; not for the hundredth mistake, which would take minutes."""
        if len(name) > _LONGEST_NAME or len(self.problems.errors) > _MANY_PROBLEMS:
            return None
        return did_you_mean(name, candidates)

    def _message(self, cause: str) -> str:
        text = f"{self.where}: {cause}"
        return text if len(text) <= _LONGEST_CAUSE else f"{text[:_LONGEST_CAUSE]}…"
