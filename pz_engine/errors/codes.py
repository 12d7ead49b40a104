"""The registry of error codes.

Everything that carries a code is checked against it by a test; the reference page is generated from it.
"""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from pz_engine.errors.catalogue import ROWS


class ErrorCode(Struct, frozen=True):
    """What is known about one code."""

    code: str
    name: str
    severity: str
    """`error`, `warning`, or `plan reason` for a code that only ever appears in a plan's reason."""

    phase: str
    """Where it is found; empty when it is never raised."""

    life: str
    """`live`, `reserved` (nothing raises it yet) or `retired` (never again)."""

    cause: str
    next_step: str


@cache
def all_codes() -> tuple[ErrorCode, ...]:
    """Return every registered code in numeric order."""
    return tuple(_parse(row) for row in ROWS.strip().splitlines())


@cache
def _by_code() -> dict[str, ErrorCode]:
    return {entry.code: entry for entry in all_codes()}


def find_code(code: str) -> ErrorCode | None:
    """Return a code's entry, or None when it is not registered."""
    return _by_code().get(code)


def _parse(row: str) -> ErrorCode:
    return ErrorCode(*("" if cell == "-" else cell for cell in row.split(" | ")))
