"""What a call of the command line gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Called:
    """What a call gave."""

    code: int
    out: str
    err: str


Call = Callable[..., Called]
