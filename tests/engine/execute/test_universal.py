"""The universal tier through a whole run: Arrow batches, progress, faults."""

from __future__ import annotations

import duckdb
import pytest

from pz_engine import NodeProgress, NodeStatus
from pz_engine.events.types import RunEvent
from pz_engine.testing.project_factory import ProjectFactory
from tests.engine.connectors.csv_splitting import small_limits

PROJECT = 'name: demo\nversion: "1"\nengine: { force_universal: true, batch_bytes: 1048576, threads: 2 }\n'


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """A csv copied through batches to a parquet file."""
    factory.write("project.yml", PROJECT)
    factory.connections(
        """
        files:
          connector: localfiles
          root: in
          entities:
            a: { read: { path: "a*.csv", columns: { id: int, name: varchar, at_time: timestamp, price: 'decimal(10,2)' } } }
        out:
          connector: localfiles
          root: out
        """
    )
    factory.pipeline(
        "p",
        "INSERT INTO {{ sink('out', 'result', format: 'parquet', strategy: 'replace') }}\n"
        "SELECT * FROM {{ source('files', 'a') }}",
    )
    return factory


def fill(project: ProjectFactory, rows: int) -> None:
    (project.directory / "in").mkdir(exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute(
            f"copy (select i as id, repeat('x', 60) || i as name, timestamp '2026-01-01' + to_seconds(i) as at_time, "
            f"cast(i / 100 as decimal(10,2)) as price from range({rows}) t(i)) to '{project.directory}/in/a.csv' (header)"
        )


def test_rows_land_with_progress_and_timings(project: ProjectFactory) -> None:
    """Every row arrives, progress counts up, both sides of the channel were timed."""
    fill(project, 200_000)
    events: list[RunEvent] = []
    outcome = project.run(events=events)
    assert outcome.exit_code == 0, [r.error for r in outcome.results]
    rows = {result.name: result.rows for result in outcome.results}
    assert rows == {"src_files__a": 200_000, "p": 200_000, "out.result": 200_000}
    assert all(r.timings is not None for r in outcome.results if r.name != "p")
    progress = [event.rows for event in events if isinstance(event, NodeProgress) and event.node_name == "src_files__a"]
    assert progress
    assert progress == sorted(progress)
    with duckdb.connect() as connection:
        found = connection.execute(
            f"select count(*), sum(id), max(price), max(at_time)::varchar from '{project.directory}/out/result/result.parquet'"
        ).fetchall()
    assert str(found[0][:3]) == "(200000, 19999900000, Decimal('1999.99'))"


def test_a_value_that_does_not_fit_fails_and_leaves_nothing(project: ProjectFactory) -> None:
    """The same promise as the native tier: file, line and column, never the value; no table, no file."""
    project.write("in/a.csv", "id,name,at_time,price\n1,a,2026-01-01 00:00:00,1.25\n2,b,2026-01-01 00:00:00,1.255\n")
    outcome = project.run()
    load = next(result for result in outcome.results if result.status is NodeStatus.FAILED)
    assert load.error is not None
    assert load.name == "src_files__a"
    assert "a.csv" in load.error.message
    assert "line 3" in load.error.message
    assert "price" in load.error.message
    assert "1.255" not in load.error.message
    staging = project.directory / ".pz" / "runs" / outcome.run_id / "staging.duckdb"
    with duckdb.connect(str(staging), read_only=True) as connection:
        assert connection.execute(
            "select count(*) from information_schema.tables where table_schema = 'staging'"
        ).fetchone() == (0,)
    assert not (project.directory / "out").exists()


def test_a_native_only_format_is_refused_clearly(project: ProjectFactory) -> None:
    """Parquet has no universal reader: the load fails with `PZ0312` and what to remove."""
    project.connections(
        "files: { connector: localfiles, root: in, entities: { a: { read: { format: parquet } } } }\n"
        "out: { connector: localfiles, root: out }\n"
    )
    with duckdb.connect() as connection:
        (project.directory / "in").mkdir()
        connection.execute(f"copy (select 1 as id) to '{project.directory}/in/a.parquet'")
    outcome = project.run()
    load = next(result for result in outcome.results if result.status is NodeStatus.FAILED)
    assert load.error is not None
    assert load.error.code == "PZ0312"
    assert "force_universal" in load.error.message


def test_a_large_file_is_read_in_ranges(project: ProjectFactory) -> None:
    """Every row arrives once, and a fault names its line in the file."""
    fill(project, 50_000)
    with small_limits(readers=4, block_bytes=1024):
        outcome = project.run()
        assert outcome.exit_code == 0, [r.error for r in outcome.results]
        with duckdb.connect() as connection:
            found = connection.execute(
                f"select count(*), count(distinct id), sum(id) from '{project.directory}/out/result/result.parquet'"
            ).fetchall()
        assert found == [(50_000, 50_000, 1_249_975_000)]
        with (project.directory / "in" / "a.csv").open("a") as file:
            file.write("1,a,2026-01-01 00:00:00,1.255\n")
        load = next(result for result in project.run().results if result.status is NodeStatus.FAILED)
    assert load.error is not None
    assert "a.csv', line 50002: column 'price'" in load.error.message
