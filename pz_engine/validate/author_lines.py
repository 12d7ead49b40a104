"""From a line of compiled SQL back to the line of the author's file.

A line is named only when it is certain: its text occurs once on each side, or it lies between two such lines (or behind
the last one) that are equally far apart on both sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise


def author_line(written: str, compiled: str, index: int) -> int | None:
    r"""Return the 1-based line of `written` that the line at `index` of `compiled` comes from, or None.

    >>> author_line("-- why\nselect a,\n  {{ x }}\nfrom t\n", "select a,\n  7\nfrom t", 1)
    3
    """
    theirs = [line.strip() for line in written.rstrip().split("\n")]
    ours = [line.strip() for line in compiled.rstrip().split("\n")]
    if not 0 <= index < len(ours):
        return None
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
