"""Jinja's sandbox, cut down to what a pipeline may do.

No file, network or clock access; no attribute of a Python object is reachable, only keys, items and `loop`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import StrictUndefined
from jinja2.exceptions import SecurityError, UndefinedError
from jinja2.runtime import LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pz_engine.compile.template.spelling import PzSpelling

_FILTERS = (
    "default", "first", "join", "last", "length", "list", "lower", "replace", "sort", "trim", "unique", "upper",
)  # fmt: skip
_TESTS = ("boolean", "defined", "even", "float", "in", "integer", "mapping", "none", "number", "odd", "sequence",
          "string", "undefined")  # fmt: skip
_LOOP_NAMES = frozenset(
    {
        "index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem",
        "nextitem", "cycle", "changed",
    }
)  # fmt: skip
_MAX_LENGTH = 1_000_000
_MAX_EXPONENT = 1_000


class PzFunction:
    """A callable that templates may use; nothing else can be called but `loop.cycle` and `loop.changed`."""


class PzEnvironment(ImmutableSandboxedEnvironment):
    """The environment of every pipeline."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            extensions=[PzSpelling],
            undefined=StrictUndefined,
            finalize=_finalize,
            keep_trailing_newline=True,
            autoescape=False,
            optimized=False,
        )
        self.filters = {name: self.filters[name] for name in _FILTERS}
        self.tests = {name: self.tests[name] for name in _TESTS}
        self.globals.clear()

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return a mapping's value or a member of `loop`."""
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        if isinstance(obj, LoopContext) and attribute in _LOOP_NAMES:
            return getattr(obj, attribute)
        return self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item of a mapping, a list or a text."""
        if isinstance(argument, Undefined):
            return argument
        if isinstance(obj, (Mapping, list, tuple, str)):
            try:
                return obj[argument]
            except (KeyError, IndexError, TypeError):
                return self.undefined(obj=obj, name=argument)
        return self.undefined(obj=obj, name=argument)

    def is_safe_callable(self, obj: Any) -> bool:
        """Allow pz's functions and the two methods of `loop`; an unknown name says so itself."""
        if isinstance(obj, Undefined):
            raise UndefinedError(obj._undefined_message)
        return isinstance(obj, PzFunction) or isinstance(getattr(obj, "__self__", None), LoopContext)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Apply an operator unless its result could grow without measure."""
        if operator == "%" and isinstance(left, str):
            raise SecurityError("text cannot be formatted with %")
        if operator == "**" and (not _is_number(left) or not _is_number(right) or abs(right) > _MAX_EXPONENT):
            raise SecurityError("the power is too large")
        if operator == "*":
            for text, count in ((left, right), (right, left)):
                if isinstance(text, (str, list, tuple)) and isinstance(count, int) and len(text) * count > _MAX_LENGTH:
                    raise SecurityError("the repeated value is too large")
        value = super().call_binop(context, operator, left, right)
        if isinstance(value, (str, list, tuple)) and len(value) > _MAX_LENGTH:
            raise SecurityError("the value is too large")
        return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _finalize(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value
