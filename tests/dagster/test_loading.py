"""What loading definitions costs and what it leaves alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from pz_dagster import PzProject, build_pz_definitions, handover, project, snapshot_file
from pz_dagster.fingerprint import fingerprint
from pz_engine.testing.project_factory import ProjectFactory

HEAVY = ("duckdb", "pyarrow", "sqlglot", "jinja2", "jsonschema")


@pytest.fixture(autouse=True)
def nothing_handed_over() -> Iterator[None]:
    yield
    for name in list(os.environ):
        if name.startswith("PZ_DAGSTER_SNAPSHOT_"):
            del os.environ[name]


def python(code: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def mark(directory: Path, **variables: object) -> str:
    return fingerprint(directory, variables, snapshot_file.SCHEMA_VERSION)


def age(directory: Path) -> None:
    """Make the files older than a clock tick, as they are in life."""
    for path in directory.rglob("*"):
        os.utime(path, (time.time() - 60, time.time() - 60))


def test_a_prepared_project_loads_without_heavy_libraries(shop: ProjectFactory) -> None:
    """Neither the import nor a load from a fresh snapshot needs DuckDB, Arrow or SQLGlot, and nothing is deprecated."""
    PzProject(shop.directory).prepare()
    seen = python(
        f"""
        import sys
        import dagster
        before = set(sys.modules)
        import pz_dagster
        imported = [name for name in {HEAVY} if name in sys.modules and name not in before]
        definitions = pz_dagster.build_pz_definitions(pz_dagster.PzProject(sys.argv[1]))
        keys = definitions.resolve_asset_graph().get_all_asset_keys()
        loaded = [name for name in {HEAVY} if name in sys.modules and name not in before]
        print(imported, loaded, len(keys))
        """,
        str(shop.directory),
    )
    assert seen.strip() == "[] [] 9"


def test_loading_twice_reads_nothing_the_second_time(shop: ProjectFactory) -> None:
    """Only sizes and times are looked at while nothing changes."""
    PzProject(shop.directory).prepare()
    age(shop.directory)
    first = PzProject(shop.directory).snapshot
    opened: list[str] = []
    is_watching = [True]
    sys.addaudithook(lambda event, found: opened.append(str(found[0])) if is_watching and event == "open" else None)
    second = PzProject(shop.directory).snapshot
    is_watching.clear()
    assert second is first
    assert not [path for path in opened if path.startswith(str(shop.directory))]


def test_each_input_changes_the_fingerprint_and_nothing_else_does(shop: ProjectFactory) -> None:
    """Project, connections, pipelines, sidecars, the lock file and variables count; data, notes and times do not."""
    directory = shop.directory
    last = mark(directory)
    for file in (
        "project.yml",
        "connections.yml",
        "pipelines/orders_clean.sql",
        "pipelines/configs/orders_clean.yml",
        "pz.lock.json",
        "pipelines/deep/er/new.sql",
    ):
        path = directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((path.read_text() if path.exists() else "") + "\n")
        assert mark(directory) != last, file
        last = mark(directory)
    assert mark(directory, late=1) != last
    for file in ("README.md", "in/more.csv", "pipelines/notes.txt", "pipelines/configs/x.yaml", ".pz/target/plan.json"):
        shop.write(file, "x")
    age(directory)
    assert mark(directory) == last
    (directory / "pipelines/deep/er/new.sql").rename(directory / "pipelines/deep/newer.sql")
    assert mark(directory) != last


def test_an_edit_of_the_same_size_within_a_tick_is_seen(shop: ProjectFactory) -> None:
    """A file that is still warm is hashed again, since its time may not tell."""
    path = shop.write("pipelines/x.sql", "SELECT 1 AS a")
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    before, moment = mark(shop.directory), path.stat().st_mtime_ns
    path.write_text("SELECT 2 AS a")
    os.utime(path, ns=(moment, moment))
    assert mark(shop.directory) != before


def test_the_snapshot_has_stable_bytes_and_no_leftovers(shop: ProjectFactory) -> None:
    """Compiling twice writes the same file, and nothing temporary stays."""
    mine = PzProject(shop.directory)
    mine.prepare()
    first = mine.snapshot_path.read_bytes()
    mine.prepare()
    assert mine.snapshot_path.read_bytes() == first
    assert [path.name for path in mine.snapshot_path.parent.iterdir()] == ["dagster.json"]


def test_only_development_writes_a_snapshot(shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployed process compiles in memory; `dagster dev` writes, and then reads."""
    mine = PzProject(shop.directory)
    assert mine.snapshot.project_name == "shop"
    assert not (shop.directory / ".pz").exists()
    monkeypatch.setenv("DAGSTER_IS_DEV_CLI", "1")
    shop.write("pipelines/more.sql", "SELECT 1 AS a")
    assert "more" in mine.snapshot.compiled.graph.by_name
    assert mine.snapshot_path.is_file()


