"""SQL text to sqlglot's tree."""

from __future__ import annotations

import logging

import sqlglot
from sqlglot import exp

_LOGGER = logging.getLogger("sqlglot")


def parse_query(sql: str) -> exp.Expr | None:
    """Return the tree of one query, or None when sqlglot does not read it."""
    was_disabled, _LOGGER.disabled = _LOGGER.disabled, True
    try:
        found = sqlglot.parse(sql, read="duckdb")
    except Exception:
        return None
    finally:
        _LOGGER.disabled = was_disabled
    return found[0] if len(found) == 1 else None
