"""Values that remember the line they were written on.

YAML files and template calls both become such trees, so one parser serves both surfaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

_LEVELS_WITH_LINES = 3


class Scalar(Struct, frozen=True):
    """A single value."""

    value: str | int | float | bool | None
    line: int | None = None
    text: str = ""
    """The characters as written, before typing."""

    is_plain: bool = False
    """Written without quotes, so its characters decided its type."""

    @property
    def is_blank(self) -> bool:
        """Tell whether nothing was written: a key with no body, or a template's `null`."""
        return self.value is None or (self.is_plain and self.text == "")


@dataclass(frozen=True, slots=True)
class Listing:
    """A list."""

    items: tuple[Located, ...]
    line: int | None = None
    is_blank: bool = field(default=False, init=False)


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping; keys keep their order."""

    entries: Mapping[str, Located]
    line: int | None = None
    key_lines: Mapping[str, int | None] = field(default_factory=dict)
    is_blank: bool = field(default=False, init=False)

    def line_of(self, key: str) -> int | None:
        """Return the line of a key."""
        return self.key_lines.get(key, self.line)

    def get(self, key: str) -> Located | None:
        """Return a key's value, or None when the key is absent."""
        return self.entries.get(key)

    def present(self, key: str) -> Located | None:
        """Return a key's value, or None when the key is absent or has no body."""
        found = self.entries.get(key)
        return None if found is None or found.is_blank else found


Located = Scalar | Listing | Table


def plain(node: Located) -> Any:
    """Return the bare value: str, int, float, bool, None, list or dict."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Listing):
        return [plain(item) for item in node.items]
    return {key: plain(value) for key, value in node.entries.items()}


def kind_of(node: Located) -> str:
    """Name what was written, without echoing it."""
    if isinstance(node, Table):
        return "a mapping"
    if isinstance(node, Listing):
        return "a list"
    if node.is_blank:
        return "nothing"
    if isinstance(node.value, bool):
        return "a boolean"
    return "a number" if isinstance(node.value, (int, float)) else "text"


def lines_of(table: Table) -> dict[str, int]:
    """Return the line of each key by its path, some levels deep; keys on the table's own line are left out."""
    found: dict[str, int] = {}
    waiting: list[tuple[str, Table, int]] = [("", table, _LEVELS_WITH_LINES)]
    while waiting:
        prefix, current, levels = waiting.pop()
        for key, node in current.entries.items():
            line = current.line_of(key)
            if line is not None and line != table.line:
                found[prefix + key] = line
            if isinstance(node, Table) and levels > 1:
                waiting.append((f"{prefix}{key}.", node, levels - 1))
    return found


def scalars(node: Located) -> Iterator[Scalar]:
    """Yield every scalar below a node, in order."""
    if isinstance(node, Scalar):
        yield node
    else:
        for child in node.items if isinstance(node, Listing) else node.entries.values():
            yield from scalars(child)


def locate(value: Any, line: int | None) -> Located:
    """Turn a bare value into a tree whose every node is on one line.

    Raises:
        TypeError: the value is nothing JSON can hold; the message names its type.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return Scalar(value, line, _text_of(value))
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN differs from itself
            raise TypeError("a number that is not finite")
        return Scalar(value, line, repr(value))
    if isinstance(value, (list, tuple)):
        return Listing(tuple(locate(item, line) for item in value), line)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"an object with a key of type {type(key).__name__}")
        return Table({key: locate(item, line) for key, item in value.items()}, line, dict.fromkeys(value, line))
    raise TypeError("a function" if callable(value) else f"a value of type {type(value).__name__}")


def as_int(node: Located | None) -> int | None:
    """Return a whole number that fits 32 bits, or None for anything else."""
    if not isinstance(node, Scalar) or isinstance(node.value, bool) or not isinstance(node.value, int):
        return None
    return node.value if -(2**31) <= node.value < 2**31 else None


def as_text(node: Located | None) -> str | None:
    """Return a string value, or None for anything else."""
    return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else None


def as_bool(node: Located | None) -> bool | None:
    """Return a boolean value, or None for anything else."""
    return node.value if isinstance(node, Scalar) and isinstance(node.value, bool) else None


def _text_of(value: str | int | bool | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
