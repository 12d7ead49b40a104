"""A quiet day: nothing to read or nothing left to write, in every format and strategy, with state and checks (C07, C08)."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from pz_engine import NodeStatus
from pz_engine.testing.project_factory import ProjectFactory

CONNECTIONS = """
files:
  connector: localfiles
  root: in
  entities:
    stock: {{ read: {{ path: "{path}", columns: {{ sku: varchar, stock: int }}{extra} }} }}
out: {{ connector: localfiles, root: out }}
mart: {{ connector: duckdb, path: mart.duckdb }}
"""
PROJECT = 'name: demo\nversion: "1"\nengine: {{ fusion: {fusion}, force_universal: {universal} }}\n'


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """Two rows of stock, declared."""
    factory.write("in/stock.csv", "sku,stock\na,1\nb,2\n")
    declare(factory)
    return factory


def declare(project: ProjectFactory, path: str = "stock.csv", extra: str = "") -> None:
    project.connections(CONNECTIONS.format(path=path, extra=extra))


def write_to(project: ProjectFactory, sink: str) -> None:
    project.pipeline("p", f"INSERT INTO {{{{ {sink} }}}}\nSELECT sku, stock FROM {{{{ source('files', 'stock') }}}}")


def stored(project: ProjectFactory) -> list[tuple[object, ...]]:
    with duckdb.connect(str(project.directory / "mart.duckdb"), read_only=True) as connection:
        return connection.execute("from stock order by all").fetchall()


def empty(project: ProjectFactory) -> None:
    project.write("in/stock.csv", "sku,stock\n")


@pytest.mark.parametrize(("fusion", "universal"), [("on", "false"), ("off", "false"), ("off", "true")])
@pytest.mark.parametrize("format_", ["csv", "parquet", "json"])
def test_replace_with_nothing_leaves_a_file_without_rows(
    project: ProjectFactory, format_: str, fusion: str, universal: str
) -> None:
    """Success with 0 rows on every tier; the file of yesterday is gone and today's has columns and, where it can, types."""
    project.write("project.yml", PROJECT.format(fusion=fusion, universal=universal))
    write_to(project, f"sink('out', 'stock', format: '{format_}', strategy: 'replace')")
    assert project.run().exit_code == 0
    empty(project)
    outcome = project.run()
    assert outcome.exit_code == 0
    assert {result.rows for result in outcome.results} == {0}
    (path,) = (project.directory / "out" / "stock").iterdir()
    if format_ == "csv":
        assert path.read_text().strip() == "sku,stock"
    elif format_ == "json":
        assert path.read_text().strip() == ""
    else:
        with duckdb.connect() as connection:
            assert connection.execute(f"from '{path}'").fetchall() == []
            described = connection.execute(f"describe from '{path}'").fetchall()
        assert [(row[0], row[1]) for row in described] == [("sku", "VARCHAR"), ("stock", "INTEGER")]


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ("strategy: 'replace'", []),
        ("strategy: 'append', duplicates: 'accept'", [("a", 1), ("b", 2)]),
        ("strategy: 'merge', keys: ['sku']", [("a", 1), ("b", 2)]),
    ],
)
def test_table_is_emptied_by_replace_alone(project: ProjectFactory, options: str, left: list[object]) -> None:
    """Append and merge of nothing change nothing, and all three succeed, on a table that is new as well."""
    write_to(project, f"sink('mart', 'stock', {options})")
    empty(project)
    assert project.run().exit_code == 0
    assert stored(project) == []
    project.write("in/stock.csv", "sku,stock\na,1\nb,2\n")
    assert project.run().exit_code == 0
    empty(project)
    outcome = project.run()
    assert outcome.exit_code == 0
    assert {result.rows for result in outcome.results} == {0}
    assert stored(project) == left


def test_empty_delta_leaves_the_watermark_and_its_run(project: ProjectFactory) -> None:
    """The entry keeps its value and the run that stored it."""
    declare(project, extra=", sync: { mode: incremental, cursor: stock }")
    write_to(project, "sink('mart', 'stock', strategy: 'merge', keys: ['sku'])")
    first = project.run()
    path = project.directory / ".pz/state/watermarks.json"
    before = path.read_bytes()
    assert json.loads(before)["watermarks"]["files.stock"]["runId"] == first.run_id
    for content in ("sku,stock\na,1\nb,2\n", "sku,stock\n"):
        project.write("in/stock.csv", content)
        assert project.run().exit_code == 0
        assert path.read_bytes() == before


def test_checks_run_and_see_an_empty_table(project: ProjectFactory) -> None:
    """What is true of no row passes; a wanted number of rows is a violation."""
    write_to(project, "sink('out', 'stock', format: 'csv', strategy: 'replace')")
    project.sidecar("p", "checks:\n  - not_null: [sku]\n  - unique: [sku]\n  - row_count: { min: 1 }\n")
    empty(project)
    outcome = project.run()
    checks = {
        result.name: (result.status, result.rows) for result in outcome.results if result.name.startswith("check")
    }
    assert checks == {
        "check_p_not_null_sku": (NodeStatus.SUCCESS, 0),
        "check_p_unique_sku": (NodeStatus.SUCCESS, 0),
        "check_p_row_count": (NodeStatus.FAILED, 1),
    }


@pytest.mark.parametrize("universal", ["false", "true"])
def test_folder_without_a_file_fails_or_is_empty_as_the_author_says(project: ProjectFactory, universal: str) -> None:
    """By default the load fails naming pattern and connection; allowed, it is zero rows with the declared columns."""
    project.write("project.yml", PROJECT.format(fusion="on", universal=universal))
    write_to(project, "sink('out', 'stock', format: 'parquet', strategy: 'replace')")
    declare(project, path="landing/*.csv")
    outcome = project.run()
    failed = next(result for result in outcome.results if result.status is NodeStatus.FAILED)
    assert failed.name == "src_files__stock"
    assert failed.error is not None
    assert "landing/*.csv" in failed.error.message
    assert "'files'" in failed.error.message
    declare(project, path="landing/*.csv", extra=", on_empty: zero_rows")
    outcome = project.run()
    assert outcome.exit_code == 0
    assert {result.rows for result in outcome.results} == {0}


def test_one_more_partition_folder_changes_no_type(project: ProjectFactory, tmp_path: Path) -> None:
    """Folder names are text, whatever they look like, on this run and the next; the default partition is NULL."""
    for region in ("010", "__HIVE_DEFAULT_PARTITION__"):
        project.write(f"in/region={region}/part.csv", "sku,stock\na,1\n")
    project.connections(
        CONNECTIONS.format(path="*/part.csv", extra="").replace(", columns: { sku: varchar, stock: int }", "")
    )
    project.pipeline(
        "p",
        "INSERT INTO {{ sink('mart', 'stock', strategy: 'replace') }}\nSELECT region, sku FROM {{ source('files', 'stock') }}",
    )
    assert project.run().exit_code == 0
    assert stored(project) == [("010", "a"), (None, "a")]
    project.write("in/region=7/part.csv", "sku,stock\na,1\n")
    assert project.run().exit_code == 0
    assert stored(project) == [("010", "a"), ("7", "a"), (None, "a")]
