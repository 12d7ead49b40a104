"""SQL that turns text into a typed value without ever changing it.

A text either means exactly the typed value or the statement fails with a marker that names column and type, never the
text. The cheap test comes first in each `case`, because nearly every row passes it.
"""

from __future__ import annotations

import re

from msgspec import Struct

from pz_engine.duck.quoting import quote_literal

MARKER = "pz-cast"
"""First part of the message of a failed cast: `pz-cast|<type>|<column>|`."""

_MARKER_PATTERN = re.compile(rf"{MARKER}\|(?P<type>[^|]*)\|(?P<column>.*)\|{MARKER}", re.DOTALL)
_INTEGERS = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"}
)
_ZONED = "TIMESTAMP WITH TIME ZONE"
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_ISO_DATE = "[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}"
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{0,6})?)?"
_UTC = " ?(Z|UTC|[+-]00(:?00)?)"
_OFFSET = " ?(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)"
_ZERO = r"[+-]?[0.]*([eE][+-]?[0-9]+)?"
_NOT_FINITE = "(?i:[+-]?(nan|inf|infinity))"
_SHORT_FLOAT = 38
"""Characters within which a number without an exponent neither overflows nor vanishes, in a FLOAT either."""

_FLOATS = frozenset({"DOUBLE", "FLOAT"})
_NUMBER = r"-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"


class TextType(Struct, frozen=True):
    """What a text column becomes."""

    type: str
    """DuckDB type."""

    format: str | None = None
    """`strptime` format of a date or timestamp that is not written the ISO way."""

    is_inferred: bool = False
    """Nobody asked for the type, so a spelling that the type would not give back (`+7`, `007`) is refused too."""

    is_json: bool = False
    """The text is a JSON number that DuckDB has read as a double: fractions of more than 15 digits are refused."""


class CastFailure(Struct, frozen=True):
    """A value that is not exactly a value of its column's type."""

    column: str
    type: str


def checked_cast(text: str, target: TextType, column: str) -> str:
    """Return the expression that gives the typed value of a text expression, or fails the statement.

    >>> checked_cast('"n"', TextType("VARCHAR"), "n")
    '"n"'
    """
    if target.type == "VARCHAR":
        return text
    value = _conversion(text, target)
    refusal = f"cast(error({quote_literal(f'{MARKER}|{target.type}|{column}|{MARKER}')}) as {target.type})"
    shape = _plain_shape(text, target)
    empty = f"when {text} is null then null"
    # DuckDB shares what a first condition has in common with the rest: wanted for the value's own text, but with a shape
    # there is nothing to share, and looking for it takes half a minute for thousands of columns.
    cheap = (
        f"when cast({value} as VARCHAR) = {text} then {value} {empty}"
        if shape is None
        else f"{empty} when {shape} then coalesce({value}, {refusal})"
    )
    return f"case {cheap} when {_fits_otherwise(text, target)} then {value} else {refusal} end"


def fits(text: str, target: TextType) -> str:
    """Return the condition under which a text expression, not null, passes `checked_cast`."""
    if target.type == "VARCHAR":
        return "true"
    value = _conversion(text, target)
    shape = _plain_shape(text, target)
    plain = f"cast({value} as VARCHAR) = {text}" if shape is None else f"{shape} and {value} is not null"
    return f"coalesce({plain}, false) or coalesce({_fits_otherwise(text, target)}, false)"


def recast(value: str, source_type: str, target_type: str, column: str) -> str:
    """Return the expression that casts a typed value, failing the statement where the cast would lose something."""
    if source_type == target_type:
        return value
    if target_type == "VARCHAR":
        return f"cast({value} as VARCHAR)"
    if source_type == "VARCHAR":
        return checked_cast(value, TextType(target_type), column)
    converted = f"try_cast({value} as {target_type})"
    message = quote_literal(f"{MARKER}|{target_type}|{column}|{MARKER}")
    return (
        f"case when cast({converted} as {source_type}) = {value} then {converted} when {value} is null then null "
        f"else cast(error({message}) as {target_type}) end"
    )


def narrowed_float(value: str, column: str) -> str:
    """Return the expression that rounds a typed double to a FLOAT, failing where it would overflow or vanish."""
    converted = f"try_cast({value} as FLOAT)"
    message = quote_literal(f"{MARKER}|FLOAT|{column}|{MARKER}")
    return (
        f"case when {converted} <> 0 or {value} = 0 then {converted} when {value} is null then null "
        f"else cast(error({message}) as FLOAT) end"
    )


def failed_cast(message: str) -> CastFailure | None:
    """Recognise the marker in a raw engine message."""
    match = _MARKER_PATTERN.search(message)
    return CastFailure(match["column"], match["type"]) if match else None


def _conversion(text: str, target: TextType) -> str:
    if target.format is None:
        return f"try_cast({text} as {target.type})"
    return f"cast(try_strptime({text}, {quote_literal(target.format)}) as {target.type})"


