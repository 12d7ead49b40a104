"""`${NAME}` in configuration.

A value is substituted once; a plain scalar is typed again only when the type prints back to the same characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pz_engine.base.near_miss import closest
from pz_engine.config.located import Listing, Located, Scalar, Table
from pz_engine.config.yaml_reader import type_plain
from pz_engine.errors.collector import ProblemCollector

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def has_reference(text: str) -> bool:
    """Tell whether a text names at least one variable.

    >>> has_reference("${A}"), has_reference("$${A}"), has_reference("${A:-b}")
    (True, False, False)
    """
    return any(match[1] for match in _REFERENCE.finditer(text))


def interpolate(node: Located, env: Mapping[str, str], problems: ProblemCollector, file: str) -> Located:
    """Return the tree with every reference replaced; an unset variable is one `PZ0103` per occurrence."""
    if isinstance(node, Scalar):
        return _interpolate_scalar(node, env, problems, file)
    if isinstance(node, Listing):
        return Listing(tuple(interpolate(item, env, problems, file) for item in node.items), node.line)
    entries = {key: interpolate(value, env, problems, file) for key, value in node.entries.items()}
    return Table(entries, node.line, node.key_lines)


def _interpolate_scalar(node: Scalar, env: Mapping[str, str], problems: ProblemCollector, file: str) -> Scalar:
    if "${" not in node.text:
        return node

    def substitute(match: re.Match[str]) -> str:
        name = match[1]
        if not name:
            return "${"
        if name in env:
            return env[name]
        best = closest(name, env)
        problems.add(
            "PZ0103", f"environment variable {name} is not set", file=file, line=node.line,
            hint=f"set it with `export {name}=...`" + (f", or use {best}" if best else ""),
        )  # fmt: skip
        return match[0]

    text = _REFERENCE.sub(substitute, node.text)
    if text == node.text:
        return node
    return replace(node, text=text, value=_typed_when_exact(text) if node.is_plain else text)


def _typed_when_exact(text: str) -> str | int | float | bool:
    value = type_plain(text)
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return value if str(value) == text else text
    return value
