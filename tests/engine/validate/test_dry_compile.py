"""Tier 4: SQL against empty tables."""

from __future__ import annotations

import pytest

from pz_engine.validate.tiers import check_sql

CONNECTIONS = """c:
  connector: localfiles
  entities:
    orders: {read: {columns: {id: bigint, u: timestamp, amount: 'decimal(18,2)', note: varchar}}}
    raw.things: {read: }
"""


@pytest.fixture
def base(project):
    return project.write("connections.yml", CONNECTIONS)


def check(project):
    return check_sql(project.compile())


def test_good_sql_passes(base):
    """Tables, views, ephemerals and filters bind against the contract."""
    base.sql(
        "a",
        "select id, u from {{ source('c', 'orders') }} where u >= {{ watermark('c', 'orders') }} - interval 2 hour -- end",
    )
    base.sql("v", "select * from {{ ref('a') }}").sidecar("v", "materialization: view\n")
    base.sql("e", "select id from {{ ref('v') }}").sidecar("e", "materialization: ephemeral\n")
    base.sql("z", "select * from {{ ref('e') }}")
    found = check(base)
    assert (found.errors, found.notes) == ((), ())


@pytest.mark.parametrize(
    ("contract", "value"),
    [
        ("int", "{w} - 5"),
        ("bigint", "greatest({w} - 5, 0)"),
        ("decimal(18,2)", "{w} * 0.5"),
        ("date", "{w} - INTERVAL 2 DAY"),
        ("date", "date_trunc('month', {w})"),
        ("timestamp", "date_trunc('day', {w}) - INTERVAL 36 HOUR"),
        ("timestamp", "coalesce({w}, TIMESTAMP '2026-01-01')"),
    ],
)
def test_a_watermark_binds_like_its_cursor(project, contract, value):
    """The NULL of a first run has the cursor's type, so that arithmetic on it binds."""
    columns = f"{{k: int, u: '{contract}'}}"
    project.write(
        "connections.yml", f"c: {{connector: localfiles, entities: {{e: {{read: {{columns: {columns}}}}}}}}}\n"
    )
    floor = value.format(w="{{ watermark('c', 'e') }}")
    project.sql("p", f"select k from {{{{ source('c', 'e') }}}} where u >= {floor} or u is null")
    assert check(project).errors == ()


def test_a_mistake_beside_a_tag_has_its_line(base):
    """The line is found by its neighbours, although rendering changed it."""
    base.sql("p", "-- why\nselect id,\n  note\nfrom {{ source('c', 'orders') }} o where o.nope = 1\norder by id;\n")
    assert [problem.place for problem in check(base).errors] == ["pipelines/p.sql:4"]


def test_a_wrong_column_is_named_with_the_author_s_line(base):
    """The message is DuckDB's first line, the hint its candidates, the line the author's."""
    base.sql("p", "-- comment\nselect id,\n  amuont\nfrom {{ source('c', 'orders') }}")
    (problem,) = check(base).errors
    assert (problem.code, problem.place) == ("PZ0401", "pipelines/p.sql:3")
    assert "amuont" in problem.message
    assert "\n" not in problem.message
    assert "amount" in problem.hint


@pytest.mark.parametrize(
    "sql",
    [
        "select 'hunter2'::int from {{ source('c', 'orders') }} group by",
        "select * from {{ source('c', 'orders') }} where id = 'hunter2'::nosuch",
        "select no_such('hunter2') from {{ source('c', 'orders') }}",
        "select 1; select 'hunter2'",
        "delete from staging.src_c__orders where note = 'hunter2'",
    ],
)
def test_messages_hold_no_literal(base, sql):
    """Whatever DuckDB says, no literal of the statement is repeated."""
    (problem,) = check(base.sql("p", sql)).errors
    assert problem.code == "PZ0401"
    assert "hunter2" not in str(problem)


def test_one_broken_pipeline_is_one_problem(base):
    """Its dependents are skipped in silence."""
    base.sql("a", "select nope from {{ source('c', 'orders') }}")
    base.sql("b", "select * from {{ ref('a') }}").sql("z", "select also_nope from {{ source('c', 'orders') }}")
    assert [p.file for p in check(base).errors] == ["pipelines/a.sql", "pipelines/z.sql"]


def test_entities_without_a_contract_are_a_note(base):
    """The note counts the pipelines below, dotted entity names included."""
    base.sql("a", "select anything from {{ source('c', 'raw.things') }}").sql("b", "select * from {{ ref('a') }}")
    found = check(base)
    assert found.errors == ()
    assert found.notes == ("c.raw.things has no column contract: 2 pipelines were not checked against it",)


def test_a_project_without_pipelines_opens_nothing(base):
    """Nothing to compile is nothing to report."""
    assert check(base).errors == ()


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT nosuch FROM {{ source('c', 'orders') }}", 1),
        ("\n\nSELECT nosuch FROM {{ source('c', 'orders') }}\n\n", 3),
        ("SELECT nosuch FROM {{ source('c', 'orders') }}\nWHERE true", 1),
        ("SELECT count(*) FROM {{ source('c', 'orders') }}\n\n\nGROUP BY nosuch, {{ 1 }}", 4),
        ("SELECT {{ 'nosuch' }} FROM {{ source('c', 'orders') }}\nWHERE true -- nosuch\n", None),
        ("{{ if true }}SELECT nosuch FROM {{ source('c', 'orders') }}\n{{ end }}WHERE true", None),
    ],
)
def test_a_line_is_named_whenever_it_is_certain(base, sql, place):
    """A single line, or a word that stands once in the file and once in the SQL, is enough."""
    base.sql("p", sql)
    (problem,) = check(base).errors
    assert (problem.code, problem.line) == ("PZ0401", place)


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT a FRM x", 'near "x"'),
        ("SELECT 1 {{ 'AS a hidden' }} -- hidden", 'near "***"'),
        ("SELECT 1 AS a WHERE WHERE", 'near "WHERE"'),
        ("SELECT 'hidden' AS a, 1 AS b {{ 'hidden' }}", 'near "***"'),
    ],
)
def test_the_word_a_parser_stopped_at_is_shown_when_the_author_wrote_it(base, sql, shown):
    """Words of the file's own SQL are no values; whatever a tag gave stays hidden."""
    base.sql("p", sql)
    (problem,) = check(base).errors
    assert shown in problem.message
