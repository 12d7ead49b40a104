"""Names that may be identifiers, and how other names become them."""

from __future__ import annotations

import re

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")


def is_identifier(name: str) -> bool:
    """Tell whether a name is ASCII letters, digits and `_`, not starting with a digit."""
    return _IDENTIFIER.fullmatch(name) is not None


def fold(name: str) -> str:
    """Replace each character outside `[A-Za-z0-9_]` by `_`.

    >>> fold("dbo.orders")
    'dbo_orders'
    """
    return _ILLEGAL.sub("_", name)


def suggest_identifier(name: str) -> str:
    """Propose a legal rename: illegal runs fold to one `_`, leading digits move to the end.

    >>> suggest_identifier("01_load")
    'load_01'
    """
    folded = re.sub(r"[^A-Za-z0-9_]+", "_", name)
    match = re.fullmatch(r"([0-9]+)_?(.*)", folded)
    if match:
        rest = match[2].strip("_")
        folded = f"{rest}_{match[1]}" if rest else f"p_{match[1]}"
    return folded or "unnamed"
