"""Names that Dagster accepts, and the spellings under which two of them collide.

Dagster allows `[A-Za-z0-9_]` in an op's outputs and joins key parts with `__`, so two different keys can still meet.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence

import dagster as dg

_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")
_ILLEGAL_TAG = re.compile(r"[^A-Za-z0-9_.-]")
_TAG_LENGTH = 63
_RESERVED = frozenset(
    {
        *("context", "conf", "config", "meta", "arg_dict", "dict", "input_arg_dict", "output_arg_dict"),
        *("int", "str", "float", "bool", "input", "output", "type"),
        *keyword.kwlist,
    }
)
"""Words that Dagster refuses as the name of an op."""

PLACEHOLDER = "pz_errors"
"""Last part of the key of what stands for a project that does not compile."""


def fold(text: str) -> str:
    """Replace every character that Dagster refuses in names by `_`.

    >>> fold("orders.clean v2")
    'orders_clean_v2'
    """
    return _ILLEGAL.sub("_", text)


def op_name(text: str) -> str:
    """Fold a name for an op.

    >>> op_name("shop-eu"), op_name("int")
    ('shop_eu', 'int_')
    """
    folded = fold(text)
    return f"{folded}_" if folded in _RESERVED else folded


def fold_tag(text: str) -> str:
    """Shorten and fold a tag's value; empty when nothing legal is left.

    >>> fold_tag("  due: monday ")
    'due__monday'
    """
    return _ILLEGAL_TAG.sub("_", text)[:_TAG_LENGTH].strip("._-")


def fold_tag_key(text: str) -> str:
    """Fold a tag's name, which may have one prefix before a `/`; empty when nothing legal is left.

    >>> fold_tag_key("team/data eng"), fold_tag_key("dagster/kind/sql"), fold_tag_key("é")
    ('team/data_eng', 'dagster_kind_sql', '')
    """
    prefix, slash, name = text.partition("/")
    if slash and prefix != "dagster" and fold_tag(prefix) and fold_tag(name):
        return f"{fold_tag(prefix)}/{fold_tag(name)}"
    return fold_tag(text)


def asset_key(parts: Iterable[str]) -> dg.AssetKey:
    """Build a key from raw parts, each folded; empty parts are left out."""
    return dg.AssetKey([fold(part) for part in parts if part])


def entity_parts(connection: str, entity: str) -> Sequence[str]:
    """Return the raw key parts of a remote entity: the connection, then the entity split at its dots."""
    return (connection, *entity.split("."))


def output_name(key: dg.AssetKey) -> str:
    """Return the output of an op that an asset becomes; two keys with one spelling collide."""
    return "__".join(key.path)


def check_output_name(spec: dg.AssetCheckSpec) -> str:
    """Return the output of an op that a check becomes."""
    return f"{output_name(spec.asset_key)}_{spec.name}".replace(".", "_")
