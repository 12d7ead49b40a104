"""Sidecars row by row: keys, and the options of every check."""

from __future__ import annotations

import pytest

HEAD = "pipeline: one\n"
REFUSED = [
    ("", "PZ0111:None"),
    ("pipeline:\n", "PZ0111:1"),
    ("pipeline: ''\n", "PZ0111:1"),
    ("pipeline: [one]\n", "PZ0111:1"),
    ("pipeline: One\n", "PZ0111:1"),
    (HEAD + "materialization:\n", "PZ0134:2"),
    (HEAD + "materialization: incremental\n", "PZ0134:2"),
    (HEAD + "materialization: true\n", "PZ0134:2"),
    (HEAD + "materialisation: view\n", "PZ0101:2"),
    (HEAD + "tags: {a: b}\n", "PZ0101:2"),
    (HEAD + "tags:\n  - ok\n  - [a]\n", "PZ0101:4"),
    (HEAD + "tags:\n  - ''\n", "PZ0101:3"),
    (HEAD + "checks: not_null\n", "PZ0113:2"),
    (HEAD + "checks:\n  - not_null\n", "PZ0113:3"),
    (HEAD + "checks:\n  - {}\n", "PZ0113:3"),
    (HEAD + "checks:\n  - []\n", "PZ0113:3"),
    (HEAD + "checks:\n  - not_null: [id]\n    unique: [id]\n", "PZ0113:3"),
    (HEAD + "checks:\n  - relationship: {to: x}\n", "PZ0113:3"),
    (HEAD + "checks:\n  - not_null: [1]\n", "PZ0113:3"),
    (HEAD + "checks:\n  - not_null: true\n", "PZ0113:3"),
    (HEAD + "checks:\n  - not_null:\n      columns: []\n", "PZ0113:3"),
    (HEAD + "checks:\n  - not_null:\n      column: [id]\n", "PZ0113:4"),
    (HEAD + "checks:\n  - not_null:\n      column: 5\n", "PZ0113:4"),
    (HEAD + "checks:\n  - not_null:\n      columns: [id]\n      where: x\n      limit: 5\n", "PZ0113:5 PZ0113:6"),
    (HEAD + "checks:\n  - not_null:\n      columns: [id]\n      sample_values: no\n", "PZ0113:5"),
    (HEAD + "checks:\n  - row_count:\n", "PZ0113:3"),
    (HEAD + "checks:\n  - row_count: [id]\n", "PZ0113:3"),
    (HEAD + "checks:\n  - row_count: {sample_values: true}\n", "PZ0113:3"),
    (HEAD + "checks:\n  - row_count:\n      min: '1'\n      max: 1.0\n", "PZ0113:4 PZ0113:5"),
    (HEAD + "checks:\n  - row_count:\n      min: true\n      max: 0\n", "PZ0113:4"),
    (HEAD + "checks:\n  - row_count: {min: 0, max: -1}\n", "PZ0113:3"),
    (HEAD + "checks:\n  - freshness: [u]\n", "PZ0113:3"),
    (HEAD + "checks:\n  - freshness: {max_age: 1h}\n", "PZ0113:3"),
    (HEAD + "checks:\n  - freshness:\n      column: u\n      max_age: 1 day\n", "PZ0113:5"),
    (HEAD + "checks:\n  - accepted_values: {column: s}\n", "PZ0113:3"),
    (HEAD + "checks:\n  - accepted_values: {columns: [a, b], values: [x]}\n", "PZ0113:3"),
    (HEAD + "checks:\n  - accepted_values:\n      column: s\n      values: x\n", "PZ0113:5"),
    (HEAD + "checks:\n  - accepted_values:\n      column: s\n      values:\n        - a\n        -\n", "PZ0113:7"),
    (HEAD + "checks:\n  - custom_sql: {name: a, sql: select 1, column: id}\n", "PZ0113:3"),
    (HEAD + "checks:\n  - custom_sql: {sql: select 1}\n", "PZ0113:3"),
    (HEAD + "checks:\n  - custom_sql: {name: a}\n", "PZ0113:3"),
    (HEAD + "checks:\n  - custom_sql: {name: 1a, sql: select 1}\n", "PZ0113:3"),
    (HEAD + "checks:\n  - custom_sql: {name: a-b, sql: [x]}\n", "PZ0113:3 PZ0113:3"),
    (HEAD + "checks:\n  - unique: [id]\n  - unique: {column: id}\n  - unique: {columns: [id], sample_values: false}\n",
     "PZ0113:4 PZ0113:5"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), REFUSED)
