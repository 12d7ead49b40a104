"""What templates do with values: their texts, filters and tests.

A value prints in one way wherever it becomes text, and what a filter makes is paid for before it is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, Undefined
from jinja2.utils import pass_context

from pz_engine.compile.template.work import Work

WORK = "pz work"
"""Name of the rendering's account in its context; no template can spell it."""

CHARGE = "pz charge"
"""Filter that pays for a value and returns it."""

EACH = "pz each"
"""Filter that pays for every turn of a loop and returns what it goes over."""

CONCAT = "pz concat"
"""Filter that joins the texts of a list's items."""

UNKNOWN = "pz unknown"
"""Filter that refuses a name nobody defined."""

_SORT_FACTOR = 8


class UnknownNameError(SecurityError):
    """A name that is neither pz's nor the template's own was evaluated."""

    def __init__(self, name: str, line: int) -> None:
        super().__init__(f"'{name}' is undefined")
        self.name = name
        self.line = line


def work_of(context: Context) -> Work:
    """Return the account of a rendering."""
    work: Work = context.parent[WORK]
    return work


def as_text(value: Any) -> str:
    """Return how a value prints: `null` as nothing, booleans in lower case, numbers without a locale.

    Raises:
        SecurityError: the value has no text.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        raise SecurityError("the number is out of range")
    if isinstance(value, (int, float, list, tuple, Mapping, Undefined)):
        return str(value)  # of an undefined value this raises what is missing
    raise SecurityError(f"a value of type {type(value).__name__} has no text")


@pass_context
def finalize(context: Context, value: Any) -> str:
    """Return the text of what an output tag holds."""
    work_of(context).charge(value)
    return as_text(value)


@pass_context
def charge(context: Context, value: Any) -> Any:
    """Pay for a value that is about to be worked on."""
    work_of(context).charge(value)
    return value


@pass_context
def each(context: Context, value: Any, units: int) -> Sequence[Any]:
    """Pay for a whole loop, whose turns cost so many units each."""
    if isinstance(value, Undefined):
        iter(value)  # raises what is missing
    if not isinstance(value, (list, tuple, Mapping, str)):
        raise SecurityError("a loop goes over a list, an object or a text")
    work_of(context).spend(len(value) * units)
    return value if isinstance(value, (list, tuple)) else list(value)


@pass_context
def concat(context: Context, parts: Sequence[Any]) -> str:
    """Return the texts of some values in a row."""
    work_of(context).charge(parts)
    return "".join(as_text(part) for part in parts)


def unknown(name: str, line: int) -> Any:
    """Refuse a name."""
    raise UnknownNameError(name, line)


@pass_context
def _join(context: Context, value: Any, separator: Any = "", attribute: Any = None) -> str:
    items = list(value)
    between = as_text(separator)
    work_of(context).spend(len(items) * len(between))
    if attribute is not None:
        items = [context.environment.getitem(item, attribute) for item in items]
    return between.join(as_text(item) for item in items)


@pass_context
def _replace(context: Context, value: Any, old: Any, new: Any, count: int = -1) -> str:
    text, searched, put = as_text(value), as_text(old), as_text(new)
    work_of(context).spend(text.count(searched) * len(put))
    return text.replace(searched, put, count)


def _sorting(jinja_filter: Callable[..., Any]) -> Callable[..., Any]:
    """Return Jinja's filter, paying for the comparisons it makes."""

    @pass_context
    def run(context: Context, value: Any, *args: Any, **kwargs: Any) -> list[Any]:
        for _ in range(_SORT_FACTOR):
            work_of(context).charge(value)
        return list(jinja_filter(context.environment, value, *args, **kwargs))

    return run


def _lower(value: Any) -> str:
    return as_text(value).lower()


def _upper(value: Any) -> str:
    return as_text(value).upper()


def _trim(value: Any, characters: str | None = None) -> str:
    return as_text(value).strip(characters)


def _is_even(value: Any) -> bool:
    return _whole(value) % 2 == 0


def _is_odd(value: Any) -> bool:
    return _whole(value) % 2 == 1


def _whole(value: Any) -> int:
    if not isinstance(value, int):  # with a text, % would format
        raise SecurityError("even and odd take a whole number")
    return value


def filters_of(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters of templates, out of Jinja's and pz's own.

    Args:
        known: Jinja's filters.
    """
    own = {"join": _join, "lower": _lower, "replace": _replace, "trim": _trim, "upper": _upper,
           "sort": _sorting(known["sort"]), "unique": _sorting(known["unique"])}  # fmt: skip
    internal = {CHARGE: charge, EACH: each, CONCAT: concat, UNKNOWN: unknown}
    return {name: known[name] for name in ("default", "first", "last", "length", "list")} | own | internal


def tests_of(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tests of templates, out of Jinja's and pz's own.

    Args:
        known: Jinja's tests.
    """
    kept = ("boolean", "defined", "float", "in", "integer", "mapping", "none", "number", "sequence", "string",
            "undefined")  # fmt: skip
    return {name: known[name] for name in kept} | {"even": _is_even, "odd": _is_odd}
