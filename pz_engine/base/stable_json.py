"""JSON with stable bytes.

Three spellings exist: pretty for artifacts people read, compact for streams, canonical for hashing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

_ESCAPED = frozenset("\"&'+<>`")
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "\\": "\\\\"}


def pretty_json(value: Any) -> bytes:
    """Render with two-space indent, LF and a final newline; key order is the caller's."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def compact_json(value: Any) -> str:
    """Render on one line without blanks; key order is the caller's."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: Any) -> str:
    r"""Render for hashing: keys sorted by code unit, no blanks, every character outside plain ASCII text escaped.

    Raises:
        TypeError: the value cannot be written as JSON.

    >>> canonical_json({"b": 1, "a": ["x'", True, None, 0.5]})
    '{"a":["x\\u0027",true,null,0.5],"b":1}'
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return json.dumps(value, allow_nan=False)
    if isinstance(value, str):
        return f'"{_escape(value)}"'
    if isinstance(value, Mapping):
        ordered = sorted(value.items(), key=lambda item: ordinal(item[0]))
        return "{" + ",".join(f'"{_escape(key)}":{canonical_json(item)}' for key, item in ordered) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(canonical_json(item) for item in value) + "]"
    raise TypeError(type(value).__name__)


def _escape(text: str) -> str:
    return "".join(_escape_character(character) for character in text)


def _escape_character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if " " <= character <= "~" and character not in _ESCAPED:
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))


def ordinal(text: str) -> bytes:
    """Return a sort key that orders texts by UTF-16 code unit, as every stored file does."""
    return text.encode("utf-16-be", "surrogatepass")


def parse_json(content: bytes | str) -> Any:
    """Read JSON that somebody else may have written.

    Raises:
        ValueError: it is no JSON, nested more deeply than can be read, holds a number that is none or too large, or a
            key twice: of two readers each would see another file.
    """
    try:
        return json.loads(
            content, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_without_duplicates
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found
