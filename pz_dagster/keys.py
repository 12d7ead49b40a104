"""Names that Dagster accepts, and collisions between them.

Dagster allows `[A-Za-z0-9_]` in an op's outputs and joins key parts with `__`, so two different keys can still meet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import dagster as dg

_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")
_ILLEGAL_TAG = re.compile(r"[^A-Za-z0-9_.-]")
_TAG_LENGTH = 63


def fold(text: str) -> str:
    """Replace every character that Dagster refuses in names by `_`."""
    return _ILLEGAL.sub("_", text)


def fold_tag(text: str) -> str:
    """Shorten and fold a tag's name or value."""
    return _ILLEGAL_TAG.sub("_", text)[:_TAG_LENGTH].strip("._-")


def asset_key(parts: Iterable[str]) -> dg.AssetKey:
    """Build a key from raw parts, each folded."""
    return dg.AssetKey([fold(part) for part in parts])


def entity_parts(connection: str, entity: str) -> Sequence[str]:
    """Return the raw key parts of a remote entity: the connection, then the entity split at its dots."""
    return (connection, *entity.split("."))


def joined(key: dg.AssetKey) -> str:
    """Return the spelling under which two keys of one op collide."""
    return "__".join(key.path)
