"""A problem as a value.

Every user-facing problem names its code, the file or node, the cause and the next step.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pz_engine.base.printable import printable


class Severity(str, Enum):
    """Whether a problem stops the phase."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem."""

    code: str
    """`PZ` and four digits, registered in `errors/codes.py`."""

    message: str
    """The cause, naming the file or node it belongs to; no secret, no row value. Control characters are escaped."""

    file: str | None = None
    """Project-relative path with `/`, when known."""

    line: int | None = None
    """1-based line in `file`, when known."""

    hint: str | None = None
    """What to type or change next."""

    severity: Severity = Severity.ERROR

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", printable(self.message))

    @property
    def place(self) -> str | None:
        """Return `file:line`, `file`, or None."""
        if self.file is None:
            return None
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        hint = f" — hint: {self.hint}" if self.hint else ""
        return f"{self.severity.value} {self.code}: {self.message}{place}{hint}"


def ordered(problems: list[Diagnostic]) -> list[Diagnostic]:
    """Sort by file (none first), then line (none first), then order of discovery."""
    return sorted(problems, key=lambda p: (p.file is not None, p.file or "", p.line is not None, p.line or 0))
