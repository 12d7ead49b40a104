"""Jinja's sandbox, cut down to what a pipeline may do.

No file, network or clock access; no attribute of a Python object is reachable, only keys, items and `loop`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jinja2 import StrictUndefined
from jinja2.exceptions import SecurityError, UndefinedError
from jinja2.runtime import LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pz_engine.compile.template.guard import LOOP_NAMES
from pz_engine.compile.template.spelling import PzSpelling
from pz_engine.compile.template.values import filters_of, finalize, tests_of, work_of

_LARGEST = 10**38
"""Whole numbers stay below it, as DuckDB's do."""


class PzFunction:
    """A callable that templates may use; nothing else can be called but `loop.cycle` and `loop.changed`."""


class PzEnvironment(ImmutableSandboxedEnvironment):
    """The environment of every pipeline; trees go through `guard` before they are compiled."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            extensions=[PzSpelling],
            undefined=StrictUndefined,
            finalize=finalize,
            keep_trailing_newline=True,
            autoescape=False,
            optimized=False,
        )
        self.filters: dict[str, Any] = filters_of(self.filters)
        self.tests: dict[str, Any] = tests_of(self.tests)
        self.globals.clear()

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return a mapping's value or a member of `loop`."""
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        if isinstance(obj, LoopContext) and attribute in LOOP_NAMES:
            return getattr(obj, attribute)
        return obj if isinstance(obj, Undefined) else self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item of a mapping, a list or a text."""
        if isinstance(obj, Undefined) or isinstance(argument, Undefined):
            return obj if isinstance(obj, Undefined) else argument
        if isinstance(obj, (Mapping, list, tuple, str)) and isinstance(argument, (str, int)):
            try:
                return obj[argument]  # type: ignore[index]  # a text as a list's index is a TypeError
            except (KeyError, IndexError, TypeError):
                pass
        # The argument may be a variable's value, so it is not repeated.
        return self.undefined(hint="a value has no such item", obj=obj)

    def is_safe_callable(self, obj: Any) -> bool:
        """Allow pz's functions and the two methods of `loop`; an unknown name says so itself."""
        if isinstance(obj, Undefined):
            raise UndefinedError(obj._undefined_message)
        return isinstance(obj, PzFunction) or isinstance(getattr(obj, "__self__", None), LoopContext)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Apply an operator to two numbers, or + to two texts or two lists."""
        if operator == "+" and (_are(str, left, right) or _are((list, tuple), left, right)):
            work_of(context).spend(len(left) + len(right))
            return [*left, *right] if not isinstance(left, str) else left + right
        if not _are((int, float), left, right) and not _are_undefined(left, right):
            texts = ", two texts or two lists" if operator == "+" else ""
            raise SecurityError(f"{operator} takes two numbers{texts}")
        try:
            value = super().call_binop(context, operator, left, right)
        except (ZeroDivisionError, OverflowError):
            raise SecurityError(f"the result of {operator} is out of range") from None
        if abs(value) >= _LARGEST and (isinstance(value, int) or not math.isfinite(value)):
            raise SecurityError(f"the result of {operator} is out of range")
        return value


def _are(kind: type | tuple[type, ...], left: Any, right: Any) -> bool:
    return isinstance(left, kind) and isinstance(right, kind)


def _are_undefined(left: Any, right: Any) -> bool:
    return isinstance(left, Undefined) or isinstance(right, Undefined)
