"""The NULL guard is written into the author's text, and changes nothing but what a first run reads."""

from __future__ import annotations

import re

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_engine.compile.watermark_guard import write_guards
from pz_engine.compile.watermark_sql import analyse_watermarks, substitute_watermarks
from pz_engine.duck.introspect import SqlParser
from pz_engine.duck.quoting import quote_literal
from pz_engine.model.cursor_values import typed_null

SENTINEL = "__pz_watermark__c.e"
W = quote_literal(SENTINEL)
PARSER = SqlParser()


def guarded(sql: str) -> str | None:
    tree = PARSER.parse(sql)
    analysis = analyse_watermarks(tree, {SENTINEL: "e"}, PARSER)
    assert analysis.violations == ()
    return write_guards(sql, tree, analysis.comparisons, PARSER)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (f"u > {W}", f"({W} IS NULL OR u > {W})"),
        (f"{W} <= e.u", f"({W} IS NULL OR {W} <= e.u)"),
        (f"(staging.e.u) >= {W}", f"({W} IS NULL OR (staging.e.u) >= {W})"),
        (f'"u">={W}-interval 2 hour', f'(({W}-interval 2 hour) IS NULL OR "u">={W}-interval 2 hour)'),
        (f"u >= ({W} - interval '2 hours')", f"((({W} - interval '2 hours')) IS NULL OR u >= ({W} - interval '2 hours'))"),
        (f"u > coalesce({W}, '(')", f"((coalesce({W}, '(')) IS NULL OR u > coalesce({W}, '('))"),
        (f"u > {W}::timestamp -- why", f"(({W}::timestamp) IS NULL OR u > {W}::timestamp) -- why"),
        (f"u /* a */ > -- b\n {W} /* c */ and k = 1", f"({W} IS NULL OR u /* a */ > -- b\n {W}) /* c */ and k = 1"),
        (f"u > {W} and u >= {W}", f"({W} IS NULL OR u > {W}) and ({W} IS NULL OR u >= {W})"),
        (f"u > {W} or u is null", f"({W} IS NULL OR u > {W}) or u is null"),
        (f"k = 'é' and u > {W} and k <> 'ß'", f"k = 'é' and ({W} IS NULL OR u > {W}) and k <> 'ß'"),
        (f"u > greatest({W}, {W} - interval 1 day)", None),
        (f"u > case when {W} > '2020' then {W} else '2019' end", None),
    ],
)  # fmt: skip
def test_only_the_comparison_changes(condition: str, expected: str | None) -> None:
    """Every other character stays as the author wrote it."""
    text = guarded(f"select * from staging.e where {condition}")
    assert text is not None
    if expected is not None:
        assert text == f"select * from staging.e where {expected}"


@pytest.mark.parametrize(
    "sql",
    [
        f"with a as materialized (select random() r from staging.e where u > {W}) select * from a, a b",
        f"with a as not materialized (select * from staging.e where u > {W}) select * from a, a b",
        f"select * from staging.e natural join (b natural join d) where e.u > {W}",
        f"from staging.e where u > {W} limit 3",
        f"select a.*, x'41', 1e10, u is true from staging.e a join t on t.id = a.id and a.u > {W} using sample 10%",
        f"select (select max(k) from staging.e where u > {W}), k from staging.e where u >= {W}",
    ],
)
def test_words_that_a_tree_does_not_keep_stay(sql: str) -> None:
    """What DuckDB would drop or change when it writes a query back is still there."""
    text = guarded(sql)
    assert text is not None
    assert re.sub(rf"\({W} IS NULL OR ((?:\w\.)?u >=? {W})\)", r"\1", text) == sql


_COLUMNS = st.sampled_from(["u", "e.u", "staging.e.u", '"u"', "(u)", "((e.u))"])
_VALUES = st.recursive(
    st.just(W),
    lambda inner: st.one_of(
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"{text}::bigint"),
        inner.map(lambda text: f"cast({text} as bigint)"),
        inner.map(lambda text: f"coalesce({text}, 7)"),
        st.tuples(inner, st.integers(1, 5)).map(lambda pair: f"{pair[0]}::bigint - {pair[1]}"),
        inner.map(lambda text: f"({text} /* ( */)"),
        inner.map(lambda text: f"( -- note )\n{text})"),
        inner.map(lambda text: f"case when {text}::bigint > 3 then 2 else 1 end"),
        inner.map(lambda text: f"[{text}][1]"),
    ),
    max_leaves=4,
)
_OTHERS = st.sampled_from(["k > 1", "k is not null", "(k = 1 or k = 2)", "s <> ')'", "true", "k between 1 and 3"])


@given(_COLUMNS, _VALUES, st.lists(_OTHERS, max_size=2), st.lists(_OTHERS, max_size=2), st.booleans(), st.booleans())
def test_any_guarded_query_reads_everything_first_and_what_was_asked_later(
    column: str, value: str, before: list[str], behind: list[str], is_flipped: bool, is_closed: bool
) -> None:
    """With NULL the comparison drops nothing, with a value the result is that of the author's query."""
    operator = ("<=" if is_closed else "<") if is_flipped else (">=" if is_closed else ">")
    floor = f"{value} {operator} {column}" if is_flipped else f"{column} {operator} {value}"
    sql = f"select k from staging.e where {' and '.join([*before, floor, *behind])} order by k -- end"
    text = guarded(sql)
    assert text is not None
    without = f"select k from staging.e where {' and '.join([*before, 'true', *behind])} order by k"
    with duckdb.connect() as connection:
        connection.execute("create schema staging")
        connection.execute(
            "create table staging.e as select * from (values (1, 4, 'a'), (2, 5, ')'), (3, null, 'b'), (4, 9, null), "
            "(null, 5, 'c')) v(k, u, s)"
        )
        is_null_safe = "coalesce" not in value and "case" not in value
        if is_null_safe:  # otherwise the author gave the first run a value
            first = substitute_watermarks(text, {SENTINEL: typed_null("bigint")})
            assert connection.execute(first).fetchall() == connection.execute(without).fetchall()
        later = {SENTINEL: "5"}
        expected = connection.execute(substitute_watermarks(sql, later)).fetchall()
        assert connection.execute(substitute_watermarks(text, later)).fetchall() == expected