def test_a_read_only_project_loads_and_says_how_to_prepare(
    shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Even in development nothing needs to be written."""
    monkeypatch.setenv("DAGSTER_IS_DEV_CLI", "1")
    (shop.directory / ".pz").write_text("in the way, so that no directory can be made")
    assert len(build_pz_definitions(PzProject(shop.directory)).resolve_asset_graph().get_all_asset_keys()) == 9
    assert "`pz-dagster prepare`" in caplog.text
    assert str(shop.directory) not in caplog.text


def test_a_worker_uses_what_its_run_was_planned_with(shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker process takes the snapshot on disk although files changed since; it neither compiles nor writes."""
    mine = PzProject(shop.directory)
    mine.prepare()
    before = mine.snapshot_path.read_bytes()
    shop.write("pipelines/more.sql", "SELECT 1 AS a")
    monkeypatch.setattr(project, "_is_worker_process", lambda: True)
    monkeypatch.setattr(PzProject, "_compile", lambda self: pytest.fail("a worker compiled"))
    assert "more" not in mine.snapshot.compiled.graph.by_name
    assert mine.snapshot_path.read_bytes() == before


def test_a_worker_gets_what_a_deployed_parent_compiled(shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stale snapshot on disk is not what the run was planned with, so the parent's is handed over."""
    mine = PzProject(shop.directory)
    mine.prepare()
    shop.write("pipelines/more.sql", "SELECT 1 AS a")
    assert "more" in mine.snapshot.compiled.graph.by_name
    monkeypatch.setattr(project, "_is_worker_process", lambda: True)
    monkeypatch.setattr(PzProject, "_compile", lambda self: pytest.fail("a worker compiled"))
    project._CACHE.clear()
    assert "more" in mine.snapshot.compiled.graph.by_name
    handover.withdraw(mine.identity)
    project._CACHE.clear()
    assert "more" not in mine.snapshot.compiled.graph.by_name


def test_no_value_of_a_variable_is_read_while_loading(shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """`${NAME}` stays a name, set or not: neither the snapshot nor any id depends on the environment."""
    shop.write("project.yml", 'name: shop\nversion: "1"\nvars: { note: "${NOTE}" }\n')
    shop.connections(
        """
        erp: { connector: localfiles, root: "${ROOT_OF_ERP}" }
        lake: { connector: localfiles, root: out }
        mart: { connector: duckdb, path: "${PZ_MART}" }
        """
    )
    shop.pipeline(
        "events_merged",
        "INSERT INTO {{ sink('lake', 'notes', format: 'csv') }}\nSELECT '{{ var('note') }}' AS note, "
        "'{{ env('WHO') }}' AS who FROM {{ source('erp', 'orders', path: 'orders.csv') }}",
    )
    mine = PzProject(shop.directory)
    assert not mine.snapshot.compiled.problems
    mine.prepare()
    unset = mine.snapshot_path.read_bytes()
    for name in ("NOTE", "ROOT_OF_ERP", "PZ_MART"):
        monkeypatch.setenv(name, "sentinel-value")
    mine.prepare()
    assert mine.snapshot_path.read_bytes() == unset
    assert b"sentinel" not in unset
    assert json.loads(unset)["connections"]["lake"] == {"connector": "localfiles", "line": 2}


def test_a_variable_that_sql_needs_takes_its_value(shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number in the middle of a condition does not parse as a name, so one that is set is used."""
    shop.write("project.yml", 'name: shop\nversion: "1"\nvars: { least: "${LEAST}" }\n')
    shop.pipeline(
        "events_merged",
        "INSERT INTO {{ sink('mart', 'events', strategy: 'merge', keys: ['id']) }}\n"
        "SELECT id, seen_at FROM {{ source('erp', 'events', path: 'events.csv', "
        "columns: { id: 'int', seen_at: 'timestamp' }) }} WHERE id > {{ var('least') }} "
        "AND seen_at > {{ watermark('erp', 'events') }}",
    )
    shop.connections(
        """
        erp: { connector: localfiles, root: in, entities: { orders: { read: { path: orders.csv } } } }
        lake: { connector: localfiles, root: out }
        mart: { connector: duckdb, path: mart.duckdb }
        """
    )
    monkeypatch.setenv("LEAST", "0")
    assert not PzProject(shop.directory).snapshot.compiled.problems


def test_an_unset_variable_stops_the_run_that_needs_it(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """`PZ0103` when a run starts; `PzResource.env` gives a value without exporting it."""
    from pz_dagster import PzResource
    from tests.dagster.conftest import Workbench
    from tests.dagster.test_failures import failure_of

    text = (shop.directory / "connections.yml").read_text()
    shop.write("connections.yml", text.replace("root: out", "root: ${LAKE_ROOT}"))
    bench = Workbench(shop, instance)
    result = bench.materialize(dg.AssetSelection.assets(["lake", "orders"]), raise_on_error=False)
    assert "PZ0103" in failure_of(result, "shop__lake_orders")
    assert not (shop.directory / ".pz" / "runs").exists()
    os.environ["LAKE_VALUE"] = "landed"
    try:
        bench = Workbench(shop, instance, resource=PzResource(env={"LAKE_ROOT": dg.EnvVar("LAKE_VALUE")}))
        assert bench.materialize(dg.AssetSelection.assets(["lake", "orders"])).success
    finally:
        del os.environ["LAKE_VALUE"]
    assert (shop.directory / "landed" / "orders").is_dir()
    assert "LAKE_ROOT" not in os.environ
    assert "landed" not in repr(PzResource(env={"LAKE_ROOT": "landed"}))
