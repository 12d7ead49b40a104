"""Every construct of a query: exactly these edges, or unknown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from lineage_projects import trace, written

from pz_engine.compile.sql_tree import render_faithfully
from pz_engine.duck.introspect import SqlParser

FIXTURES = Path(__file__).parents[3] / "fixtures" / "lineage"
TABLES = {
    "t": {"Id": "INTEGER", "Name": "VARCHAR", "k": "INTEGER"},
    "u": {"iD": "INTEGER", "x": "INTEGER", "k": "INTEGER"},
    "v": {
        "id": "INTEGER",
        "l": "INTEGER[]",
        "s": "STRUCT(a INTEGER, b INTEGER, deep STRUCT(f INTEGER))",
        "j": "JSON",
        "d": "TIMESTAMP",
        "d2": "TIMESTAMP",
    },
    "o": None,
    "p": None,
}


@dataclass(frozen=True)
class Case:
    name: str
    sql: str
    expected: list[str]


def load(path: Path) -> list[Case]:
    found = []
    for block in path.read_text().split("-- case: ")[1:]:
        name, *lines = block.strip().splitlines()
        sql = "\n".join(line for line in lines if not line.startswith("-- "))
        expected = [line.removeprefix("-- ") for line in lines if line.startswith("-- ")]
        found.append(Case(f"{path.stem}: {name}", sql, expected))
    return found


CASES = [case for path in sorted(FIXTURES.glob("*.sql")) for case in load(path)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_construct_gives_exactly_these_edges_or_unknown(case: Case) -> None:
    """`?` is unknown, nothing after the colon is an expression over no column."""
    assert [line.strip() for line in written(trace(case.sql, TABLES))] == case.expected


def test_a_query_that_duckdb_spelled_anew_has_the_same_edges() -> None:
    """What becomes of a consumer of ephemerals is read like the original; at most a few columns become unknown."""
    parser = SqlParser()
    lost = 0
    for case in CASES:
        tree = parser.parse(case.sql)
        text = render_faithfully(parser, tree) if tree is not None else None
        if text is not None:
            found = [line.strip() for line in written(trace(text, TABLES))]
            assert len(found) == len(case.expected), text
            for line, expected in zip(found, case.expected, strict=True):
                lost += line != expected and line.endswith("?")
                assert line == expected or "?" in line or "?" in expected, text
    parser.close()
    assert lost < 5


def test_expected_names_are_those_of_duckdb() -> None:
    """Names and order of the cases over known columns are what DuckDB makes of the query."""
    connection = duckdb.connect()
    connection.execute("create schema staging")
    for name, types in TABLES.items():
        if types is not None:
            columns = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
            connection.execute(f"create table staging.{name} ({columns})")
    compared = 0
    for case in CASES:
        try:
            connection.execute(f"create or replace table made as (\n{case.sql}\n)")
        except duckdb.Error:
            assert "staging.o" in case.sql or "staging.p" in case.sql or case.name.startswith("unknown:"), case
            continue
        names = [row[0] for row in connection.execute("describe made").fetchall()]
        if case.expected != ["*: ?"]:
            assert [line.rsplit(":", 1)[0] for line in case.expected] == names, case.name
            compared += 1
    assert compared > 80