def _plain_shape(text: str, target: TextType) -> str | None:
    """Return a cheap condition on the text alone under which any value it converts to is the same.

    None stands for comparing the value's own text. The conversion is not part of the condition, because DuckDB would
    then evaluate it twice.
    """
    if target.format is not None:
        return f"regexp_full_match({text}, {quote_literal(_format_shape(target.format))})"
    if target.type == "DATE":
        return f"{text} like '____-__-__'"
    if target.type == "TIMESTAMP":
        return f"{text} like '____-__-_____:__:__'"
    if target.type == _ZONED:
        return f"{text} like '____-__-_____:__:__Z'"
    if target.type == "TIME":
        return f"{text} like '__:__:__'"
    if target.type in _FLOATS and target.is_inferred:
        first = f"(({text} >= '1' and {text} < ':') or {text} like '0.%' or {text} = '0')"
        return f"strlen({text}) <= 15 and {first} and {_has_plain_digits(text)}"
    if target.type in _FLOATS:
        return f"strlen({text}) <= {_SHORT_FLOAT} and {_has_plain_digits(text)}"
    if target.type == "BOOLEAN" and target.is_inferred:
        return f"lower({text}) in ('true', 'false')"
    if target.is_json and _DECIMAL.fullmatch(target.type):
        return "false"
    if target.type in _INTEGERS or _DECIMAL.fullmatch(target.type):
        return None
    return f"{text} is not null"


def _fits_otherwise(text: str, target: TextType) -> str:
    """Return the condition for the spellings that the cheap one does not know."""
    known = f"{_conversion(text, target)} is not null"
    decimal = _DECIMAL.fullmatch(target.type)
    if target.format is not None:
        return "false"
    if target.type in _INTEGERS:
        if target.is_inferred:
            return f"{known} and {_matches(text, '-?(0|[1-9][0-9]*)')}"
        whole = _matches(text, "[+-]?(0|[1-9][0-9]*)")
        with_zeros = _matches(text, r"[+-]?(0|[1-9][0-9]*)\.0*")
        return f"{known} and ({whole} or (strlen({text}) <= 15 and {with_zeros}))"
    if decimal:
        digits = rf"[+-]?(0|[1-9][0-9]*)?(\.[0-9]{{0,{decimal[2]}}})?"
        exact = f" and {_is_short_number(text)}" if target.is_json else ""
        return f"{known} and {_matches(text, digits)}{exact}"
    if target.type == "DATE":
        return f"{known} and {_matches(text, _ISO_DATE)}"
    if target.type == "TIMESTAMP":
        zone = "" if target.is_inferred else f"({_UTC})?"
        return f"{known} and {_matches(text, f'{_ISO_DATE}([ T]{_CLOCK}{zone})?')}"
    if target.type == _ZONED:
        zone = _OFFSET if target.is_inferred else f"({_OFFSET})?"
        clock = f"[ T]{_CLOCK}{zone}" if target.is_inferred else f"([ T]{_CLOCK}{zone})?"
        return f"{known} and {_matches(text, f'{_ISO_DATE}{clock}')}"
    if target.type == "TIME":
        return f"{known} and {_matches(text, _CLOCK)}"
    if target.type in _FLOATS and target.is_inferred:
        exact = f"cast(try_cast(try_cast({text} as DOUBLE) as HUGEINT) as VARCHAR) = trim({text})"
        whole = _matches(text, "[+-]?[0-9]+")
        is_number = f"{known} and {_matches(text, _NUMBER)} and (not {whole} or strlen({text}) <= 15 or {exact})"
        return f"{is_number} and ({_is_in_range(text, target)})"
    if target.type in _FLOATS:
        in_range = f"{_is_in_range(text, target)} or {_matches(text, _NOT_FINITE)}"
        return f"{known} and not contains({text}, '_') and ({in_range})"
    return "false"


def _has_plain_digits(text: str) -> str:
    """No exponent, and none of the separators that DuckDB allows between digits."""
    return f"not contains({text}, 'e') and not contains({text}, 'E') and not contains({text}, '_')"


def _is_in_range(text: str, target: TextType) -> str:
    """A number too large becomes infinite and one too small zero, so only these results are looked at."""
    value = _conversion(text, target)
    return f"(isfinite({value}) and {value} <> 0) or {_matches(text, _ZERO)}"


def _is_short_number(text: str) -> str:
    return f"(strlen({text}) <= 16 or not contains({text}, '.'))"


def _matches(text: str, pattern: str) -> str:
    anchored = rf"\s*({pattern})\s*"
    return f"regexp_full_match({text}, {quote_literal(anchored)})"


def _format_shape(date_format: str) -> str:
    """Return a pattern that demands a four-digit year, which `strptime` does not.

    >>> _format_shape("%d/%m/%Y")
    '[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}'
    """
    separator = re.escape(date_format[2])
    date = f"[0-9]{{1,2}}{separator}[0-9]{{1,2}}{separator}[0-9]{{4}}"
    return date if " " not in date_format else f"{date} .*"
