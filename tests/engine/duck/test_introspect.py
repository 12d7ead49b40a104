"""DuckDB's parser as a tool: trees, text, and which functions are deterministic."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pz_engine.compile.sql_tree import render_faithfully
from pz_engine.duck.introspect import SqlParser


@pytest.fixture
def parser():
    parser = SqlParser()
    yield parser
    parser.close()


@pytest.mark.parametrize(
    "sql",
    [
        "selec 1",
        "select 1; select 2",
        "insert into t select 1",
        "pivot t on a",
        "",
        "select ?::int, $a",
        "create table t (a int)",
    ],
)
def test_what_is_no_single_query_has_no_tree(parser, sql):
    """Only one SELECT that parses gives a tree."""
    assert parser.parse(sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        "select 123456789012345678901234567890, 1.10, 1e308, 0.1::double, 'it''s', '\\x41'::blob, true, null, -5",
        "select date '2026-01-02', timestamp '2026-01-02 03:04:05.123456', interval 3 day",
        "values (1, 2), (3, 4)",
        "select * from (values (1)) v(a) join t on true",
        "with recursive r as (select 1 n union all select n + 1 from r where n < 5) select * from r",
        "select a from x union all by name (select b from y except select 1) order by 1 nulls last limit 5",
        "select * exclude (a) replace (b as c), columns('x') from t tablesample 10%",
        "select count(distinct a) filter (where b > 1), sum(a) over (partition by b order by c rows between 1 preceding and current row) from t",
        "select {'a': 1}, map {'x': 1}, [1, 2], x[1:2], list_transform([1], lambda e: e + 1) from t",
        "select case when a then b else c end, a is distinct from b, a not in (1, 2), not a, (a or b) and (c or d) from t",
        "from t select a where x ilike 'a%' qualify row_number() over (order by a) = 1",
    ],
)
def test_queries_survive_rendering(parser, sql):
    """A rendered query parses back to the same tree."""
    assert render_faithfully(parser, parser.parse(sql)) is not None


def test_an_unfaithful_rendering_is_noticed(parser):
    """Nested natural joins lose their brackets when rendered, and that is refused."""
    assert render_faithfully(parser, parser.parse("select * from a natural join (b natural join c)")) is None


def test_trees_belong_to_the_caller(parser):
    """Changing a tree does not change the next one."""
    parser.parse("select 1")["statements"].clear()
    assert len(parser.parse("select 1")["statements"]) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("date_trunc", True),
        ("LOWER", True),
        ("-", True),
        ("to_hours", True),
        ("now", False),
        ("random", False),
        ("nope", False),
    ],
)
def test_functions_are_deterministic_or_not(parser, name, expected):
    """Names are looked up in DuckDB's catalogue, in any case."""
    assert parser.is_deterministic(name) is expected


def test_a_closed_parser_can_be_used_again(parser):
    """Closing twice is harmless, and the next text opens it again."""
    parser.close()
    parser.close()
    assert parser.parse("select 2") is not None


def test_compiling_without_sources_does_not_load_heavy_libraries(tmp_path):
    """Loading and compiling a project without templates imports none of the heavy libraries."""
    (tmp_path / "project.yml").write_text("name: a\nversion: '1'\n")
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "p.sql").write_text("select 1")
    code = f"""
import sys
from datetime import datetime, timezone
from pathlib import Path
from pz_engine.compile.builder import RunIdentity, compile_files
from pz_engine.config.loader import load_project
files = load_project(Path({str(tmp_path)!r}), env={{}})
compile_files(files, env={{}}, identity=RunIdentity("r", datetime.now(timezone.utc)))
print([m for m in ("duckdb", "pyarrow", "jinja2", "jsonschema", "sqlglot", "pendulum", "dagster", "pydantic") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
