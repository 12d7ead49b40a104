"""The life of an invocation: order, cancellation, rejected results, transient and permanent failures, case C18."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from pz_dagster import PzProject, PzResource, pz_assets
from pz_engine import list_runs
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_failures import failure_of
from tests.dagster.test_materialize import materialized, metadata_of


def engine_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("pz-")}


def test_case_c18_one_of_three_loads_fails(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    """Two tables land with their counts, the bad one fails with its code, what is below is skipped, the step fails."""
    factory = ProjectFactory(tmp_path / "three", 'name: three\nversion: "1"\n')
    factory.write("in/good_a.csv", "id,name\n1,ok\n")
    factory.write("in/good_b.csv", "id,name\n1,ok\n")
    factory.write("in/bad.csv", "id,name\nnot-a-number,bad\n")
    factory.connections("files: { connector: localfiles, root: in }\nlake: { connector: localfiles, root: out }\n")
    for name in ("good_a", "good_b", "bad"):
        source = f"{{{{ source('files', '{name}', path: '{name}.csv', columns: {{ id: 'int', name: 'varchar' }}) }}}}"
        sink = f"{{{{ sink('lake', '{name}', format: 'csv') }}}}"
        factory.pipeline(f"p_{name}", f"INSERT INTO {sink}\nSELECT id, name FROM {source}")
    factory.pipeline(
        "together",
        "INSERT INTO {{ sink('lake', 'together', format: 'csv') }}\n"
        "SELECT id FROM {{ ref('p_good_a') }} UNION ALL SELECT id FROM {{ ref('p_good_b') }} "
        "UNION ALL SELECT id FROM {{ ref('p_bad') }}",
    )
    bench = Workbench(factory, instance)
    result = bench.materialize(raise_on_error=False)
    assert not result.success
    assert {"lake/good_a", "lake/good_b"} <= materialized(result)
    assert not {"lake/bad", "lake/together", "three/together", "three/src_files__bad"} & materialized(result)
    assert metadata_of(result, "lake", "good_a")["pz/rows"] == 1
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    data = failure.step_failure_data.user_failure_data
    assert data is not None
    assert data.description is not None
    first, second, *_ = data.description.splitlines()
    assert first.endswith("1 failed, 4 skipped")
    assert second.startswith("src_files__bad: PZ05")
    assert "not-a-number" not in data.description
    (row,) = data.metadata["pz/failed"].records  # type: ignore[union-attr]
    assert row.data["node"] == "src_files__bad"
    skipped = {row.data["node"]: row.data["blocked_by"] for row in data.metadata["pz/skipped"].records}  # type: ignore[union-attr]
    assert skipped["lake.together"] == "src_files__bad"


def stalled(shop: ProjectFactory) -> None:
    """Make the second flow write for as long as nobody stops it."""
    shop.pipeline(
        "events_merged",
        "INSERT INTO {{ sink('mart', 'events', strategy: 'merge', keys: ['id']) }}\n"
        "SELECT e.id, count(*) AS n FROM {{ source('erp', 'events') }} AS e, range(100000000) AS r(x), "
        "range(1000000) AS s(y) WHERE hash(x, y) <> 0 GROUP BY e.id",
    )


REJECTED = """
import gc, sys, threading
import dagster as dg
from pz_dagster import PzProject, PzResource, pz_assets

@pz_assets(project=PzProject(sys.argv[1]), select="+mart.events")
def forever(context, pz: PzResource):
    for result in pz.run(context=context).stream():
        yield result
        yield result

with dg.DagsterInstance.ephemeral() as instance:
    result = dg.materialize([forever], instance=instance, resources={"pz": PzResource()}, raise_on_error=False)
    assert not result.success
    if sys.argv[2] == "dropped":
        del result
        gc.collect()
        assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
    else:
        kept = [each for each in gc.get_objects() if type(each).__name__ == "generator"]
"""


@pytest.mark.parametrize("generator", ["dropped", "kept"])
def test_a_rejected_result_stops_the_engine(shop: ProjectFactory, generator: str) -> None:
    """Dagster only drops the generator, or not even that; no thread keeps the process, no lock is left behind."""
    stalled(shop)
    command = [sys.executable, "-c", REJECTED, str(shop.directory), generator]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    assert list_runs(shop.directory)[0].status.value == "fatal"
    duckdb.connect(str(shop.directory / "mart.duckdb")).close()


def test_an_interruption_cancels_the_run_and_passes_on(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Whatever is raised while results are awaited reaches Dagster unchanged, after the engine has ended."""
    stalled(shop)

    class Interrupted(BaseException):
        pass

    @pz_assets(project=PzProject(shop.directory), select="+mart.events")
    def forever(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        stream = pz.run(context=context).stream()
        yield next(stream)
        stream.throw(Interrupted())  # type: ignore[attr-defined]

    before = engine_threads()
    with pytest.raises(Interrupted):
        dg.materialize([forever], instance=instance, resources={"pz": PzResource()})
    assert engine_threads() <= before


def test_a_cancelled_invocation_is_a_failure_not_a_success(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """`cancel()` ends the run fatally, and the op says so."""
    stalled(shop)

    @pz_assets(project=PzProject(shop.directory), select="+mart.events")
    def forever(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        invocation = pz.run(context=context)
        for result in invocation.stream():
            yield result
            invocation.cancel()

    result = dg.materialize([forever], instance=instance, resources={"pz": PzResource()}, raise_on_error=False)
    assert "PZ0500: the run was cancelled" in failure_of(result, "forever")


def test_only_transient_failures_are_retried(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A destination that another process holds may be free later, so the policy tries again."""
    text = (shop.directory / "connections.yml").read_text()
    shop.write("connections.yml", text.replace("path: mart.duckdb", "path: mart.duckdb\n  retry: { max_attempts: 1 }"))
    code = (
        f"import duckdb, sys; c = duckdb.connect({str(shop.directory / 'mart.duckdb')!r}); print(1, flush=True); "
        "sys.stdin.readline()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        other.stdout.readline()
        bench = Workbench(shop, instance, retry_policy=dg.RetryPolicy(max_retries=1))
        result = bench.materialize(dg.AssetSelection.assets(["mart", "events"]), raise_on_error=False)
        other.stdin.close()
    restarts = [event for event in result.all_events if event.is_step_up_for_retry]
    assert len(restarts) == 1
    assert len(list_runs(shop.directory)) == 2
    assert sorted(record.host["attempt"] for record in list_runs(shop.directory) if record.host) == [0, 1]
