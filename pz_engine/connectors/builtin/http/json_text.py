"""JSON whose numbers and spelling stay what the server sent.

Numbers are kept as text, and any part of a document can be cut out as it was written, so no digit passes through a
float.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

_BLANKS = " \t\n\r"


class NumberText(str):
    """A JSON number as it was written."""

    __slots__ = ()


class JsonError(Exception):
    """A text that is no JSON document, or a pointer that leads nowhere; the message holds no content."""


class Span(NamedTuple):
    """A value's place in a document."""

    start: int
    end: int


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_float=NumberText, parse_int=NumberText, parse_constant=_refuse_constant)


def decode(text: str) -> Any:
    """Return a document's value, numbers as `NumberText`.

    Raises:
        JsonError: it is no JSON document.
    """
    value, end = _value_at(text, _skip_blanks(text, 0))
    if _skip_blanks(text, end) != len(text):
        raise JsonError("more than one value")
    return value


def pointer_parts(pointer: str) -> tuple[str, ...] | None:
    """Return the reference tokens of a JSON pointer (RFC 6901), or None when it is none.

    >>> pointer_parts("/data/a~1b"), pointer_parts(""), pointer_parts("data")
    (('data', 'a/b'), (), None)
    """
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        return None
    parts = pointer[1:].split("/")
    if any("~" in part.replace("~0", "").replace("~1", "") for part in parts):
        return None
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def find(value: Any, parts: tuple[str, ...]) -> tuple[bool, Any]:
    """Follow a pointer through a decoded value; tells whether it led somewhere, and where."""
    for part in parts:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and _is_index(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            return False, None
    return True, value


def locate(text: str, parts: tuple[str, ...]) -> Span | None:
    """Follow a pointer through a document's text; None when it leads nowhere.

    Raises:
        JsonError: the text is no JSON.
    """
    start = _skip_blanks(text, 0)
    for part in parts:
        found = None
        if text[start : start + 1] == "{":
            found = dict(members(text, start)).get(part)
        elif text[start : start + 1] == "[" and _is_index(part):
            spans = list(elements(text, start))
            found = spans[int(part)] if int(part) < len(spans) else None
        if found is None:
            return None
        start = found.start
    return Span(start, _value_at(text, start)[1])


def members(text: str, start: int) -> Iterator[tuple[str, Span]]:
    """Yield key and place of each member of the object that begins at `start`; of two equal keys the last counts."""
    position = _skip_blanks(text, start + 1)
    while text[position : position + 1] not in ("}", ""):
        key, position = _value_at(text, position)
        position = _skip_blanks(text, _skip_blanks(text, position) + 1)
        end = _value_at(text, position)[1]
        yield key, Span(position, end)
        position = _after_comma(text, end)


def elements(text: str, start: int) -> Iterator[Span]:
    """Yield the place of each element of the array that begins at `start`."""
    position = _skip_blanks(text, start + 1)
    while text[position : position + 1] not in ("]", ""):
        end = _value_at(text, position)[1]
        yield Span(position, end)
        position = _after_comma(text, end)


def _after_comma(text: str, position: int) -> int:
    position = _skip_blanks(text, position)
    return _skip_blanks(text, position + 1) if text[position : position + 1] == "," else position


def _skip_blanks(text: str, position: int) -> int:
    while text[position : position + 1] in _BLANKS and position < len(text):
        position += 1
    return position


def _value_at(text: str, position: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except RecursionError:
        raise JsonError("nested too deeply") from None
    except ValueError:
        raise JsonError("not JSON") from None


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdigit() and (part == "0" or not part.startswith("0"))
