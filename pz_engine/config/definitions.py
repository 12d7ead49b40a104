"""How a block of a project file is described.

The loader and the JSON Schemas are made from the same values, so that neither knows a key, a limit or a word that the
other does not.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from pz_engine.config.kinds import Kind, Malformed
from pz_engine.config.located import Listing, Located, Table, kind_of

_Value_co = TypeVar("_Value_co", covariant=True)


class Key(Struct, Generic[_Value_co], frozen=True):
    """One key of a block."""

    name: str
    kind: Kind[_Value_co]
    summary: str
    """One sentence for whoever writes the file."""

    default: _Value_co
    """Value of an absent key."""

    code: str = ""
    """Code of a malformed value, unless it is the block's."""

    is_required: bool = False
    may_be_blank: bool = True
    """A key with no body counts as absent; otherwise it is malformed."""

    example: str = ""
    """Value to show in a hint, unless it is the kind's."""

    is_passed_on: bool = False
    """The engine knows the key, and its connector gets it too."""


class Retired(Struct, frozen=True):
    """A key of earlier versions."""

    name: str
    code: str
    cause: str
    hint: str
    """What to write instead; `<value>` stands for the old value."""

    inner: str = ""
    """Key of a mapping that holds the old value."""

    placeholder: str = "<value>"
    """Shown when there is no old value."""

    is_reported: bool = True
    """Reported by itself; otherwise by a rule over several keys."""


class Block(Struct, frozen=True):
    """A mapping with known keys."""

    path: str
    """Starts the names of its keys in messages, for example `engine.duckdb`; empty for the top of a file."""

    code: str
    """Code of everything that has none of its own."""

    keys: tuple[Key[object], ...]
    summary: str = ""
    retired: tuple[Retired, ...] = ()
    is_open: bool = False
    """Other keys belong to a connector."""

    least: int = 0
    """Fewest keys it needs."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all keys."""
        return tuple(key.name for key in self.keys)

    @property
    def kept_names(self) -> frozenset[str]:
        """Names that never reach a connector."""
        own = (key.name for key in self.keys if not key.is_passed_on)
        return frozenset({*own, *(retired.name for retired in self.retired)})


class Section(Struct, frozen=True):
    """A mapping with keys of its own."""

    block: Block
    wanted: str = "a mapping"
    example: str = "{}"

    def parse(self, node: Located) -> Table:
        """Return the mapping, its keys unread."""
        return _mapping(node)


class Variants(Struct, frozen=True):
    """A mapping whose keys depend on the value of one of them."""

    selector: Key[str]
    blocks: tuple[tuple[str, Block], ...]
    """The block of each value of the selector."""

    wanted: str = "a mapping"
    example: str = "{}"

    def parse(self, node: Located) -> Table:
        """Return the mapping, its keys unread."""
        return _mapping(node)


class MapOf(Struct, frozen=True):
    """A mapping of free names to values of one kind."""

    item: Kind[object]
    name_pattern: str = ""
    """Regular expression a whole name must match; empty for any name."""

    retired: tuple[Retired, ...] = ()
    wanted: str = "a mapping"
    example: str = "{}"

    def parse(self, node: Located) -> Table:
        """Return the mapping, its values unread."""
        return _mapping(node)


class ListOf(Struct, frozen=True):
    """A list of values of one kind."""

    item: Kind[object]
    wanted: str = "a list"
    example: str = "[]"

    def parse(self, node: Located) -> Listing:
        """Return the list, its items unread."""
        if not isinstance(node, Listing):
            raise Malformed(kind_of(node))
        return node


class Either(Struct, frozen=True):
    """A value of any of several kinds."""

    kinds: tuple[Kind[object], ...]
    example: str = "<value>"

    @property
    def wanted(self) -> str:
        """List what is wanted."""
        return " or ".join(kind.wanted for kind in self.kinds)

    def parse(self, node: Located) -> object:
        """Return the value the first fitting kind makes of it."""
        for kind in self.kinds:
            try:
                return kind.parse(node)
            except Malformed:
                continue
        raise Malformed(kind_of(node))


def _mapping(node: Located) -> Table:
    if not isinstance(node, Table):
        raise Malformed(kind_of(node))
    return node
