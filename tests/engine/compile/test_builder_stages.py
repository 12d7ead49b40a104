"""The stages of a compile: what each refuses, and what warnings and notes say."""

from __future__ import annotations

import pytest

from pz_engine.errors.exceptions import PzValidationError
from pz_engine.validate.tiers import check_sql

CONNECTIONS = "c: {connector: localfiles}\nd: {connector: duckdb, path: w.duckdb}\n"


@pytest.fixture
def base(project):
    return project.write("connections.yml", CONNECTIONS)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1\nfrom {{ sink('c', 'e') }}", [("PZ0208", "pipelines/p.sql:2")]),
        ("WITH a AS (select 1) INSERT INTO {{ sink('c', 'e') }} select * from a", [("PZ0208", "pipelines/p.sql:1")]),
        ("INSERT INTO {{ sink('c', 'e') }}", [("PZ0208", "pipelines/p.sql:1")]),
        ("INSERT INTO {{ sink('c', 'e') }}select 1", [("PZ0208", "pipelines/p.sql:1")]),
        ("INSERT INTO {{ sink('c', 'e') }} x {{ sink('c', 'f') }} select 1", [("PZ0208", "pipelines/p.sql:1")]),
        ("INSERT INTO {{ sink('c', 'e') }}, {{ sink('c', 'f') }} select 1", [("PZ0208", "pipelines/p.sql:1")]),
        ("INSERT INTO [{{ sink('c', 'e') }}, {{ sink('c', 'e') }}] select 1", [("PZ0208", "pipelines/p.sql:1")]),
    ],
)
def test_a_misplaced_sink_is_one_problem(base, sql, expected):
    """Whatever the shape, the line is that of the first call."""
    assert base.sql("p", sql).found() == expected


@pytest.mark.parametrize(
    "head",
    [
        "INSERT INTO {{ sink('c', 'e') }}\n",
        "  -- a comment\n\n-- another\ninsert\n  into {{ sink('c', 'e') }} ",
        "/* block\ncomment */ INSERT INTO [{{ sink('c', 'e') }}]\n",
        "INSERT INTO [\n  {{ sink('c', 'e') }} ,\n  {{ sink('c', 'f') }}\n]\n",
    ],
)
def test_the_leading_insert_is_cut_off(base, head):
    """Comments, both forms and any blanks are accepted, and only the query remains."""
    compiled = base.sql("p", head + "WITH a AS (select 1 x) select * from a;").compile()
    assert compiled.graph.by_name["p"].sql == "WITH a AS (select 1 x) select * from a"
    assert "c.e" in compiled.graph.by_name


def test_unknown_names_come_with_near_misses(base):
    """The hint offers the name that was probably meant."""
    base.sql("stg_orders", "select 1").sql("p", "select * from {{ ref('stg_order') }}")
    (problem,) = base.problems()
    assert problem.hint == "did you mean 'stg_orders'?"


def test_the_two_sides_are_independent(project):
    """A read side in YAML does not forbid arguments for the write side."""
    project.write("connections.yml", "c:\n  connector: localfiles\n  entities:\n    e:\n      read: {format: csv}\n")
    project.sql("p", "INSERT INTO {{ sink('c', 'e', format: 'parquet') }} select * from {{ source('c', 'e') }}")
    compiled = project.compile()
    assert compiled.graph.by_name["c.e"].options == {"format": "parquet"}
    assert compiled.graph.by_name["src_c__e"].options == {"format": "csv"}


def test_calls_may_repeat_or_stay_bare(base):
    """Identical arguments and bare calls agree; other arguments are PZ0341."""
    base.sql(
        "p",
        "select * from {{ source('c', 'e') }} a, {{ source('c', 'e', format: 'csv') }} b, {{ source('c', 'e', format: 'csv') }} d",
    )
    assert base.compile().graph.by_name["src_c__e"].options == {"format": "csv"}
    base.sql("q", "select *\nfrom {{ source('c', 'e', format: 'tsv') }}")
    assert base.found() == [("PZ0341", "pipelines/q.sql:2")]


def test_one_output_has_one_writer(base):
    """Two pipelines into one output are PZ0206, naming both in order."""
    for name in "ba":
        base.sql(name, "INSERT INTO {{ sink('c', 'e') }} select 1")
    (problem,) = base.problems()
    assert (problem.code, problem.place) == ("PZ0206", "pipelines/b.sql:1")
    assert "'a', 'b'" in problem.message


def test_staging_names_are_unique_in_any_case(base):
    """Entities that fold to one relation, and pipelines that take a source's name, are refused."""
    base.sql("p", "select * from {{ source('c', 'dbo.orders') }}, {{ source('c', 'dbo_orders') }}")
    assert [code for code, _ in base.found()] == ["PZ0110"]
    base.sql("p", "select * from {{ source('c', 'E') }}").sql("SRC_c__e", "select 1")
    assert base.found() == [("PZ0230", "pipelines/SRC_c__e.sql")]
    (base.directory / "pipelines" / "SRC_c__e.sql").unlink()
    base.sql("P", "select 1")
    assert [code for code, _ in base.found()] == ["PZ0110"]


def test_checks_get_free_names(base):
    """Two checks that would share a name are numbered in order."""
    base.sql("p", "select 1 id").sidecar(
        "p", "checks:\n  - row_count: {min: 1}\n  - row_count: {max: 9}\n  - custom_sql: {name: a, sql: select 1}\n"
    )
    names = [node.name for node in base.compile().nodes if node.kind.value == "Check"]
    assert sorted(names) == ["check_p_a", "check_p_row_count", "check_p_row_count_2"]


