"""Writes what each test of the list in `docs/internals/dagster-behaviour.md` says it holds.

The page names tests below headings; the words beside them are the tests' own docstrings. To add a test, write its id into a
table of the page and run this.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "internals" / "dagster-behaviour.md"
_ROW = re.compile(r"\|.*\| `(?P<path>[\w/.]+)::(?P<name>\w+)` \|")


@cache
def _docstrings(path: str) -> dict[str, str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name: (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


def render(text: str) -> str:
    """Return the page with the words of its rows made anew.

    Raises:
        KeyError: a test is named that does not exist.
    """
    lines = []
    for line in text.splitlines():
        row = _ROW.fullmatch(line)
        if row is None:
            lines.append(line)
            continue
        words = _docstrings(row["path"])[row["name"]].replace("|", r"\|")
        lines.append(f"| {words} | `{row['path']}::{row['name']}` |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
