"""What a key of a project file may hold.

A kind turns a located value into a bare one or refuses it; which code, file and line that is belongs to the reader.
"""

from __future__ import annotations

import re
from datetime import timedelta
from enum import Enum
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from pz_engine.base.durations import parse_duration
from pz_engine.config.located import Listing, Located, Scalar, as_bool, as_text, kind_of
from pz_engine.model.contract_types import CONTRACT_TYPE_NAMES, DECIMAL_TYPE, duck_type_of

MAX_INT = 2_147_483_647
"""Largest whole number of an option: it fits 32 bits."""

_Value_co = TypeVar("_Value_co", covariant=True)
_Choice = TypeVar("_Choice", bound=Enum)


class Malformed(Exception):  # noqa: N818 - a control signal between a kind and the reader, never shown
    """A value is not of the kind."""

    def __init__(self, found: str = "", line: int | None = None) -> None:
        self.found = found
        """What stands there instead, when that helps."""

        self.line = line
        """Where, when it is not the line of the key."""
        super().__init__(found)


class Kind(Protocol[_Value_co]):
    """Values that one key accepts."""

    @property
    def wanted(self) -> str:
        """What must be written, after the words `must be`."""

    @property
    def example(self) -> str:
        """A value to show in a hint."""

    def parse(self, node: Located) -> _Value_co:
        """Return the bare value.

        Raises:
            Malformed: it is not of this kind.
        """


class Anything(Struct, frozen=True):
    """Whatever the connector makes of it."""

    wanted: str = "a value"
    example: str = "<value>"

    def parse(self, node: Located) -> Located:
        """Accept every value."""
        return node


class Text(Struct, frozen=True):
    """Text that is not blank."""

    takes_numbers: bool = False
    """A number is accepted too and kept as it is typed."""

    pattern: str = ""
    """Regular expression that the whole text must match."""

    wanted: str = "text"
    example: str = "<text>"

    def parse(self, node: Located) -> str:
        """Return the text."""
        is_text = as_text(node) is not None
        if not isinstance(node, Scalar) or not (is_text or (self.takes_numbers and _is_number(node))):
            raise Malformed(kind_of(node))
        if not node.text.strip():
            raise Malformed("nothing")
        if self.pattern and re.fullmatch(self.pattern, node.text) is None:
            raise Malformed
        return node.text


class SingleValue(Struct, frozen=True):
    """Text, a number or a boolean, kept as it is typed."""

    wanted: str = "a single value"
    example: str = "<value>"

    def parse(self, node: Located) -> str:
        """Return the characters."""
        if isinstance(node, Scalar) and not node.is_blank and node.text:
            return node.text
        raise Malformed(kind_of(node))


class Whole(Struct, frozen=True):
    """A whole number between two limits."""

    low: int
    high: int = MAX_INT

    @property
    def wanted(self) -> str:
        """Name the limits that matter."""
        if self.low < 0:
            return "a whole number"
        limits = f"of at least {self.low}" if self.high == MAX_INT else f"from {self.low} to {self.high}"
        return f"a whole number {limits}"

    @property
    def example(self) -> str:
        """Show a number within the limits."""
        return str(max(self.low, 4))

    def parse(self, node: Located) -> int:
        """Return the number."""
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, float):
            raise Malformed("a number with a point or an exponent")
        if not isinstance(value, int) or isinstance(value, bool):
            raise Malformed(kind_of(node))
        if not self.low <= value <= self.high:
            raise Malformed
        return value


class Flag(Struct, frozen=True):
    """A boolean; only lowercase `true` and `false` are."""

    wanted: str = "true or false, in lowercase and without quotes"
    example: str = "true"

    def parse(self, node: Located) -> bool:
        """Return the boolean."""
        value = as_bool(node)
        if value is None:
            raise Malformed
        return value


class Switch(Struct, frozen=True):
    """`on`, `off`, or a boolean."""

    words: tuple[str, str] = ("on", "off")
    wanted: str = "on or off"
    example: str = "on"

    def parse(self, node: Located) -> bool:
        """Return True for on."""
        value, text = as_bool(node), as_text(node)
        if value is None and text not in self.words:
            raise Malformed
        return text == self.words[0] if value is None else value


