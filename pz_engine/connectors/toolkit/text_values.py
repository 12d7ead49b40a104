"""Texts of a csv file as typed Arrow columns, without changing a value.

The same test as on the native tier: a text that does not mean exactly a value of the declared type is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pz_engine.errors.exceptions import PzConnectorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

_INTEGER = r"[+-]?(0|[1-9][0-9]*)(\.0*)?"
_DOUBLE = r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:nan|inf|infinity))"
_ZERO_OR_NOT_FINITE = r"^\s*[+-]?([0.]*([eE][+-]?[0-9]+)?|(?i:nan|inf|infinity))\s*$"
_DATE = "[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}"
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{0,6})?)?"
_TIME = r"([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{0,6})?)?|24:00(:00(\.0{0,6})?)?"
_UUID = r"\{?-*([0-9a-fA-F]-*){32}\}?"
_UTC = " ?(Z|UTC|[+-]00(:?00)?)"
_OFFSET = " ?(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)"
_PLAIN_TIMESTAMP_LENGTH = len("2026-01-01 00:00:00")
_BOOLEANS = {"true": True, "t": True, "1": True, "yes": True, "y": True}
_BOOLEANS.update({"false": False, "f": False, "0": False, "no": False, "n": False})
_DECIMAL = re.compile(r"decimal\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)")
_FLOATS = frozenset({"double", "float"})
_KEPT_AS_TEXT = frozenset({"time", "uuid"})
"""Types without an Arrow twin that DuckDB would take; their texts are looked at here, so that the line can be named."""

_LEAST = {"tinyint": -(2**7), "smallint": -(2**15), "ubigint": 0}
_MOST = {"tinyint": 2**7 - 1, "smallint": 2**15 - 1, "ubigint": 2**64 - 1}
"""Ends of the types whose Arrow type holds more."""


class MisfitError(Exception):
    """A text that is not exactly a value of the type."""

    def __init__(self, position: int) -> None:
        self.position = position
        """Index of the first such text."""

        super().__init__(str(position))


def contract_schema(contract: Mapping[str, str]) -> pa.Schema:
    """Return the Arrow schema that a contract gives a read.

    Raises:
        PzConnectorError: permanent; a type cannot be read from text.
    """
    import pyarrow as pa

    return pa.schema([pa.field(name, arrow_type_of(kind)) for name, kind in contract.items()])


def arrow_type_of(kind: str) -> pa.DataType:
    """Return the Arrow type of a contract type; types without a twin arrive as the nearest wider one.

    Raises:
        PzConnectorError: permanent; the type cannot be read from text.
    """
    import pyarrow as pa

    decimal = _DECIMAL.fullmatch(kind)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    known = {
        "int": pa.int32(), "smallint": pa.int32(), "tinyint": pa.int32(), "bigint": pa.int64(),
        "double": pa.float64(), "float": pa.float64(), "decimal": pa.decimal128(38, 9),
        "ubigint": pa.decimal128(38, 0), "hugeint": pa.decimal128(38, 0),
        "varchar": pa.string(), "uuid": pa.string(), "time": pa.string(), "boolean": pa.bool_(), "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"), "timestamptz": pa.timestamp("us", "UTC"),
    }  # fmt: skip
    if kind not in known:
        raise PzConnectorError(f"type '{kind}' cannot be read from text", is_transient=False, hint="declare varchar")
    return known[kind]


def typed(texts: pa.Array, kind: str) -> pa.Array:
    """Convert texts to a contract type.

    Raises:
        MisfitError: a text is not exactly a value of the type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind == "varchar":
        return texts
    if kind == "boolean":
        return _booleans(texts)
    plain = _plainly_typed(texts, kind)
    if plain is not None:
        return plain
    matches = pc.match_substring_regex(texts, rf"^\s*({_shape(kind)})\s*$")
    wrong = pc.index(matches, pa.scalar(False)).as_py()
    if wrong >= 0:
        raise MisfitError(wrong)
    if kind in _KEPT_AS_TEXT:
        return texts
    prepared = _prepare(pc.utf8_trim_whitespace(texts), kind)
    target = arrow_type_of(kind)
    if kind == "timestamp":
        target = pa.timestamp("us")
    try:
        values = pc.cast(prepared, target)
    except pa.ArrowInvalid:
        raise MisfitError(_first_failure(prepared, target)) from None
    if kind in _LEAST:
        _check_range(values, kind)
    if kind in _FLOATS:
        _check_floats(texts, values, kind)
    return _as_moments(values) if kind == "timestamp" else values


