"""What the resource sets for one deployment reaches the engine, in place of the project's own settings."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest

from pz_dagster import PzProject, PzResource, build_pz_assets
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall, rows
from tests.dagster.far_side import Far


@pytest.fixture
def far() -> Iterator[Far]:
    found = Far()
    with found.installed():
        yield found


def run(factory: ProjectFactory, instance: dg.DagsterInstance, resource: PzResource) -> dict[str, object]:
    """Materialize everything; returns what DuckDB said of itself."""
    assets = build_pz_assets(PzProject(factory.directory))
    assert dg.materialize(assets, instance=instance, resources={"pz": resource}).success
    (path,) = (factory.directory / "out" / "told").glob("*")
    header, line = path.read_text().splitlines()
    return dict(zip(header.split(","), line.split(","), strict=True))


def test_the_resource_overrides_engine_settings(tmp_path: Path, far: Far, instance: dg.DagsterInstance) -> None:
    """Nodes at once, DuckDB's memory and its threads; what is left out stays as the project says."""
    project = "engine: { threads: 2, duckdb: { memory_limit: 200MB, threads: 2 } }"
    factory = ProjectFactory(tmp_path / "set", f'name: set\nversion: "1"\n{project}\n')
    factory.connections("far: { connector: scripted }\nlake: { connector: localfiles, root: out }\n")
    factory.pipeline(
        "told",
        "INSERT INTO {{ sink('lake', 'told', format: 'csv', strategy: 'replace') }}\n"
        "SELECT current_setting('threads') AS threads, current_setting('memory_limit') AS memory, "
        "(SELECT count(*) FROM {{ source('far', 'one') }}) + (SELECT count(*) FROM {{ source('far', 'two') }}) AS n",
    )
    guard, reading, most = threading.Lock(), [0], [0]

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        with guard:
            reading[0] += 1
            most[0] = max(most[0], reading[0])
        time.sleep(0.2)
        yield rows(1)
        with guard:
            reading[0] -= 1

    far.on_read = read
    assert run(factory, instance, PzResource()) == {"threads": "2", "memory": "190.7 MiB", "n": "2"}
    assert most == [2]
    most[0] = 0
    given = PzResource(threads=1, memory_limit="100MB", duckdb_threads=1)
    assert run(factory, instance, given) == {"threads": "1", "memory": "95.3 MiB", "n": "2"}
    assert most == [1]
