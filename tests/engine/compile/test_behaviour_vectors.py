"""Behaviour that every implementation of the project format shares, row by row."""

from __future__ import annotations

import io

import pytest

from pz_engine.cli.main import run
from pz_engine.cli.render.terminal import Terminal
from pz_engine.compile.dag import PushedHints
from pz_engine.compile.selection import resolve_selection
from pz_engine.errors.exceptions import PzValidationError

W = "{{ watermark('c', 'e') }}"
S = "{{ source('c', 'e') }}"


@pytest.fixture
def base(project):
    return project.write("connections.yml", "c: {connector: localfiles}\n")


def incremental(project):
    return project.compile().graph.by_name["src_c__e"].incremental


@pytest.mark.parametrize(("written", "keep_last"), [("off", None), ("No", None), ("{keep_last: 0}", "PZ0123")])
def test_retention(project, written, keep_last):
    """`off` and `No` disable it; zero is refused."""
    project.write("project.yml", f"name: demo\nversion: '1'\nretention: {written}\n")
    if keep_last == "PZ0123":
        assert project.found() == [("PZ0123", "project.yml:3")]
    else:
        assert project.load().project.retention_keep_last is keep_last


@pytest.mark.parametrize(
    ("written", "value", "expected"), [("${P}", "0123", "0123"), ("${P}", "5432", 5432), ('"${P}"', "5432", "5432")]
)
def test_an_interpolated_port(project, written, value, expected):
    """A plain scalar is typed only when the typed value prints back the same; a quoted one stays text."""
    project.write("connections.yml", f"c:\n  connector: x\n  port: {written}\n")
    port = project.load({"P": value}).connections["c"].config["port"]
    assert (port, type(port)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("side", "sql"),
    [
        ("read:", "from {{ source('c', 'e', format: 'csv') }}"),
        ("write: {format: csv}", "INSERT INTO {{ sink('c', 'e', strategy: 'append') }} select 1"),
    ],
)
def test_a_side_on_both_surfaces(project, side, sql):
    """YAML and a call's arguments exclude each other, even where YAML says nothing."""
    project.write("connections.yml", f"c:\n  connector: x\n  entities:\n    e:\n      {side}\n").sql("p", sql)
    assert [code for code, _ in project.found()] == ["PZ0341"]


def test_a_self_join_is_one_reader(base):
    """One entity twice in one pipeline: one node, one edge, and the filter of one reader."""
    base.sql("p", f"select a.x, b.y from {S} a join {S} b on a.k = b.k where a.u > {W} and b.u > {W}")
    compiled = base.compile()
    assert [node.name for node in compiled.nodes] == ["src_c__e", "p"]
    assert {floor.pipeline for floor in incremental(base).floors} == {"p"}


def test_two_readers_with_the_same_floor(base):
    """Both are kept."""
    base.sql("p", f"from {S} where u >= {W}").sql("q", f"from {S} where u >= {W}")
    assert [(floor.pipeline, floor.is_inclusive) for floor in incremental(base).floors] == [("p", True), ("q", True)]


def test_two_readers_of_which_one_filters(base):
    """The other one is named."""
    base.sql("p", f"from {S} where u >= {W}").sql("q", f"from {S}")
    assert base.found() == [("PZ0226", "pipelines/q.sql:1")]


def test_two_readers_of_some_columns(base):
    """Columns are united, and the filter of one of them is not pushed."""
    base.sql("p", f"select a, b from {S} where a > 1").sql("q", f"select b, c from {S}")
    assert base.compile().graph.by_name["src_c__e"].hints == PushedHints(("a", "b", "c"), None)


def test_a_with_before_the_insert(base):
    """The common table expression belongs behind the marker."""
    base.sql("p", "WITH a AS (select 1) INSERT INTO {{ sink('c', 'o') }} select * from a")
    assert base.found() == [("PZ0208", "pipelines/p.sql:1")]


def test_a_watermark_on_the_left(base):
    """`'x' < updated_at` is an exclusive floor."""
    base.sql("p", f"from {S} where {W} < updated_at")
    assert [floor.is_inclusive for floor in incremental(base).floors] == [False]


@pytest.mark.parametrize(
    "condition",
    [f"updated_at = {W}", f"updated_at BETWEEN {W} AND now()", f"lower(updated_at) > {W}", f"u > {W} AND u <= {W}"],
)
def test_what_is_no_floor(base, condition):
    """Equality, BETWEEN, an expression over the cursor and an upper bound are refused."""
    assert [code for code, _ in base.sql("p", f"from {S} where {condition}").found()] == ["PZ0224"]


