"""Quoting of SQL identifiers and literals."""

from __future__ import annotations

STAGING_SCHEMA = "staging"


def quote_identifier(name: str) -> str:
    """Double-quote a name.

    >>> quote_identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """Single-quote a text value.

    >>> quote_literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def quote_qualified(*parts: str) -> str:
    """Quote and join the parts of a qualified name."""
    return ".".join(quote_identifier(part) for part in parts)


def staging_relation(name: str) -> str:
    """Return the quoted name of a relation in staging."""
    return quote_qualified(STAGING_SCHEMA, name)
