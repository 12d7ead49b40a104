"""Small checks that every project file shares: unknown keys, tables, lists of text."""

from __future__ import annotations

from collections.abc import Iterable

from pz_engine.base.near_miss import did_you_mean
from pz_engine.config.located import Listing, Located, Scalar, Table
from pz_engine.config.reporter import Reporter


def refuse_unknown(table: Table, known: Iterable[str], report: Reporter, *, code: str, block: str = "") -> None:
    """Report each key that is not known, with the nearest one as a hint."""
    accepted = tuple(known)
    for key in table.entries:
        if key not in accepted:
            report.add(
                code, f"{block and block + ' '}has an unknown key '{key}'", line=table.line_of(key),
                hint=did_you_mean(key, accepted) or f"accepted keys: {', '.join(sorted(accepted))}",
            )  # fmt: skip


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


def text_list(node: Located) -> tuple[str, ...] | None:
    """Return a list of non-empty texts, or None when it is anything else."""
    if not isinstance(node, Listing):
        return None
    found = tuple(item.value for item in node.items if isinstance(item, Scalar) and isinstance(item.value, str))
    return found if len(found) == len(node.items) and all(found) else None
