"""A pipeline or custom check is exactly one query; validating it runs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from pz_engine.app.validate import validate_project
from pz_engine.testing.project_factory import ProjectFactory


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS a) LIMIT 0; COPY (SELECT 1) TO '{file}'; SELECT * FROM (SELECT 1",
        "SELECT 1; DROP TABLE x",
        "SELEC 1",
        "COPY (SELECT 1) TO '{file}'",
        "SELECT * FROM {{{{ source('files', 'free') }}}}; SELECT 2",
        "SELEC * FROM {{{{ source('files', 'free') }}}}",
        "-- nothing",
    ],
)
def test_anything_but_one_query_is_refused(factory: ProjectFactory, tmp_path: Path, sql: str) -> None:
    """`PZ0401` on the pipeline's file, also without a contract, and no statement was run."""
    factory.connections("files: { connector: localfiles, root: in }\n")
    file = tmp_path / "written"
    factory.pipeline("p", sql.format(file=file))
    report = validate_project(factory.directory)
    assert [(problem.code, problem.file) for problem in report.problems] == [("PZ0401", "pipelines/p.sql")]
    assert not file.exists()


@pytest.mark.parametrize(
    "sql",
    ["FROM range(3);", "PIVOT (SELECT 1 a, 2 b) ON a USING sum(b)", "WITH a AS (SELECT 1 x) SELECT * FROM a -- end"],
)
def test_every_kind_of_query_passes(factory: ProjectFactory, sql: str) -> None:
    """FROM-first, PIVOT, CTEs and comments are queries."""
    factory.pipeline("p", sql)
    assert not validate_project(factory.directory).problems


def test_custom_check_sql_is_parsed_too(factory: ProjectFactory) -> None:
    """The sidecar is named, with each check's line; templates are not rendered there."""
    factory.pipeline("p", "SELECT 1 AS one")
    first, second = "{ name: c, sql: \"SELECT * FROM {{ ref('p') }}\" }", "{ name: d, sql: SELECT 1; SELECT 2 }"
    factory.sidecar("p", f"checks:\n  - not_null: [one]\n  - custom_sql: {first}\n  - custom_sql: {second}\n")
    text = (factory.directory / "pipelines/configs/p.yml").read_text(encoding="utf-8").splitlines()
    lines = [number for number, line in enumerate(text, start=1) if "custom_sql" in line]
    found = [(problem.code, problem.place) for problem in validate_project(factory.directory).problems]
    assert found == [("PZ0401", f"pipelines/configs/p.yml:{line}") for line in lines]


def test_a_variable_never_shows_in_a_parser_message(factory: ProjectFactory) -> None:
    """An unterminated quote would echo what follows it."""
    factory.pipeline("p", "SELECT '{{ var('token') }} AS z, {{ var('token') }} x y w")
    report = validate_project(factory.directory, vars={"token": "SENTINEL"})
    assert report.problems
    assert "SENTINEL" not in str(report)
