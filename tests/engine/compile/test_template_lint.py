"""Mistakes in YAML and in templates come in one report, when they have nothing to do with each other."""

from __future__ import annotations

import pytest

from pz_engine.app.compile import compile_project
from pz_engine.testing.project_factory import ProjectFactory


def codes(factory: ProjectFactory) -> list[tuple[str, str | None, int | None]]:
    return [(problem.code, problem.file, problem.line) for problem in compile_project(factory.directory).problems]


def test_three_mistakes_in_three_kinds_of_file_are_three_errors(factory: ProjectFactory) -> None:
    """A YAML key, a check and a template, each with its line."""
    factory.connections("files: { connector: localfiles, root: in, entities: [] }\n")
    factory.pipeline("p", "SELECT 1\nFROM {{ ref('q') }}")
    factory.pipeline("q", "SELECT\n{{ nope() }} AS x")
    factory.pipeline("r", "SELECT\n\n{{ var('x' }} AS x")
    factory.sidecar("p", "checks:\n  - not_nul: [id]\n")
    assert codes(factory) == [
        ("PZ0101", "connections.yml", 1),
        ("PZ0113", "pipelines/configs/p.yml", 3),
        ("PZ0104", "pipelines/q.sql", 2),
        ("PZ0104", "pipelines/r.sql", 3),
    ]


def test_an_unknown_pipeline_is_named_beside_a_yaml_mistake(factory: ProjectFactory) -> None:
    """With the near miss that a compile would give."""
    factory.connections("files: 3\n")
    factory.pipeline("orders", "SELECT 1 AS one")
    factory.pipeline("p", "SELECT * FROM {{ ref('order') }}")
    problems = compile_project(factory.directory).problems
    assert [problem.code for problem in problems] == ["PZ0101", "PZ0201"]
    assert problems[1].hint == "did you mean 'orders'?"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM {{ source('gone', 'x') }} WHERE a > {{ var('unknown') }}",
        "{{ if false }}SELECT {{ nope }} FROM {{ ref('missing') }}{{ else }}SELECT 1{{ end }}",
        "{% set day = 3 %}SELECT {{ day }}, '{{ run_id }}', {{ this }}",
        "SELECT * FROM {{ ref('1_illegal') }}",
    ],
    ids=["needs other files", "an arm that is not taken", "names of its own", "a file with another problem"],
)
def test_nothing_is_reported_that_another_file_may_excuse(factory: ProjectFactory, sql: str) -> None:
    """One cause gives one problem."""
    factory.connections("files: 3\n")
    factory.write("pipelines/1_illegal.sql", "SELECT 1")
    factory.pipeline("p", sql)
    assert {code for code, _, _ in codes(factory)} == {"PZ0101", "PZ0136"}


def test_a_folder_without_a_project_has_one_problem(factory: ProjectFactory) -> None:
    """Nothing is said about pipelines that belong to no project."""
    factory.pipeline("p", "{{ nope }}")
    (factory.directory / "project.yml").unlink()
    assert codes(factory) == [("PZ0101", "project.yml", None)]
