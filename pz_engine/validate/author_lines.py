"""From a line of compiled SQL back to the line of the author's file.

A line is named only when it is certain: the file has no other, its text occurs once on each side, it lies between two such
lines (or behind the last one) that are equally far apart on both sides, or it holds a word that occurs once on each side.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

_NO_PLAIN_SQL = re.compile(
    r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$",
    re.DOTALL,
)
_STATEMENT = re.compile(r"\{%|\{\{-?\s*(?:if|for|else|end)\b")
"""Tags that leave text out or repeat it."""


def author_line(written: str, compiled: str, index: int, word: str | None = None) -> int | None:
    r"""Return the 1-based line of `written` that the line at `index` of `compiled` comes from, or None.

    >>> author_line("-- why\nselect a,\n  {{ x }}\nfrom t\n", "select a,\n  7\nfrom t", 1)
    3
    """
    theirs = [line.strip() for line in written.rstrip().split("\n")]
    ours = [line.strip() for line in compiled.rstrip().split("\n")]
    if not 0 <= index < len(ours):
        return None
    filled = [number for number, line in enumerate(theirs, 1) if line]
    if len(filled) == 1 and ours[index]:
        return filled[0]
    found = _line_between(ours, theirs, index)
    return found if found is not None or word is None else _line_of_word(written, compiled, word)


def plain_sql(written: str) -> str:
    """Return what the author wrote as SQL, with blanks for tags, comments, texts and quoted names.

    >>> plain_sql("SELECT 'x', {{ y }} -- z")
    'SELECT    ,             '
    """
    return _NO_PLAIN_SQL.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), written)


def _line_of_word(written: str, compiled: str, word: str) -> int | None:
    """Return the line of a word that occurs once on both sides; what stands outside tags is then rendered once."""
    if _STATEMENT.search(written):
        return None
    pattern = re.compile(rf"(?<![\w$]){re.escape(word)}(?![\w$])")
    places = [match.start() for match in pattern.finditer(written)]
    if len(places) != 1 or len(pattern.findall(compiled)) != 1 or pattern.search(plain_sql(written)) is None:
        return None
    return written.count("\n", 0, places[0]) + 1


def _line_between(ours: Sequence[str], theirs: Sequence[str], index: int) -> int | None:
    anchors = [(-1, -1), *_anchors(ours, theirs), (len(ours), len(theirs))]
    if any(a[1] >= b[1] for a, b in pairwise(anchors)):
        return None  # the lines do not stand in one order, so nothing is certain
    before = max(anchor for anchor in anchors if anchor[0] <= index)
    after = min(anchor for anchor in anchors if anchor[0] > index)
    is_even = before[0] >= 0 and after[0] - before[0] == after[1] - before[1]
    if before[0] == index or is_even:
        return before[1] + index - before[0] + 1
    return None


def _anchors(ours: Sequence[str], theirs: Sequence[str]) -> list[tuple[int, int]]:
    once = {text for text, count in Counter(theirs).items() if count == 1 and text}
    places = {text: number for number, text in enumerate(theirs) if text in once}
    counts = Counter(ours)
    return [(number, places[text]) for number, text in enumerate(ours) if counts[text] == 1 and text in places]
