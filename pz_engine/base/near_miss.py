"""Suggestions for misspelled names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most like the name, or None when nothing is close."""
    options = sorted(set(candidates))
    folded = {option.lower(): option for option in options}
    if name.lower() in folded:
        return folded[name.lower()]
    found = difflib.get_close_matches(name, options, n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Return a hint sentence for a misspelled name, or None."""
    best = closest(name, candidates)
    return f"did you mean '{best}'?" if best is not None and best != name else None


def is_one_edit_apart(left: str, right: str) -> bool:
    """Tell whether two names differ only in case, or by one insertion, deletion or substitution.

    >>> is_one_edit_apart("strateg", "strategy"), is_one_edit_apart("Keys", "keys"), is_one_edit_apart("key", "path")
    (True, True, False)
    """
    if left == right:
        return False
    if left.lower() == right.lower():
        return True
    if abs(len(left) - len(right)) > 1:
        return False
    shorter, longer = sorted((left, right), key=len)
    index = 0
    while index < len(shorter) and shorter[index] == longer[index]:
        index += 1
    skip = 1 if len(shorter) == len(longer) else 0
    return shorter[index + skip :] == longer[index + 1 :]
