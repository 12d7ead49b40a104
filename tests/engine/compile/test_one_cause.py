"""One mistake is one problem, and both surfaces judge it alike."""

from __future__ import annotations

import pytest

from pz_engine.app.validate import validate_project

CONTRACT = "c: {{connector: localfiles, root: data, entities: {{e: {{read: {{path: e.csv, columns: {{{0}}}{1}}}}}}}}}\n"


def problems(project) -> list[tuple[str, str | None, int | None]]:
    return [(p.code, p.file, p.line) for p in validate_project(project.directory).problems]


def test_a_sink_that_is_also_read_is_one_problem(project):
    """The second mention is why the shape is wrong, so it is told once."""
    project.write("connections.yml", "c: {connector: localfiles, root: data}\n")
    project.sql("p", "INSERT INTO {{ sink('c', 't') }} SELECT * FROM {{ sink('c', 't') }}")
    assert problems(project) == [("PZ0208", "pipelines/p.sql", 1)]


def test_a_folder_called_like_a_pipeline_is_one_problem(project):
    """Its sidecar is not a second one."""
    project.write("pipelines/q.sql/x.txt", "").sidecar("q", "materialization: view\n")
    assert problems(project) == [("PZ0101", "pipelines/q.sql", None)]


def test_proposed_names_are_free(project):
    """Two files are never told to take one name, nor that of a third."""
    for name in ("1-a", "1 a", "a_1", "é", "ü"):
        project.sql(name, "select 1 as a")
    hints = [problem.hint for problem in validate_project(project.directory).problems]
    assert len(set(hints)) == len(hints) == 4
    assert "rename it to a_1.sql" not in hints


def test_columns_that_differ_in_case_are_refused_at_load(project):
    """DuckDB takes them for one, so the contract is wrong before any SQL is."""
    project.write("connections.yml", "c:\n  connector: localfiles\n  entities:\n    e:\n      read:\n        columns:\n"
                  "          a: int\n          A: int\n")  # fmt: skip
    assert problems(project) == [("PZ0101", "connections.yml", 8)]


@pytest.mark.parametrize("cursor", ["u", "U"])
def test_yaml_finds_its_cursor_in_any_case(project, cursor):
    """As watermark() does; the contract's spelling is kept."""
    sync = f", sync: {{mode: incremental, cursor: {cursor}, initial: 2026-01-01, max_window: 1h}}"
    project.write("connections.yml", CONTRACT.format("u: timestamp", sync))
    project.sql("p", "select u from {{ source('c', 'e') }}")
    assert problems(project) == []
    assert project.compile().graph.by_name["src_c__e"].incremental.cursor == "u"


@pytest.mark.parametrize("value", ["getvariable('x')", "current_setting('threads')", "version()"])
def test_what_the_session_says_is_no_value_of_a_floor(project, value):
    """It may differ in the next run, although DuckDB calls it consistent."""
    project.write("connections.yml", CONTRACT.format("u: varchar", ""))
    project.sql(
        "p", f"select u from {{{{ source('c', 'e') }}}} where u > coalesce({{{{ watermark('c', 'e') }}}}, {value})"
    )
    assert problems(project) == [("PZ0224", "pipelines/p.sql", 1)]


@pytest.mark.parametrize("call", ["source('c', 'e', x: source)", "source('c', 'e', x=ref)"])
def test_a_function_is_no_option(project, call):
    """Its value cannot be written down."""
    project.write("connections.yml", "c: {connector: localfiles, root: data}\n")
    project.sql("p", f"select u from {{{{ {call} }}}}")
    assert problems(project) == [("PZ0137", "pipelines/p.sql", 1)]
    project.sql("p", "select {{ source }}, {{ ref('x' ~ env) }}")
    assert {code for code, _, _ in problems(project)} == {"PZ0104"}


def test_one_package_in_two_spellings_is_listed_twice(project):
    """Package indexes compare names without case, and take -, _ and . for one."""
    entries = "".join(f"  - {{package: {name}, version: '1.0'}}\n" for name in ("a-b", "A_b", "a.B"))
    project.write("project.yml", f"name: p\nversion: 1\nconnectors:\n{entries}")
    assert [code for code, _, _ in problems(project)] == ["PZ0110", "PZ0110"]


def test_a_name_is_text(project):
    """A number is none, like true and a list."""
    for value in ("5", "true", "[a]"):
        project.write("project.yml", f"name: {value}\nversion: 1\n")
        assert problems(project) == [("PZ0101", "project.yml", 1)]