def test_an_upper_bound_is_refused_beside_a_floor(base):
    """The line is that of the upper bound."""
    base.sql("p", f"from {S}\nwhere u > {W}\n  and u <= {W}")
    assert base.found() == [("PZ0224", "pipelines/p.sql:3")]


def test_a_floor_that_keeps_rows_without_a_cursor(base):
    """`OR u IS NULL` is a floor, and no bound is pushed."""
    base.sql("p", f"from {S} where u > {W} OR u IS NULL")
    assert [floor.keeps_null_cursor for floor in incremental(base).floors] == [True]


def test_half_days_of_a_date(project):
    """A date cursor moves by whole days."""
    sync = "{mode: incremental, cursor: u, max_window: 36h, initial: 2026-01-01}"
    project.write(
        "connections.yml", f"c: {{connector: x, entities: {{e: {{read: {{columns: {{u: date}}, sync: {sync}}}}}}}}}\n"
    )
    assert [code for code, _ in project.found()] == ["PZ0213"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (", strategy: 'replace'", ["PZ0335"]),
        ("", ["PZ0214"]),
        (", duplicates: 'accept'", []),
        (", strategy: 'merge', keys: ['k']", []),
    ],
)
def test_an_incremental_read_into_each_strategy(base, arguments, expected):
    """Replace is refused, append wants consent, merge is fine."""
    base.sql("p", f"INSERT INTO {{{{ sink('c', 'o'{arguments}) }}}} select k from {S} where u > {W}")
    if expected:
        assert [code for code, _ in base.found()] == expected
    else:
        assert base.compile().graph.by_name["c.o"].depends_on


def test_two_entities_that_fold_to_one_relation(base):
    """`dbo.orders` and `dbo_orders` cannot both be read."""
    base.sql("p", "select 1 from {{ source('c', 'dbo.orders') }}, {{ source('c', 'dbo_orders') }}")
    assert [code for code, _ in base.found()] == ["PZ0110"]


def test_two_checks_of_one_kind(base):
    """The second one gets a number."""
    base.sql("p", "select 1 a").sidecar("p", "checks:\n  - row_count: {min: 1}\n  - row_count: {max: 5}\n")
    assert [node.name for node in base.compile().nodes][1:] == ["check_p_row_count", "check_p_row_count_2"]


def test_a_comma_and_a_blank(base):
    """`'a, b'` is two groups."""
    compiled = base.sql("a", "select 1").sql("b", "select 2").sql("c", "select 3").compile()
    ids = resolve_selection(compiled, expression="a, b")
    assert [node.name for node in compiled.nodes if node.id in ids] == ["a", "b"]


def test_choosing_among_two_flows(base):
    """A bare run must choose; a name brings its closure; a name and `--all` exclude each other."""
    compiled = base.sql("a", "select 1").sql("b", "from {{ ref('a') }}").sql("other", "select 3").compile()
    with pytest.raises(PzValidationError, match="PZ0215"):
        resolve_selection(compiled, require_choice=True)
    ids = resolve_selection(compiled, names=["b"], require_choice=True)
    assert [node.name for node in compiled.nodes if node.id in ids] == ["a", "b"]
    with pytest.raises(PzValidationError, match="PZ0216"):
        resolve_selection(compiled, names=["b"], everything=True, require_choice=True)


def test_a_cycle_of_two(base):
    """One problem shows the path, and names no file."""
    base.sql("a", "from {{ ref('b') }}").sql("b", "from {{ ref('a') }}")
    (problem,) = base.problems()
    assert (problem.code, problem.file) == ("PZ0202", None)
    assert "a -> b -> a" in problem.message


def test_three_mistakes_in_three_files(project):
    """One report holds all three, and the command ends with 2."""
    project.write("connections.yml", "c: 3\n").sql("p", "select 1\n{{ nope }}").sql("q", "select 1")
    project.sidecar("q", "checks:\n  - not_nul: [id]\n")
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(out, err, {})
    assert run(["compile", "--project", str(project.directory)], terminal) == 2
    assert terminal.close()
    lines = [line for line in err.getvalue().splitlines() if line.startswith("error ")]
    assert [line.partition(":")[0] for line in lines] == ["error PZ0101", "error PZ0113", "error PZ0104"]
