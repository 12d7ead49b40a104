"""Canonical cursor text as a SQL literal."""

from __future__ import annotations

import re

from pz_engine.duck.quoting import quote_literal

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_TIMESTAMP = re.compile(r"[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9:.]+")


def bound_literal(canonical: str) -> str:
    """Render a bound for the DuckDB family.

    >>> bound_literal("5"), bound_literal("2026-01-02T03:04:05.000000"), bound_literal("2026-01-02")
    ('5', "'2026-01-02 03:04:05.000000'", "'2026-01-02'")
    """
    if _NUMBER.fullmatch(canonical):
        return canonical
    if _TIMESTAMP.fullmatch(canonical):
        return quote_literal(canonical.replace("T", " "))
    return quote_literal(canonical)