def _plainly_typed(texts: pa.Array, kind: str) -> pa.Array | None:
    """Convert texts that are all spelled the plain way, which needs no patterns; None sends them through those."""
    import pyarrow as pa
    import pyarrow.compute as pc

    target = pa.timestamp("us") if kind == "timestamp" else arrow_type_of(kind)
    if kind in _KEPT_AS_TEXT or kind == "timestamptz":
        return None
    try:
        values = pc.cast(texts, target)
    except pa.ArrowInvalid:
        return None
    if kind in _FLOATS:
        _check_floats(texts, values, kind)
        return values
    if kind == "timestamp":
        is_plain = pc.all(pc.equal(pc.binary_length(texts), _PLAIN_TIMESTAMP_LENGTH)).as_py()
        return _as_moments(values) if is_plain else None
    if not pc.all(pc.equal(pc.cast(values, pa.string()), texts)).as_py():
        return None
    if kind in _LEAST:
        _check_range(values, kind)
    return values


def _shape(kind: str) -> str:
    decimal = _DECIMAL.fullmatch("decimal(38,9)" if kind == "decimal" else kind)
    if decimal:
        return rf"[+-]?((0|[1-9][0-9]*)(\.[0-9]{{0,{decimal[2]}}})?|\.[0-9]{{1,{decimal[2]}}})"
    return {
        "double": _DOUBLE,
        "float": _DOUBLE,
        "date": _DATE,
        "time": _TIME,
        "uuid": _UUID,
        "timestamp": f"{_DATE}([ T]{_CLOCK}({_UTC})?)?",
        "timestamptz": f"{_DATE}([ T]{_CLOCK}({_OFFSET})?)?",
    }.get(kind, _INTEGER)


def _prepare(texts: pa.Array, kind: str) -> pa.Array:
    """Bring the allowed spellings into the one that Arrow parses."""
    import pyarrow.compute as pc

    if kind in {"date", "timestamp", "timestamptz"}:
        texts = pc.replace_substring(texts, "/", "-")
        texts = pc.replace_substring_regex(texts, r"^([0-9]{4})-([0-9])-", r"\1-0\2-")
        texts = pc.replace_substring_regex(texts, r"^([0-9]{4}-[0-9]{2})-([0-9])($|[ T])", r"\1-0\2\3")
        texts = pc.replace_substring_regex(texts, r"([ T])([0-9]:)", r"\10\2")
        if kind == "timestamp":
            return pc.replace_substring_regex(_without_bare_point(texts), rf"([0-9])({_UTC})$", r"\1")
        if kind == "timestamptz":
            texts = pc.replace_substring_regex(_without_bare_point(texts), " ?UTC$", "Z")
            texts = pc.replace_substring_regex(texts, " ([+-][0-9]{2}(:?[0-9]{2})?)$", r"\1")
            texts = pc.replace_substring_regex(texts, "^([0-9]{4}-[0-9]{2}-[0-9]{2})$", r"\1 00:00:00Z")
            return pc.replace_substring_regex(texts, "^([^ T]+[ T][0-9:.]+)$", r"\1Z")
        return texts
    texts = pc.replace_substring_regex(texts, r"^\+", "")
    if kind in _FLOATS:
        return texts
    if kind != "decimal" and not kind.startswith("decimal("):
        return pc.replace_substring_regex(texts, r"\.0*$", "")
    return texts


def _without_bare_point(texts: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.replace_substring_regex(texts, r"\.($|Z| |\+|-|UTC)", r"\1")


def _booleans(texts: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    spellings = pa.array(list(_BOOLEANS))
    positions = pc.index_in(pc.utf8_lower(texts), value_set=spellings)
    unknown = pc.and_(pc.is_null(positions), pc.is_valid(texts))
    wrong = pc.index(unknown, pa.scalar(True)).as_py()
    if wrong >= 0:
        raise MisfitError(wrong)
    return pc.take(pa.array(list(_BOOLEANS.values())), positions)


def _check_range(values: pa.Array, kind: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_low = pc.less(values, pa.scalar(_LEAST[kind], values.type))
    is_high = pc.greater(values, pa.scalar(_MOST[kind], values.type))
    wrong = pc.index(pc.or_(is_low, is_high), pa.scalar(True)).as_py()
    if wrong >= 0:
        raise MisfitError(wrong)


def _check_floats(texts: pa.Array, values: pa.Array, kind: str) -> None:
    """Refuse texts of numbers that became infinite or zero; only such results are looked at."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind == "float":
        values = pc.cast(values, pa.float32(), safe=False)
    suspects = pc.indices_nonzero(pc.or_(pc.is_inf(values), pc.equal(values, 0)))
    if not len(suspects):
        return
    means_it = pc.match_substring_regex(pc.take(texts, suspects), _ZERO_OR_NOT_FINITE)
    wrong = pc.index(means_it, pa.scalar(False)).as_py()
    if wrong >= 0:
        raise MisfitError(suspects[wrong].as_py())


def _as_moments(values: pa.Array) -> pa.Array:
    """Take times as times in UTC; Arrow keeps both as the same number, and would look up each one's zone."""
    import pyarrow as pa

    return values.view(pa.timestamp("us", "UTC"))


def _first_failure(texts: pa.Array, target: pa.DataType) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    for position in range(len(texts)):
        try:
            pc.cast(texts.slice(position, 1), target)
        except pa.ArrowInvalid:
            return position
    return 0
