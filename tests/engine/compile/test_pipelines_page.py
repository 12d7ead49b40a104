"""The page about pipelines says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from pz_engine.compile.template import calls, guard, spelling, work
from pz_engine.duck.introspect import MAX_PARSED_LENGTH
from pz_engine.model.cursor_values import CURSOR_TYPES

PAGE = (Path(__file__).parents[3] / "docs" / "pipelines.md").read_text(encoding="utf-8")


def row(start: str) -> str:
    return next(line for line in PAGE.splitlines() if line.startswith(f"| {start} |"))


def test_names_are_those_of_the_language() -> None:
    """Names, filters and tests are listed whole."""
    for start, names in (("names", guard.PZ_NAMES), ("filters", guard.FILTERS), ("tests", guard.TESTS)):
        listed = re.findall(r"`([a-z_0-9]+)`", row(start))
        assert [name for name in listed if name != "loop"] == list(names)


def test_limits_are_those_of_the_code() -> None:
    """Each number of the table is the constant."""
    limits = {
        "characters": spelling.MAX_LENGTH,
        "words, signs and values in tags, and texts between them": spelling.MAX_TOKENS,
        "comments": spelling.MAX_TOKENS,
        "operators and brackets inside each other": spelling.MAX_NESTING,
        "conditions, loops and blocks inside each other": spelling.MAX_OPEN_BLOCKS,
        "`else if` of one condition": spelling.MAX_BRANCHES,
        "characters of a name given to a call": calls.MAX_TEXT,
    }
    for name, limit in limits.items():
        assert row(name) == f"| {name} | {limit:,} |"
    assert f"| {spelling.MAX_DIGITS}; below 10³⁸ |" in PAGE
    assert f"| work | {work.WORK_LIMIT:,} units" in PAGE
    assert f"a step of a loop {work.UNITS_PER_STEP} for" in PAGE
    assert f"up to {MAX_PARSED_LENGTH:,} characters" in PAGE


def test_cursor_types_are_listed() -> None:
    """In the order messages use."""
    assert (
        "Cursor types are " + ", ".join(f"`{name}`" for name in CURSOR_TYPES[:-1]) + f" and `{CURSOR_TYPES[-1]}`."
        in PAGE
    )


def test_the_example_compiles(project) -> None:
    """The query at the top of the page is a whole pipeline."""
    project.write("project.yml", "name: demo\nversion: '1'\nvars: {min_amount: 10}\n")
    project.write("connections.yml", "erp: {connector: x}\nlake: {connector: x}\nmart: {connector: x}\n")
    project.sql("orders_log", PAGE.partition("```sql\n")[2].partition("```")[0])
    names = [node.name for node in project.compile().nodes]
    assert names == ["src_erp__dbo_orders", "orders_log", "lake.orders_log", "mart.public.orders"]
