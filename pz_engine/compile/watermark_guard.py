"""Writes the NULL guard of `watermark()` comparisons into a query's own text.

`cursor >= value` becomes `(value IS NULL OR cursor >= value)`, so that a first run passes every row. Nothing else of the
text changes: layout, comments and words that a syntax tree does not keep stay. The result is parsed again, and must be
the guarded tree.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from pz_engine.compile.sql_tree import Tree, is_same_query, top_node
from pz_engine.compile.watermark_sql import Comparison
from pz_engine.duck.introspect import SqlParser

_MOST_CURSOR_TOKENS = 15
_MOST_VALUE_TOKENS = 500
_COMMENTS_BEHIND = re.compile(rb"(?:\s|--[^\n]*(?:\n|$)|/\*(?:[^*]|\*(?!/))*\*/)+$")
_NESTING = {b"(": 1, b"[": 1, b")": -1, b"]": -1}


def write_guards(sql: str, tree: Tree, comparisons: Iterable[Comparison], parser: SqlParser) -> str | None:
    """Return the text with a guard around each comparison, or None when the text cannot be told apart from its tree.

    Args:
        sql: the query as written.
        tree: its tree, guards included.
        comparisons: what was guarded in the tree.
        parser: DuckDB's parser.
    """
    data = sql.encode()
    offsets = [*parser.token_offsets(sql), len(data)]
    for comparison in sorted(comparisons, key=lambda item: -item.location):
        operator = bisect_left(offsets, comparison.location)
        if operator >= len(offsets) - 1 or offsets[operator] != comparison.location:
            return None
        left = _Side(data, offsets, operator, is_left=True, wanted=comparison.expression["left"], parser=parser)
        right = _Side(data, offsets, operator, is_left=False, wanted=comparison.expression["right"], parser=parser)
        written = [side.find() for side in (left, right)]
        if written[0] is None or written[1] is None:
            return None
        start, end = offsets[operator] - written[0][0], written[1][0] + offsets[operator + 1]
        value = written[0][1] if comparison.is_flipped else written[1][1]
        data = data[:start] + b"(" + value + b" IS NULL OR " + data[start:end] + b")" + data[end:]
    text = data.decode()
    again = parser.parse(text)
    return text if again is not None and is_same_query(again, tree) else None


class _Side:
    """One operand of a comparison, to be found in the text next to the operator."""

    def __init__(
        self, data: bytes, offsets: Sequence[int], operator: int, *, is_left: bool, wanted: Tree, parser: SqlParser
    ) -> None:
        self._data = data
        self._offsets = offsets
        self._operator = operator
        self._is_left = is_left
        self._wanted = wanted
        self._parser = parser

    def find(self) -> tuple[int, bytes] | None:
        """Return how far the operand reaches from the operator, and its text, in brackets if it is no single word."""
        limit = _MOST_CURSOR_TOKENS if self._wanted.get("class") == "COLUMN_REF" else _MOST_VALUE_TOKENS
        for count, raw in self._balanced(limit):
            for text in dict.fromkeys((_COMMENTS_BEHIND.sub(b"", raw), raw.rstrip())):
                if self._is_wanted(text):
                    reach = len(raw) if self._is_left else len(text)
                    return reach, text if count == 1 else b"(" + text + b")"
        return None

    def _balanced(self, limit: int) -> Iterator[tuple[int, bytes]]:
        """Yield ever longer texts next to the operator in which every bracket is closed."""
        offsets, depth = self._offsets, 0
        for count in range(1, limit + 1):
            index = self._operator - count if self._is_left else self._operator + count
            if not 0 <= index < len(offsets) - 1:
                return
            step = _NESTING.get(self._data[offsets[index] : offsets[index] + 1], 0)
            depth += -step if self._is_left else step
            if depth < 0:
                return
            if depth == 0 and self._is_left:
                yield count, self._data[offsets[index] : offsets[self._operator]]
            elif depth == 0:
                yield count, self._data[offsets[self._operator + 1] : offsets[index + 1]]

    def _is_wanted(self, text: bytes) -> bool:
        tree = self._parser.parse(f"SELECT {text.decode()}")
        items = top_node(tree).get("select_list", []) if tree is not None else []
        return len(items) == 1 and is_same_query(items[0], self._wanted)
