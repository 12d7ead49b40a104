"""Types of the columns of a text file nobody declared.

A type is chosen only when every value seen fits it exactly; anything doubtful stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

from pz_engine.duck.checked_casts import TextType, fits
from pz_engine.duck.quoting import quote_identifier, quote_literal
from pz_engine.duck.session import DuckCursor

SAMPLE_ROWS = 20_480
"""Rows looked at before a load; a value further down that does not fit makes the load infer from all of them."""

_FIRST_LOOK_ROWS = 128
"""Rows that rule most types out before the sample is tested, because a type that does not fit is expensive to test."""

_LOOKS = {
    "BOOLEAN": re.compile("true|false", re.IGNORECASE),
    "BIGINT": re.compile(r"\s*-?[0-9]+\s*"),
    "HUGEINT": re.compile(r"\s*-?[0-9]+\s*"),
    "DOUBLE": re.compile(r"\s*-?[0-9.]+([eE][-+]?[0-9]+)?\s*"),
    "DATE": re.compile(r"\s*.{4}[-/].*"),
    "TIME": re.compile(r"\s*.{1,2}:.*"),
    "TIMESTAMP": re.compile(r"\s*.{4}[-/].*"),
    "TIMESTAMP WITH TIME ZONE": re.compile(r"\s*.{4}[-/].*"),
}
_COLUMNS_AT_A_TIME = 16
_SAMPLE_TABLE = "pz_csv_sample"
_TEXT = TextType("VARCHAR")
_ISO_TYPES = tuple(
    TextType(name, is_inferred=True)
    for name in (
        "BOOLEAN",
        "BIGINT",
        "HUGEINT",
        "DOUBLE",
        "DATE",
        "TIME",
        "TIMESTAMP",
        "TIMESTAMP WITH TIME ZONE",
    )
)
_DAY_FIRST = tuple(f"%d{mark}%m{mark}%Y" for mark in "/-.")
_MONTH_FIRST = tuple(f"%m{mark}%d{mark}%Y" for mark in "/-.")
_CLOCKS = (" %H:%M:%S", " %H:%M", " %H:%M:%S.%f")
_HALF_DAY_CLOCKS = (" %I:%M:%S %p", " %I:%M %p")
_DATE_FORMATS = tuple(TextType("DATE", name, is_inferred=True) for name in (*_DAY_FIRST, *_MONTH_FIRST))
_TIMESTAMP_FORMATS = tuple(
    TextType("TIMESTAMP", date + clock, is_inferred=True)
    for dates, clocks in (((*_DAY_FIRST, *_MONTH_FIRST), _CLOCKS), ((*_MONTH_FIRST, *_DAY_FIRST), _HALF_DAY_CLOCKS))
    for date in dates
    for clock in clocks
)
_DATE_SHAPE = r"\s*[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{4}( .*)?\s*"
_CANDIDATES = (*_ISO_TYPES, *_DATE_FORMATS, *_TIMESTAMP_FORMATS)


def infer_types(cursor: DuckCursor, text_scan: str, columns: Sequence[str], *, whole_file: bool) -> dict[str, TextType]:
    """Choose a type per column of a scan whose columns are all text.

    A column without a value in what was read stays text.

    Raises:
        DuckStatementError: the scan itself failed.
    """
    if not columns:
        return {}
    with _sample(cursor, text_scan, columns) as sample:
        found: Mapping[str, tuple[TextType, ...] | None] = _first_look(cursor, sample, columns)
        for rows in (sample, *((text_scan,) if whole_file else ())):
            open_tests = {name: _CANDIDATES if found.get(name) is None else found[name] or () for name in columns}
            found = {**dict.fromkeys(columns, ()), **_survivors(cursor, rows, _non_empty(open_tests))}
    return {column: next(iter(found.get(column) or ()), _TEXT) for column in columns}


def _first_look(cursor: DuckCursor, sample: str, columns: Sequence[str]) -> dict[str, tuple[TextType, ...]]:
    """Rule out the types that a few rows cannot be, without asking DuckDB about each."""
    names = ", ".join(quote_identifier(name) for name in columns)
    rows = cursor.rows(f"select {names} from {sample} limit {_FIRST_LOOK_ROWS}")
    texts = zip(*rows, strict=True) if rows else [()] * len(columns)
    return {
        name: tuple(
            candidate
            for candidate in _CANDIDATES
            if all(_could_be(candidate).fullmatch(text) for text in values if text is not None)
        )
        for name, values in zip(columns, texts, strict=True)
    }


def _could_be(candidate: TextType) -> re.Pattern[str]:
    """Return a pattern that every text of a type matches, and many others do too."""
    return _LOOKS[candidate.type] if candidate.format is None else _format_looks(candidate.format)


@cache
def _format_looks(date_format: str) -> re.Pattern[str]:
    """Return a pattern of a day-first or month-first format; tells separators, months and kinds of clock apart.

    >>> [bool(_format_looks(name).fullmatch("13/04/2026 10:00")) for name in ("%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M")]
    [True, False]
    """
    date, _, clock = date_format.partition(" ")
    parts = {"%d": "[0-9]{1,2}", "%m": "(0?[0-9]|1[0-2])", "%Y": "[0-9]{4}"}
    pattern = re.escape(date[2]).join(parts[part] for part in date.split(date[2]))
    if clock:
        pattern += r" [^:]*" + ":[^:]*" * clock.count(":") + (r"\.[^:]*" if "." in clock else "")
        pattern += r"[mM]\s*" if "%p" in clock else ""
    return re.compile(pattern)


@contextmanager
def _sample(cursor: DuckCursor, text_scan: str, columns: Iterable[str]) -> Iterator[str]:
    """Keep columns of a scan's first rows for the block; they are asked about more than once."""
    items = ", ".join(map(quote_identifier, columns))
    cursor.execute(
        f"create or replace temp table {_SAMPLE_TABLE} as select {items} from {text_scan} limit {SAMPLE_ROWS}"
    )
    try:
        yield _SAMPLE_TABLE
    finally:
        cursor.execute(f"drop table if exists {_SAMPLE_TABLE}")


