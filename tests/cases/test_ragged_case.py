"""Rows with another number of fields: refused, padded, or set aside and counted (C04)."""

from __future__ import annotations

import duckdb
import pytest

from pz_engine import NodeCompleted, NodeStatus
from pz_engine.events.types import RunEvent
from pz_engine.testing.project_factory import ProjectFactory


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """Three rows, the third one field too long."""
    factory.write("in/readings.csv", "sensor,value\na,1\nb,2\nc,3,4\n")
    factory.pipeline(
        "readings",
        "INSERT INTO {{ sink('out', 'readings', format: 'parquet', strategy: 'replace') }}\n"
        "SELECT * FROM {{ source('files', 'readings') }}",
    )
    return factory


def declare(project: ProjectFactory, ragged: str, *, contract: bool) -> None:
    columns = ", columns: { sensor: varchar, value: int }" if contract else ""
    project.connections(
        f"""
        files:
          connector: localfiles
          root: in
          entities:
            readings: {{ read: {{ path: readings.csv, ragged: {ragged}{columns} }} }}
        out: {{ connector: localfiles, root: out }}
        """
    )


def landed(project: ProjectFactory) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(f"from '{project.directory}/out/readings/readings.parquet' order by all").fetchall()


@pytest.mark.parametrize("contract", [True, False])
def test_a_longer_row_fails_the_load_by_default(project: ProjectFactory, *, contract: bool) -> None:
    """File, line, expected and found number of fields, and both ways out."""
    declare(project, "fail", contract=contract)
    outcome = project.run()
    failed = next(result for result in outcome.results if result.status is NodeStatus.FAILED)
    assert failed.error is not None
    for text in ("readings.csv", "line 4", "expected 2", "found 3", "pad", "reject"):
        assert text in failed.error.message


@pytest.mark.parametrize("contract", [True, False])
def test_rejected_rows_are_counted_and_kept_aside(project: ProjectFactory, *, contract: bool) -> None:
    """Good rows land, the count is in event and results, the row is in the side table."""
    declare(project, "reject", contract=contract)
    events: list[RunEvent] = []
    outcome = project.run(events=events)
    assert outcome.exit_code == 0, [r.error for r in outcome.results]
    assert landed(project) == [("a", 1), ("b", 2)]
    load = next(e for e in events if isinstance(e, NodeCompleted) and e.result.name == "src_files__readings")
    assert load.to_json()["rejected"] == 1
    staging = project.directory / ".pz" / "runs" / outcome.run_id / "staging.duckdb"
    with duckdb.connect(str(staging), read_only=True) as connection:
        assert connection.execute('select count(*) from staging.staging."src_files__readings__rejects"').fetchone() == (
            1,
        )


def test_padded_rows_gain_columns(project: ProjectFactory) -> None:
    """Without a contract the surplus field becomes a column of its own."""
    declare(project, "pad", contract=False)
    assert project.run().exit_code == 0
    assert landed(project) == [("a", 1, None), ("b", 2, None), ("c", 3, 4)]
