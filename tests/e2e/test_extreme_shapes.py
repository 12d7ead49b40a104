"""Data of extreme shape: it lands, or a node fails clearly and nothing is half-written."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pz_engine import RunOutcome
from pz_engine.testing.project_factory import ProjectFactory

LAKE = "INSERT INTO {{ sink('lake', 'result', format: 'parquet', strategy: 'replace') }}\n"
TABLE = "INSERT INTO {{ sink('mart', 'result', strategy: 'merge', keys: ['c0']) }}\n"
CONNECTIONS = """
files:
  connector: localfiles
  root: in
lake:
  connector: localfiles
  root: lake
mart:
  connector: duckdb
  path: mart.duckdb
"""


ENGINES = {"fused": "", "staged": "engine: { fusion: off }\n", "universal": "engine: { force_universal: true }\n"}


@pytest.fixture(params=list(ENGINES))
def path_taken(request: pytest.FixtureRequest) -> str:
    """Name each data path."""
    return str(request.param)


@pytest.fixture
def project(path_taken: str, factory: ProjectFactory) -> ProjectFactory:
    """The same project on each data path."""
    factory.write("project.yml", f'name: demo\nversion: "1"\n{ENGINES[path_taken]}')
    factory.connections(CONNECTIONS)
    return factory


def landed(project: ProjectFactory) -> Path:
    """Return the one file at the destination."""
    (found,) = (path for path in (project.directory / "lake").rglob("*") if path.is_file())
    return found


def left_over(project: ProjectFactory, outcome: RunOutcome) -> list[str]:
    """Name the spilled files that a run left."""
    spilled = (project.directory / ".pz" / "runs" / outcome.run_id).glob("spill/**/*")
    return [path.name for path in spilled if path.is_file()]


@pytest.mark.parametrize("sink", [LAKE, TABLE], ids=["file", "merge"])
def test_two_thousand_columns_land(project: ProjectFactory, path_taken: str, sink: str) -> None:
    """A wide table lands with every column in its place."""
    if sink is TABLE and path_taken != "staged":
        pytest.skip("a merge into a database file is staged, and never in batches")
    names = [f"c{number}" for number in range(2_000)]
    rows = [[f"{row * 2_000 + number}" for number in range(2_000)] for row in range(3)]
    project.write("in/wide.csv", "\n".join(",".join(line) for line in (names, *rows)) + "\n")
    contract = ", ".join(f"{name}: 'int'" for name in names)
    source = f"source('files', 'wide', path: 'wide.csv', columns: {{ {contract} }})"
    project.pipeline("p", f"{sink}SELECT * FROM {{{{ {source} }}}}")
    outcome = project.run()
    assert outcome.exit_code == 0, outcome.results
    with duckdb.connect(str(project.directory / "mart.duckdb") if sink is TABLE else ":memory:") as connection:
        found = "result" if sink is TABLE else f"'{landed(project)}'"
        assert connection.execute(f"select * from {found} order by c0").fetchall() == [
            tuple(map(int, row)) for row in rows
        ]
    assert left_over(project, outcome) == []


def test_a_row_of_two_hundred_megabytes_fails_its_load(project: ProjectFactory) -> None:
    """A row beyond the limit is named by file and line; what was at the destination stays, and the next run works."""
    good = "id,text\n1,a\n"
    project.write("in/long.csv", good)
    project.pipeline(
        "p",
        LAKE
        + "SELECT * FROM {{ source('files', 'long', path: 'long.csv', columns: { id: 'bigint', text: 'varchar' }) }}",
    )
    assert project.run().exit_code == 0
    before = landed(project).read_bytes()
    _write_long_row(project.directory / "in" / "long.csv", 200 * 2**20)
    outcome = project.run()
    assert outcome.exit_code == 1
    (failed,) = [result for result in outcome.results if result.error is not None]
    assert failed.error is not None
    assert "long.csv" in failed.error.message
    assert "line 3" in failed.error.message
    assert "16 MiB" in failed.error.message
    assert landed(project).read_bytes() == before
    assert left_over(project, outcome) == []
    project.write("in/long.csv", good)
    assert project.run().exit_code == 0


def test_thousands_of_tiny_row_groups_land(project: ProjectFactory, path_taken: str) -> None:
    """A row group for every row is slow to read and loses none."""
    if path_taken == "universal":
        pytest.skip("Parquet files are read natively only")
    count = 5_000
    path = project.directory / "in" / "tiny.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"c0": pa.array(range(count), pa.int64())})
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table, row_group_size=1)
    assert pq.ParquetFile(path).num_row_groups == count
    project.pipeline("p", LAKE + "SELECT * FROM {{ source('files', 'tiny', path: 'tiny.parquet', format: 'parquet') }}")
    outcome = project.run()
    assert outcome.exit_code == 0, outcome.results
    answer = duckdb.sql(f"select count(*), sum(c0) from '{landed(project)}'").fetchone()
    assert answer == (count, count * (count - 1) // 2)
    assert left_over(project, outcome) == []


def _write_long_row(path: Path, size: int) -> None:
    with path.open("w") as stream:
        stream.write("id,text\n1,a\n2,")
        for _ in range(size // 2**20):
            stream.write("x" * 2**20)
        stream.write("\n3,c\n")