def _non_empty(tests: Mapping[str, tuple[TextType, ...]]) -> dict[str, tuple[TextType, ...]]:
    return {name: candidates for name, candidates in tests.items() if candidates}


def decided_formats(cursor: DuckCursor, text_scan: str, declared: Mapping[str, str]) -> dict[str, str]:
    """Return the formats of declared date and timestamp columns where the file's first rows admit just one order.

    The ISO spelling needs no format; a column in which day and month could be swapped gets none either.
    """
    tests = {
        name: (TextType(kind), *(TextType(kind, found.format) for found in _formats_of(kind)))
        for name, kind in declared.items()
    }
    if not tests:
        return {}
    with _sample(cursor, text_scan, tests) as sample:
        survivors = _survivors(cursor, sample, tests)
    decided: dict[str, str] = {}
    for name, passed in survivors.items():
        formats = [candidate.format for candidate in passed or ()]
        first = formats[0] if formats else None
        if first is not None and len({(other or "")[:2] for other in formats}) == 1:
            decided[name] = first
    return decided


def _formats_of(declared_type: str) -> tuple[TextType, ...]:
    return _DATE_FORMATS if declared_type == "DATE" else _TIMESTAMP_FORMATS


def _survivors(
    cursor: DuckCursor, rows: str, columns: Mapping[str, tuple[TextType, ...]]
) -> dict[str, tuple[TextType, ...] | None]:
    """Return per column the candidates that every value fits, or None for a column without a value.

    Formats are tried only on columns whose values all look like a date, because there are many of them.
    """
    plain = {name: tuple(test for test in tests if test.format is None) for name, tests in columns.items()}
    answers = _ask(cursor, rows, {name: [_test(name, test) for test in tests] for name, tests in plain.items()})
    found: dict[str, tuple[TextType, ...] | None] = {}
    dates: dict[str, tuple[TextType, ...]] = {}
    for name, answer in answers.items():
        found[name] = None if answer is None else _passed(plain[name], answer)
        formats = tuple(test for test in columns[name] if test.format is not None)
        if answer is not None and answer[-1] and formats:
            dates[name] = formats
    tests = {name: [_test(name, test) for test in formats] for name, formats in dates.items()}
    for name, answer in _ask(cursor, rows, tests).items():
        found[name] = (*(found[name] or ()), *_passed(dates[name], answer or ()))
    return found


def _ask(cursor: DuckCursor, rows: str, tests: Mapping[str, Sequence[str]]) -> dict[str, tuple[bool, ...] | None]:
    """Evaluate conditions over all rows; the last answer tells whether the values look like dates.

    Some columns at a time, because planning a select takes more than twice as long for twice as many expressions.
    """
    answers: dict[str, tuple[bool, ...] | None] = {}
    names = list(tests)
    for start in range(0, len(names), _COLUMNS_AT_A_TIME):
        chunk = names[start : start + _COLUMNS_AT_A_TIME]
        wanted: list[str] = []
        for name in chunk:
            column = quote_identifier(name)
            looks_like_date = f"regexp_full_match({column}, {quote_literal(_DATE_SHAPE)})"
            wanted.append(f"count({column})")
            wanted.extend(f"bool_and({column} is null or {test})" for test in (*tests[name], looks_like_date))
        row = iter(cursor.rows(f"select {', '.join(wanted)} from {rows}")[0])
        for name in chunk:
            count = next(row)
            values = tuple(bool(next(row)) for _ in range(len(tests[name]) + 1))
            answers[name] = values if count else None
    return answers


def _test(column: str, candidate: TextType) -> str:
    return f"({fits(quote_identifier(column), candidate)})"


def _passed(candidates: Sequence[TextType], answers: Sequence[bool]) -> tuple[TextType, ...]:
    return tuple(candidate for candidate, ok in zip(candidates, answers) if ok)  # noqa: B905 - one answer more