class Duration(Struct, frozen=True):
    """A duration above zero."""

    pattern: str = r"0*[1-9][0-9]*(ms|s|m|h|d)"
    wanted: str = "a duration above zero, such as 30s (units ms, s, m, h, d)"
    example: str = "30s"

    def parse(self, node: Located) -> timedelta:
        """Return the duration."""
        text = as_text(node) or ""
        found = parse_duration(text) if re.fullmatch(self.pattern, text) else None
        if found is None:
            raise Malformed
        return found


class Choice(Struct, Generic[_Choice], frozen=True):
    """One of a closed set of words."""

    choices: type[_Choice]

    @property
    def words(self) -> tuple[str, ...]:
        """The accepted words."""
        return tuple(str(choice.value) for choice in self.choices)

    @property
    def wanted(self) -> str:
        """List the words."""
        return f"one of {', '.join(self.words)}"

    @property
    def example(self) -> str:
        """Show the first word."""
        return self.words[0]

    def parse(self, node: Located) -> _Choice:
        """Return the choice."""
        text = as_text(node)
        if text not in self.words:
            raise Malformed
        return self.choices(text)


class Word(Struct, frozen=True):
    """One of a few words that the model keeps as text."""

    words: tuple[str, ...]

    @property
    def wanted(self) -> str:
        """List the words."""
        return f"one of {', '.join(self.words)}" if len(self.words) > 1 else f"the word {self.words[0]}"

    @property
    def example(self) -> str:
        """Show the first word."""
        return self.words[0]

    def parse(self, node: Located) -> str:
        """Return the word."""
        text = as_text(node)
        if text not in self.words:
            raise Malformed
        return text


class ContractType(Struct, frozen=True):
    """The name of a type that a column contract may give."""

    decimal: str = DECIMAL_TYPE
    """Regular expression of the one type with parameters."""

    wanted: str = f"a type of a column contract: {', '.join(CONTRACT_TYPE_NAMES)}"
    example: str = "bigint"

    def parse(self, node: Located) -> str:
        """Return the name."""
        if not isinstance(node, Scalar):
            raise Malformed(kind_of(node))
        if duck_type_of(node.text) is None:
            raise Malformed
        return node.text


class Off(Struct, frozen=True):
    """A word that switches something off, in any case, quoted or not."""

    words: tuple[str, ...] = ("off", "no", "false")
    wanted: str = "off"
    example: str = "off"

    def parse(self, node: Located) -> None:
        """Return nothing."""
        if not isinstance(node, Scalar) or node.text.lower() not in self.words:
            raise Malformed(kind_of(node))


class TextList(Struct, frozen=True):
    """A list of texts."""

    takes_scalars: bool = False
    """Numbers and booleans are accepted too and kept as they are typed."""

    wanted: str = "a list of texts"
    example: str = "[<text>]"

    def parse(self, node: Located) -> tuple[str, ...]:
        """Return the texts."""
        if not isinstance(node, Listing):
            raise Malformed(kind_of(node))
        item_kind: Kind[str] = SingleValue() if self.takes_scalars else Text()
        found: list[str] = []
        for item in node.items:
            try:
                found.append(item_kind.parse(item))
            except Malformed as problem:
                raise Malformed(f"a list with {problem.found}", item.line) from None
        return tuple(found)


class Values(Struct, frozen=True):
    """A list of texts, numbers or booleans with at least one of them."""

    wanted: str = "a list of texts, numbers or booleans"
    example: str = "[a, b]"

    def parse(self, node: Located) -> list[str | int | float | bool | None]:
        """Return the values."""
        if not isinstance(node, Listing):
            raise Malformed(kind_of(node))
        if not node.items:
            raise Malformed("an empty list")
        found: list[str | int | float | bool | None] = []
        for item in node.items:
            if not isinstance(item, Scalar) or item.is_blank:
                raise Malformed(f"a list with {kind_of(item)}", item.line)
            found.append(item.value)
        return found


def _is_number(node: Scalar) -> bool:
    return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
