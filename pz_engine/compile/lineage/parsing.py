"""SQL text to sqlglot's tree.

References to a lambda's parameters stay references: whether one means the parameter or a column is not for a parser to
say.
"""

from __future__ import annotations

import logging

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser

_LOGGER = logging.getLogger("sqlglot")


class _Parser(DuckDBParser):
    def _replace_lambda(self, node: exp.Expr | None, expressions: list[exp.Expr]) -> exp.Expr | None:  # noqa: ARG002
        return node


class _Dialect(DuckDB):
    Parser = _Parser


def parse_query(sql: str) -> exp.Expr | None:
    """Return the tree of one query, or None when sqlglot does not read it."""
    was_disabled, _LOGGER.disabled = _LOGGER.disabled, True
    try:
        found = sqlglot.parse(sql, dialect=_Dialect)
    except Exception:
        return None
    finally:
        _LOGGER.disabled = was_disabled
    return found[0] if len(found) == 1 else None
