"""Files whose rows or values DuckDB would change without a word are refused, naming file and column."""

from __future__ import annotations

import duckdb
import pytest

from pz_engine import NodeStatus
from pz_engine.testing.project_factory import ProjectFactory


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """One entity copied to a parquet file."""
    (factory.directory / "in").mkdir()
    factory.pipeline(
        "p",
        "INSERT INTO {{ sink('out', 'p', format: 'parquet', strategy: 'replace') }}\nSELECT * FROM {{ source('files', 'e') }}",
    )
    return factory


def declare(project: ProjectFactory, read: str) -> None:
    project.connections(
        f"files: {{ connector: localfiles, root: in, entities: {{ e: {{ read: {{ {read} }} }} }} }}\n"
        "out: { connector: localfiles, root: out }\n"
    )


def parquet(project: ProjectFactory, name: str, query: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"copy ({query}) to '{project.directory}/in/{name}' (format parquet)")


def refusal(project: ProjectFactory) -> str:
    outcome = project.run()
    (failed,) = [result for result in outcome.results if result.status is NodeStatus.FAILED]
    assert failed.error is not None
    assert failed.name == "src_files__e"
    assert not list(project.directory.glob("out/**/*.parquet"))
    return failed.error.message


@pytest.mark.parametrize("columns", ["", ", columns: { id: varchar, v: varchar, w: varchar }"])
def test_an_open_quote_is_no_ragged_row(project: ProjectFactory, columns: str) -> None:
    """`ragged: reject` sets rows aside for their length only; the rest of a file is never swallowed."""
    project.write("in/a.csv", 'id,v,w\n3,e,f\n5,q,"r\n6,a,b\n7,a,b\n')
    declare(project, f"path: a.csv, ragged: reject{columns}")
    assert "a.csv" in refusal(project)


@pytest.mark.parametrize("columns", ["", ", columns: { id: varchar }", ", columns: { id: bigint }"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("9007199254740995::bigint", "7.5::double"),
        ("12::decimal(38,0)", "0.1234567::decimal(38,10)"),
        ("16777217::int", "1::float"),
        ("date '2026-01-01'", "timestamp '2026-01-01 10:00:00'"),
    ],
)
def test_files_of_different_types_are_not_rounded_into_one(
    project: ProjectFactory, left: str, right: str, columns: str
) -> None:
    """Both files and types are named."""
    parquet(project, "a.parquet", f"select {left} as id")
    parquet(project, "b.parquet", f"select {right} as id")
    declare(project, f'path: "*.parquet", format: parquet{columns}')
    message = refusal(project)
    assert "a.parquet" in message
    assert "b.parquet" in message
    assert "'id'" in message


def test_integers_of_different_width_are_read_together(project: ProjectFactory) -> None:
    """Widening changes nothing."""
    parquet(project, "a.parquet", "select 1::int as id")
    parquet(project, "b.parquet", "select 9007199254740995::bigint as id")
    declare(project, 'path: "*.parquet", format: parquet')
    assert project.run().exit_code == 0
    with duckdb.connect() as connection:
        found = connection.execute(f"from '{project.directory}/out/p/p.parquet' order by all").fetchall()
    assert found == [(1,), (9007199254740995,)]


def test_a_contract_column_missing_from_one_file_is_named(project: ProjectFactory) -> None:
    """It is not filled with NULL."""
    parquet(project, "a.parquet", "select 1::int as i, 2::int as j")
    parquet(project, "b.parquet", "select 1::int as i")
    declare(project, 'path: "*.parquet", format: parquet, columns: { i: int, j: int }')
    message = refusal(project)
    assert "'j'" in message
    assert "b.parquet" in message


@pytest.mark.parametrize("content", [b"", b"garbage garbage", b"PAR1 cut off in the middle"])
def test_a_broken_parquet_file_is_named(project: ProjectFactory, content: bytes) -> None:
    """Among many files it is the name that helps."""
    parquet(project, "a.parquet", "select 1 as id")
    (project.directory / "in" / "b.parquet").write_bytes(content)
    declare(project, 'path: "*.parquet", format: parquet')
    assert "b.parquet" in refusal(project)


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_folder_never_overwrites_a_column(project: ProjectFactory, format_: str) -> None:
    """A column of the file and a folder of the same name are refused; switching folders off reads the file's."""
    (project.directory / "in" / "k=1").mkdir()
    if format_ == "csv":
        project.write("in/k=1/a.csv", "id,k\n1,99\n")
    else:
        parquet(project, "k=1/a.parquet", "select 1 as id, 99 as k")
    declare(project, f'path: "k=1/a.{format_}", format: {format_}')
    message = refusal(project)
    assert "'k'" in message
    assert "hive_partitioning: false" in message
    declare(project, f'path: "k=1/a.{format_}", format: {format_}, hive_partitioning: false')
    assert project.run().exit_code == 0