def test_each_wrong_value_is_refused_at_its_line(project, text, expected):
    """Exactly the listed problems are found, each with its code and line, and each says what to do."""
    project.sql("one", "select 1").write("pipelines/configs/s.yml", text)
    problems = project.problems()
    assert " ".join(f"{problem.code}:{problem.line}" for problem in problems) == expected
    assert {problem.file for problem in problems} == {"pipelines/configs/s.yml"}
    assert all(problem.hint for problem in problems)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "tags:\nchecks:\n",
        "materialization: table\ntags: [1.10, true, 'x', x]\nchecks: []\n",
        "checks:\n  - row_count: {min: 0}\n  - row_count: {max: 5000000000}\n  - row_count: {min: -1, max: -1}\n",
        "checks:\n  - freshness: {columns: [u], max_age: 1ms, sample_values: true}\n",
        "checks:\n  - accepted_values: {column: s, values: ['', 1, 1.5, false]}\n",
        "checks:\n  - custom_sql: {name: a_1, sql: 'select 1;', columns: []}\n",
        "checks:\n  - unique: [a, b]\n  - unique: [b, a]\n  - not_null: {columns: [a]}\n",
    ],
)
def test_values_at_the_limits_are_accepted(project, body):
    """What the tables allow loads without a problem."""
    project.sql("one", "select 1").write("pipelines/configs/s.yml", HEAD + body)
    assert list(project.load().sidecars) == ["one"]


def test_tags_are_kept_as_they_are_typed_and_once(project):
    """A number becomes the text that stands in the file."""
    project.sql("one", "select 1").write("pipelines/configs/s.yml", HEAD + "tags: [1.10, true, x, 'x']\n")
    assert project.load().sidecars["one"].tags == ("1.10", "true", "x")


def test_an_unknown_check_lists_the_six_types(project):
    """The message names all types, and the hint the one that was probably meant."""
    project.sql("one", "select 1").write("pipelines/configs/s.yml", HEAD + "checks: [{uniqe: [id]}]\n")
    (problem,) = project.problems()
    assert "not_null, unique, row_count, freshness, accepted_values, custom_sql" in problem.message
    assert problem.hint == "did you mean 'unique'?"


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("pipeline: onee\n", "did you mean 'one'?"),
        ("pipeline: something_else\n", "write pipeline: one, or delete the file"),
        (HEAD + "tag: [x]\n", "did you mean 'tags'?"),
        (HEAD + "materialization: View\n", "did you mean 'view'?"),
        (HEAD + "checks: [{not_null: {colums: [id]}}]\n", "did you mean 'columns'?"),
    ],
)
def test_hints_say_what_to_write(project, body, hint):
    """A misspelled name comes with the one that was meant."""
    project.sql("one", "select 1").write("pipelines/configs/s.yml", body)
    assert hint in [problem.hint for problem in project.problems()]


def test_sidecars_are_not_interpolated(project):
    """A reference is literal text."""
    project.sql("one", "select 1").write("pipelines/configs/s.yml", HEAD + "tags: ['${A}']\n")
    assert project.load({"A": "x"}).sidecars["one"].tags == ("${A}",)


def test_a_sidecar_of_an_unreadable_pipeline_is_no_second_problem(project):
    """The pipeline's own problem is the only one."""
    project.sql("one", "a\x00b").write("pipelines/configs/s.yml", HEAD)
    assert project.found() == [("PZ0101", "pipelines/one.sql:1")]
