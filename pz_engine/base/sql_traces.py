"""Finds where SQL begins in a sentence.

Words that are also plain English count only inside a shape that English does not have, so "could not update the row"
is no SQL and "update orders set" is.
"""

from __future__ import annotations

import re
from typing import Final

_GAP: Final = r"(?:\s|/\*.*?\*/)+"
_NAME: Final = r"[^\s(]+"
_OBJECT: Final = (
    r"(?:table|view|schema|database|index|column|constraint|sequence|type|function|procedure|macro|trigger|role|user"
    r"|secret|extension|materialized|temporary|temp|unique|external|partition)"
)

_OPENINGS: Final = (
    r"insert",
    r"select",
    r"truncate",
    r"grant",
    r"revoke",
    rf"drop{_GAP}(?:{_OBJECT}|if)\b",
    rf"merge{_GAP}into",
    rf"replace{_GAP}into",
    rf"upsert{_GAP}into",
    rf"copy{_GAP}into",
    rf"copy{_GAP}{_NAME}{_GAP}(?:from|to)\b",
    r"copy\s*\(",
    rf"delete{_GAP}from",
    rf"update{_GAP}{_NAME}(?:{_GAP}{_NAME}){{0,3}}?{_GAP}set\b",
    rf"create{_GAP}(?:{_NAME}{_GAP}){{0,3}}?{_OBJECT}\b",
    rf"alter{_GAP}{_OBJECT}\b",
    rf"rename{_GAP}(?:{_OBJECT}|to)\b",
    rf"comment{_GAP}on\b",
    r"call\s+[\w.]+\s*\(",
    r"exec(?:ute)?\s+(?:immediate\b|sp_|@)",
    rf"with{_GAP}(?:recursive{_GAP})?{_NAME}(?:\s*\([^)]*\))?{_GAP}as{_GAP}?(?:not\s+)?(?:materialized\s*)?\(",
    rf"(?:attach|detach){_GAP}(?:database\b|if\b|')",
    rf"(?:export|import){_GAP}database",
    rf"explain{_GAP}analyze",
    rf"set{_GAP}(?:global|session|local)\b",
    r"declare\s+@",
    r"pragma",
    rf"lock{_GAP}table",
)
_CLAUSES: Final = (
    r"having",
    r"where",
    r"qualify",
    rf"(?:(?:left|right|full|inner|cross|outer|natural|anti|semi|asof|positional|lateral){_GAP})+join",
    rf"join{_GAP}{_NAME}{_GAP}(?:as{_GAP})?(?:{_NAME}{_GAP})?(?:on|using)\b",
    rf"(?:group|order|partition|cluster){_GAP}by",
    rf"(?:union|intersect|except){_GAP}(?:all|distinct|by)\b",
    r"(?:try_)?cast\s*\(",
    r"(?:convert|coalesce|row_number|count|sum|min|max|avg)\s*\(",
    r"values\s*\(",
    r"in\s*\(",
    r"over\s*\(",
    rf"on{_GAP}conflict",
    rf"on{_GAP}duplicate{_GAP}key",
    rf"between{_GAP}{_NAME}{_GAP}and\b",
    rf"is{_GAP}(?:not{_GAP})?distinct{_GAP}from",
    rf"from{_GAP}{_NAME}{_GAP}(?:as|limit|offset)\b",
    rf"limit{_GAP}\d+",
    rf"returning{_GAP}\*",
)
_TRACE: Final = re.compile(
    r"(?<!\w)(?:"
    + "|".join(f"{shape}\\b" if shape[-1].isalnum() else shape for shape in (*_OPENINGS, *_CLAUSES))
    + r")|/\*",
    re.IGNORECASE,
)


def first_sql_trace(text: str) -> int:
    """Return the position of the first sign of SQL, or the text's length.

    >>> "could not run INSERT INTO people"[:first_sql_trace("could not run INSERT INTO people")]
    'could not run '
    >>> first_sql_trace("could not update the row")
    24
    """
    match = _TRACE.search(text)
    return match.start() if match else len(text)
