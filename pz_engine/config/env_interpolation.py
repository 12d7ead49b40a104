"""`${NAME}` in configuration.

A value is substituted once; a plain scalar is typed again only when the type prints back to the same characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from pz_engine.base.near_miss import closest
from pz_engine.base.plain_text import forbidden_character
from pz_engine.config.located import Listing, Located, Scalar, Table
from pz_engine.config.yaml_builder import type_plain
from pz_engine.errors.collector import ProblemCollector

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MANY_NAMES = 50


def has_reference(text: str) -> bool:
    """Tell whether a text names at least one variable.

    >>> has_reference("${A}"), has_reference("$${A}"), has_reference("${A:-b}")
    (True, False, False)
    """
    return "${" in text and any(match[1] for match in _REFERENCE.finditer(text))


def interpolate(node: Located, env: Mapping[str, str], problems: ProblemCollector, file: str) -> Located:
    """Return the tree with every reference replaced; an unset variable is one `PZ0103` per occurrence."""
    return _Interpolation(env, problems, file).replaced(node)


class _Interpolation:
    """One pass over one tree; a value that an alias repeats is one occurrence."""

    def __init__(self, env: Mapping[str, str], problems: ProblemCollector, file: str) -> None:
        self._env = env
        self._problems = problems
        self._file = file
        self._done: dict[int, Located] = {}
        self._hints: dict[str, str] = {}

    def replaced(self, node: Located) -> Located:
        if isinstance(node, Scalar) and "${" not in node.text:
            return node
        known = self._done.get(id(node))
        if known is not None:
            return known
        found: Located
        if isinstance(node, Scalar):
            found = self._scalar(node)
        elif isinstance(node, Listing):
            found = Listing(tuple(self.replaced(item) for item in node.items), node.line)
        else:
            found = Table({key: self.replaced(value) for key, value in node.entries.items()}, node.line, node.key_lines)
        self._done[id(node)] = found
        return found

    def _scalar(self, node: Scalar) -> Scalar:
        def substitute(match: re.Match[str]) -> str:
            name = match[1]
            if not name:
                return "${"
            if name in self._env:
                return self._text_value(name, node)
            self._problems.add(
                "PZ0103",
                f"environment variable {name} is not set",
                file=self._file,
                line=node.line,
                hint=self._hint(name),
            )
            return match[0]

        text = _REFERENCE.sub(substitute, node.text)
        if text == node.text:
            return node
        return replace(node, text=text, value=_typed_when_exact(text) if node.is_plain else text)

    def _text_value(self, name: str, node: Scalar) -> str:
        value = self._env[name]
        if forbidden_character(value) is None:
            return value
        self._problems.add(
            "PZ0101", f"environment variable {name} is not UTF-8 text", file=self._file, line=node.line,
            hint=f"set {name} anew, without NUL",
        )  # fmt: skip
        return ""

    def _hint(self, name: str) -> str:
        """Return the next step; the search for a similar name is slow, so it ends at the fiftieth."""
        if name not in self._hints:
            best = closest(name, self._env) if len(self._hints) < _MANY_NAMES else None
            self._hints[name] = f"set it with `export {name}=...`" + (f", or use {best}" if best else "")
        return self._hints[name]


def _typed_when_exact(text: str) -> str | int | float | bool:
    value = type_plain(text)
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return value if str(value) == text else text
    return value
