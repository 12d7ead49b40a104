"""DuckDB's parser as a tool: trees, text, and which functions are deterministic."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
    "sql", ["select 1" + " + 1" * 2_000, "select " + "(" * 20_000, "select '" + "a" * 300_000 + "'"]
)
def test_what_is_too_deep_or_too_long_has_no_tree(parser, sql):
    """A text that would take too long, or more levels than Python can follow, is not looked at."""
    assert parser.parse(sql) is None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1", True),
        ("pivot (select 1 a, 2 b) on a using sum(b)", True),
        ("select 1; select 2", False),
        ("select 1) , b as (select 2", False),
        ("insert into t select 1", False),
        ("", False),
    ],
)
def test_one_query_is_told_from_anything_else(parser, sql, expected):
    """A query counts even where it has no tree."""
    assert parser.is_one_query(sql) is expected


def test_words_are_found_in_bytes(parser):
    """Comments are left out, quoted names and texts are one word each."""
    sql = "select \"é x\", 'a b' /* c */ from t -- d"
    assert [sql.encode()[start:][:4] for start in parser.token_offsets(sql)] == [
        b"sele", b'"\xc3\xa9 ', b", 'a", b"'a b", b"from", b"t --",
    ]  # fmt: skip


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
