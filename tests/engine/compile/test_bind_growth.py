"""Queries that DuckDB would copy parts of millions of times are refused before they are bound."""

from __future__ import annotations

import time

import pytest

from pz_engine.app.compile import compile_project
from pz_engine.app.plan import plan_project
from pz_engine.app.validate import validate_project

CONNECTIONS = "f: {connector: localfiles, root: data, entities: {e: {read: {path: e.csv, columns: {id: bigint}}}}}\n"
SOURCE = "{{ source('f', 'e') }}"


def aliases(count: int) -> str:
    steps = ", ".join(f"a{n} + A{n} as a{n + 1}" for n in range(count))
    return f"select id as a0, {steps} from {SOURCE}"


def nested(text: str, count: int) -> str:
    value = "id"
    for _ in range(count):
        value = text.replace("?", value)
    return f"select {value} as v from {SOURCE}"


def tables(count: int, word: str) -> str:
    steps = ", ".join(f"c{n + 1} as {word} (select x.id from c{n} x, c{n} y)" for n in range(count))
    return f"with c0 as {word} (select id from {SOURCE}), {steps} select * from c{count}"


GROWING = {
    "aliases": (aliases, 10, 24),
    "aliases in a condition": (lambda n: f"{aliases(n)} where a{n} > a{n} and a{n} <> a{n}", 8, 14),
    "nullif": (lambda n: nested("nullif(?, 1)", n), 9, 24),
    "between": (lambda n: nested("(? between 1 and 2)::int", n), 9, 24),
    "lambdas": (lambda n: nested("list_transform([1], lambda x: ?)", n), 9, 24),
    "common tables": (lambda n: tables(n, "not materialized"), 9, 24),
}


@pytest.mark.parametrize("name", GROWING)
def test_growth_is_refused_at_once(project, name):
    """A few levels are fine, many are one PZ0401 within a moment, in every verb that compiles."""
    write, fine, many = GROWING[name]
    project.write("connections.yml", CONNECTIONS)
    project.sql("p", write(fine))
    assert compile_project(project.directory).problems == ()
    project.sql("p", write(many))
    started = time.process_time()
    for problems in (
        compile_project(project.directory).problems,
        validate_project(project.directory).problems,
        plan_project(project.directory).problems,
    ):
        assert [(problem.code, problem.file) for problem in problems] == [("PZ0401", "pipelines/p.sql")]
        assert "50,000 copies" in problems[0].message
    assert time.process_time() - started < 5


def test_views_that_read_views_are_counted_across_pipelines(project):
    """A view is bound again for each mention; a table between two of them ends that."""
    project.write("connections.yml", CONNECTIONS)
    project.sql("v0", f"select id from {SOURCE}").sidecar("v0", "materialization: view\n")
    for number in range(1, 21):
        read = f"{{{{ ref('v{number - 1}') }}}}"
        project.sql(f"v{number}", f"select id from {read} union all select id from {read}")
        project.sidecar(f"v{number}", "materialization: view\n")
    problems = compile_project(project.directory).problems
    assert problems
    assert {problem.code for problem in problems} == {"PZ0401"}
    for number in (7, 14):
        project.sidecar(f"v{number}", "materialization: table\n")
    assert compile_project(project.directory).problems == ()


def structs(count: int) -> str:
    query = f"select id as x from {SOURCE}"
    for _ in range(count):
        query = f"select {{'a': x, 'b': X}} as x from ({query})"
    return query


@pytest.mark.parametrize(
    "write",
    [
        structs,
        lambda n: f"with c0 as (select id as x from {SOURCE}), "
        + ", ".join(f"c{i + 1} as (select row(c.x, x) as x from c{i} c)" for i in range(n)) + f" from c{n}",
        lambda n: "select id as a0, " + ", ".join(f"struct_pack(p := a{i}, q := a{i}) as a{i + 1}" for i in range(n))
        + f" from {SOURCE}",
    ],
    ids=["sub-queries", "common tables", "aliases"],
)  # fmt: skip
def test_structs_of_structs_are_refused(project, write):
    """A type of a million fields takes minutes and gigabytes, though no part of the query is copied."""
    project.write("connections.yml", CONNECTIONS)
    project.sql("p", write(8))
    assert compile_project(project.directory).problems == ()
    project.sql("p", write(22))
    problems = validate_project(project.directory).problems
    assert {(problem.code, problem.file) for problem in problems} == {("PZ0401", "pipelines/p.sql")}


def test_structs_grow_from_pipeline_to_pipeline(project):
    """Tables between them make no difference to a type."""
    project.write("connections.yml", CONNECTIONS).sql("p0", f"select id as x from {SOURCE}")
    for number in range(1, 20):
        project.sql(f"p{number}", f"select {{'a': x, 'b': x}} as x from {{{{ ref('p{number - 1}') }}}}")
    problems = validate_project(project.directory).problems
    assert [(problem.code, "5,000 fields" in problem.message) for problem in problems[:1]] == [("PZ0401", True)]


@pytest.mark.parametrize(
    "sql",
    [
        tables(60, "materialized"),
        tables(60, ""),
        "select " + ", ".join(f"coalesce(id, {n}) as id, id + id as c{n}" for n in range(300)) + f" from {SOURCE}",
        f"select id from {SOURCE} where " + " and ".join(f"(id > {n} or id is null)" for n in range(3000)),
        f"select id as a, {', '.join(['a + a + a'] * 400)} from {SOURCE}",
        " union all ".join([f"select id as k, k + k as l, l + l as m from {SOURCE}"] * 120),
    ],
)
def test_long_queries_that_grow_little_pass(project, sql):
    """Length is no growth."""
    project.write("connections.yml", CONNECTIONS)
    project.sql("p", sql)
    assert compile_project(project.directory).problems == ()
