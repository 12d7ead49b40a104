"""Builds located values from the events of a YAML parser.

Nothing here recurses, so that no nesting is deep enough to hurt; an alias shares its value instead of copying it.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from msgspec import Struct, field

from pz_engine.base.plain_text import forbidden_character
from pz_engine.config.located import Listing, Located, Scalar, Table
from pz_engine.config.reporter import Reporter
from pz_engine.errors.exceptions import PzConfigError

MAX_VALUES = 1_000_000
"""Most values one file may expand to through its aliases."""

MAX_DEPTH = 100
"""Most mappings and lists inside each other."""

_INTEGER = re.compile(r"([+-]?)0*([0-9]+)")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NUMBER_STARTS = frozenset("+-.0123456789")
_LONGEST_FLOAT = 1000


def type_plain(text: str) -> str | int | float | bool:
    """Give a plain scalar its type.

    >>> [type_plain(t) for t in ("5432", "1.5", "true", "yes", "0x10", "nan")]
    [5432, 1.5, True, 'yes', '0x10', 'nan']
    """
    if text == "true":
        return True
    if text == "false":
        return False
    if text[:1] not in _NUMBER_STARTS:
        return text
    whole = _INTEGER.fullmatch(text)
    if whole is not None and len(whole[2]) <= 19:
        number = int(whole[1] + whole[2])
        if -(2**63) <= number < 2**63:
            return number
    if len(text) <= _LONGEST_FLOAT and _FLOAT.fullmatch(text):
        value = float(text)
        if value not in (float("inf"), float("-inf")):
            return value
    return text


class _Built(Struct):
    """A finished value with what an alias to it costs."""

    value: Located
    size: int = 1
    height: int = 0


class _Open(Struct):
    """A mapping or a list whose end is not reached."""

    is_table: bool
    line: int
    anchor: str | None
    items: list[Located] = field(default_factory=list)
    entries: dict[str, Located] = field(default_factory=dict)
    key_lines: dict[str, int | None] = field(default_factory=dict)
    key: str | None = None
    """Key whose value comes next."""

    is_dropped: bool = False
    """The next value belongs to a key that cannot be used."""

    size: int = 1
    height: int = 0

    @property
    def awaits_key(self) -> bool:
        return self.is_table and self.key is None and not self.is_dropped


class TreeBuilder:
    """Takes the events of one file."""

    def __init__(self, report: Reporter) -> None:
        self.root: Located | None = None
        self._report = report
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Built | None] = {}
        self._count = 0
        self._documents = 0

    def take(self, event: Any) -> None:
        """Take one event.

        Raises:
            PzConfigError: `PZ0101`; the rest of the file cannot be read.
        """
        line = event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            self._refuse_tag(event, line)
            self._add(self._scalar(event, line), line, event.anchor)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._refuse_tag(event, line)
            self._start(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(str(event.anchor), line)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._error("it holds more than one document", line, "remove the line ---")

    def _scalar(self, event: Any, line: int) -> _Built:
        is_plain = not event.style  # None, or empty with the C parser
        text = event.value
        forbidden = forbidden_character(text)
        if forbidden is not None:
            self._refuse(f"a value holds {forbidden}", line, "remove the escape \\0 or \\uD800 from it")
            text = ""
        return _Built(Scalar(type_plain(text) if is_plain else text, line, text, is_plain))

    def _start(self, event: Any, line: int) -> None:
        self._stack.append(_Open(isinstance(event, yaml.MappingStartEvent), line, event.anchor))
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._check_depth(0, line)

    def _end(self) -> None:
        done = self._stack.pop()
        value: Located = (
            Table(done.entries, done.line, done.key_lines) if done.is_table else Listing(tuple(done.items), done.line)
        )
        self._add(_Built(value, done.size, done.height + 1), done.line, done.anchor)

    def _alias(self, anchor: str, line: int) -> None:
        if anchor not in self._anchors:
            raise self._error(
                f"the alias *{anchor} has no anchor before it", line, f"write &{anchor} at the value it repeats"
            )
        built = self._anchors[anchor]
        if built is None:
            raise self._error("an alias stands inside its own anchor", line, "write the value out")
        self._check_depth(built.height, line)
        self._add(built, line, None, built.size)

    def _add(self, built: _Built, line: int, anchor: str | None, cost: int = 1) -> None:
        self._count += cost
        if self._count > MAX_VALUES:
            raise self._error(f"it holds more than {MAX_VALUES} values, aliases expanded", line, "split the file")
        if anchor is not None:
            self._anchors[anchor] = built
        if not self._stack:
            self.root = built.value
            return
        parent = self._stack[-1]
        if parent.awaits_key:
            self._take_key(parent, built.value, line)
            return
        parent.size += built.size
        parent.height = max(parent.height, built.height)
        if not parent.is_table:
            parent.items.append(built.value)
        elif parent.key is not None:
            parent.entries[parent.key] = built.value
            parent.key = None
        else:
            parent.is_dropped = False

    def _take_key(self, parent: _Open, key: Located, line: int) -> None:
        if not isinstance(key, Scalar):
            self._refuse("a key is not a single value", line, "write key: value")
            parent.is_dropped = True
        elif key.text in parent.entries:
            first = parent.key_lines[key.text]
            self._refuse(f"key '{key.text}' is written twice (first on line {first})", line, "keep one of them")
            parent.is_dropped = True
        else:
            parent.key = key.text
            parent.key_lines[key.text] = line

    def _check_depth(self, height: int, line: int) -> None:
        if len(self._stack) + height > MAX_DEPTH:
            raise self._error(f"it is nested more than {MAX_DEPTH} levels deep", line, "flatten it")

    def _refuse_tag(self, event: Any, line: int) -> None:
        if event.tag is not None:
            self._refuse(f"the tag {event.tag} is not supported", line, "remove it; quotes make text")

    def _refuse(self, cause: str, line: int, hint: str) -> None:
        """Report a problem that the rest of the file can be read beside."""
        self._report.add("PZ0101", cause, line=line, hint=hint)

    def _error(self, cause: str, line: int, hint: str) -> PzConfigError:
        file = self._report.file
        return PzConfigError("PZ0101", f"{file}: {cause}", file=file, line=line, hint=hint)