def test_dead_leaves_and_run_identity_are_warnings(base):
    """An unused pipeline is PZ0223 even with a check; using run_id is PZ0232."""
    base.sql("p", "select '{{ run_id }}' id").sidecar("p", "checks:\n  - unique: [id]\n")
    base.sql("used", "select 1").sql("q", "INSERT INTO {{ sink('c', 'e') }} select * from {{ ref('used') }}")
    compiled = base.compile()
    assert [(w.code, w.file) for w in compiled.warnings] == [
        ("PZ0223", "pipelines/p.sql"),
        ("PZ0232", "pipelines/p.sql"),
    ]


def test_near_misses_of_arguments_are_warnings(base):
    """A misspelled argument is passed on with a warning at its line."""
    base.sql("p", "INSERT INTO {{ sink('c', 'e', keyz: ['a']) }} select 1")
    compiled = base.compile()
    assert [(w.code, w.place) for w in compiled.warnings] == [("PZ0208", "pipelines/p.sql:1")]
    assert compiled.graph.by_name["c.e"].options == {"keyz": ["a"]}


def test_three_mistakes_in_three_files_come_together(base):
    """Mistakes of one stage are reported together, sorted by file."""
    base.sql("a", "{{ nope }}").sql("b", "\n{{ ref() }}").sql("z", "{{ env('PZ_NOPE') }}")
    assert base.found() == [
        ("PZ0104", "pipelines/a.sql:1"),
        ("PZ0201", "pipelines/b.sql:2"),
        ("PZ0103", "pipelines/z.sql:1"),
    ]


class TestEphemerals:
    """Pipelines that are inlined."""

    def test_they_become_common_table_expressions(self, base):
        """Each consumer gets them in front of its own, sorted by name, and their sources as its own."""
        base.sql("e2", "select * from {{ source('c', 'e') }} -- note").sidecar("e2", "materialization: ephemeral\n")
        base.sql("e1", "select 2 as y;").sidecar("e1", "materialization: ephemeral\n")
        base.sql("p", "with own as (select 1) select * from own, {{ ref('e2') }}, {{ ref('e1') }}")
        compiled = base.compile()
        node = compiled.graph.by_name["p"]
        assert node.sql == (
            "with __pz_cte__e1 AS (\nselect 2 as y\n), __pz_cte__e2 AS (\nselect * from staging.src_c__e -- note\n), "
            "own as (select 1) select * from own, __pz_cte__e2, __pz_cte__e1"
        )
        assert compiled.ephemerals == ("e1", "e2")
        assert compiled.pipeline_count == 3
        assert [compiled.graph.by_id[i].name for i in node.depends_on] == ["src_c__e"]

    @pytest.mark.parametrize(
        ("consumer", "expected"),
        [
            ("pivot {{ ref('e') }} on a", "WITH __pz_cte__e AS (\nselect 1 a -- c\n)\npivot __pz_cte__e on a"),
            (
                "-- x\nwith recursive r as (select 1) pivot {{ ref('e') }} on a",
                "-- x\nwith recursive __pz_cte__e AS (\nselect 1 a -- c\n), r as (select 1) pivot __pz_cte__e on a",
            ),
        ],
    )
    def test_statements_without_a_tree_take_them_in(self, base, consumer, expected):
        """A statement without a tree has the ephemeral in front all the same."""
        base.sql("e", "select 1 a -- c").sidecar("e", "materialization: ephemeral\n").sql("p", consumer)
        assert base.compile().graph.by_name["p"].sql == expected

    @pytest.mark.parametrize(
        ("body", "consumer"),
        [
            ("select 1 a), x as (select 2 a", "select * from {{ ref('e') }}"),
            ("select 1 a", "select * from {{ ref('e') }}) union all (select 2"),
            ("select 1 a; select 2", "select * from {{ ref('e') }}"),
        ],
    )
    def test_texts_that_complete_each_other_are_refused(self, base, body, consumer):
        """What is no query on its own is PZ0401, in the compile or in the dry compile, and never runs."""
        base.sql("e", body).sidecar("e", "materialization: ephemeral\n").sql("p", consumer)
        try:
            found = check_sql(base.compile()).errors
        except PzValidationError as error:
            found = error.errors
        assert [(problem.code, problem.file) for problem in found] == [("PZ0401", "pipelines/p.sql")]

    def test_their_limits(self, base):
        """No sink, no checks, and no ephemeral behind an ephemeral."""
        base.sql("e", "INSERT INTO {{ sink('c', 'e') }} select 1").sidecar("e", "materialization: ephemeral\n")
        assert base.found() == [("PZ0208", "pipelines/e.sql:1")]
        base.sql("e", "select 1 id").sidecar("e", "materialization: ephemeral\nchecks:\n  - unique: [id]\n")
        base.sql("f", "select * from {{ ref('e') }}").sidecar("f", "materialization: ephemeral\n")
        assert base.found() == [("PZ0205", "pipelines/configs/e.yml:4"), ("PZ0204", "pipelines/f.sql:1")]

    def test_a_missing_target_inside_one_is_reported_once(self, base):
        """An unknown reference in an ephemeral does not disturb the check for chains."""
        base.sql("e", "select * from {{ ref('nope') }}").sidecar("e", "materialization: ephemeral\n")
        assert base.found() == [("PZ0201", "pipelines/e.sql:1")]
