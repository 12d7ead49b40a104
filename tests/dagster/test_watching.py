"""A built-in check passes only where the engine looked, and fails when any run of the engine saw something."""

import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pz_dagster import PzProject, PzResource, PzRunConfig, pz_assets
from pz_engine import list_runs
from pz_engine.connectors import PzConnectorError
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall
from tests.dagster.conftest import Workbench
from tests.dagster.far_side import Far, Job
from tests.dagster.test_builtin_checks import ALL, declared, evaluations, translator, watched  # noqa: F401 - fixture
from tests.dagster.test_failures import failure_of
from tests.dagster.test_findings_of_earlier_runs import FROM_FAILURE
from tests.dagster.test_materialize import materialized

# ruff: noqa: F811 - fixtures
WATCHES = translator(frozenset({"drift", "merge_keys"}))
CONFIG = {"ops": {"days": {"config": {"until_caught_up": 10}}}}


@pytest.fixture
def far() -> Iterator[Far]:
    found = Far()
    with found.installed():
        yield found


@pytest.fixture
def days(tmp_path: Path, far: Far) -> ProjectFactory:
    """Four windows of events beside a list without a contract, which each pass reads again."""
    factory = ProjectFactory(tmp_path / "days", 'name: days\nversion: "1"\non_source_drift: warn\n')
    factory.connections(
        """
        far: { connector: scripted, retry: { max_attempts: 1 } }
        erp:
          connector: localfiles
          root: .
          entities:
            events:
              read:
                path: events.csv
                columns: { id: int, at: timestamp }
                sync: { mode: incremental, cursor: at, max_window: 1d, initial: 2025-12-31, until: 2026-01-04 }
        """
    )
    factory.pipeline(
        "p",
        "INSERT INTO {{ sink('far', 'out', strategy: 'merge', keys: ['id']) }}\nSELECT e.id, n.c "
        "FROM {{ source('erp', 'events') }} AS e CROSS JOIN (SELECT count(id) AS c FROM {{ source('far', 'names') }}) AS n",
    )
    return factory


def script(
    factory: ProjectFactory, far: Far, *, repeats: Sequence[int] = (1, 1, 1, 1), drifted: Collection[int] = ()
) -> None:
    """Say how often each day's id occurs, and in which reads the list has another column."""
    lines = [f"{day},2026-01-0{day} 00:00:00" for day, times in enumerate(repeats, 1) for _ in range(times)]
    factory.write("events.csv", "\n".join(["id,at", *lines, ""]))

    def names(number: int) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([{"id": 1, "more": 1} if number in drifted else {"id": 1}])

    def read(call: ReadCall) -> list[pa.RecordBatch]:
        far.schema = names(call.ordinal + 1).schema
        return [names(call.ordinal)]

    far.schema, far.on_read = names(1).schema, read


def bench_of(days: ProjectFactory, instance: dg.DagsterInstance, **options: Any) -> Workbench:
    return Workbench(days, instance, translator=WATCHES, **options)


def test_a_finding_of_any_pass_fails_the_check(days: ProjectFactory, far: Far, instance: dg.DagsterInstance) -> None:
    """The last pass saw nothing; the check says which did, and each finding is there."""
    script(days, far, repeats=(1, 1, 2, 1), drifted={2})
    result = bench_of(days, instance).materialize(run_config=CONFIG)
    assert result.success
    found = evaluations(result)
    drift, keys = found["schema_drift"], found["merge_keys_unique"]
    assert (drift.passed, keys.passed) == (False, False)
    assert drift.severity is dg.AssetCheckSeverity.WARN
    assert drift.metadata["pz/found_in_passes"].value == "2"
    assert drift.metadata["pz/found"].value[0]["changes"][0]["column"] == "more"
    assert keys.metadata["pz/found_in_passes"].value == "3"
    assert keys.metadata["pz/found"].value == [{"pass": 3, "keys": "id", "duplicate_groups": 1, "extra_rows": 1}]
    assert len(result.get_asset_check_evaluations()) == 2


def test_every_pass_that_found_something_is_named(days: ProjectFactory, far: Far, instance: dg.DagsterInstance) -> None:
    """What is shown first is the newest; an op of one pass says nothing of passes."""
    script(days, far, repeats=(2, 3, 1, 1))
    metadata = evaluations(bench_of(days, instance).materialize(run_config=CONFIG))["merge_keys_unique"].metadata
    assert metadata["pz/found_in_passes"].value == "1, 2"
    assert metadata["pz/extra_rows"].value == 2
    assert [each["extra_rows"] for each in metadata["pz/found"].value] == [1, 2]
    days.write("events.csv", "id,at\n5,2026-01-04 12:00:00\n5,2026-01-04 12:00:00\n")
    text = (days.directory / "connections.yml").read_text()
    days.write("connections.yml", text.replace("until: 2026-01-04", "until: 2026-01-09"))
    found = evaluations(bench_of(days, instance).materialize())["merge_keys_unique"]
    assert (found.passed, "pz/found_in_passes" in found.metadata) == (False, False)


def test_an_observation_of_an_early_pass_is_kept(days: ProjectFactory, far: Far, instance: dg.DagsterInstance) -> None:
    """Without the switches a finding is an observation, whichever pass it is of."""
    script(days, far, repeats=(1, 2, 1, 1), drifted={2})
    bench = Workbench(days, instance, translator=translator(frozenset()))
    result = bench.materialize(run_config=CONFIG)
    seen = [event.asset_key for event in result.all_events if event.event_type_value == "ASSET_OBSERVATION"]
    assert [key.to_user_string() for key in seen if key is not None] == ["days/src_far__names", "far/out"]


def test_no_window_is_read_after_a_cancellation(days: ProjectFactory, far: Far, instance: dg.DagsterInstance) -> None:
    """It may come when the engine has just ended well: that pass is reported, and the op begins no other one."""
    script(days, far, repeats=(2, 1, 1, 1))

    @pz_assets(project=PzProject(days.directory), translator=translator(frozenset()))
    def body(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        invocation = pz.run(context=context, config=PzRunConfig(until_caught_up=10))
        for result in invocation.stream():
            if isinstance(result, dg.AssetObservation):
                deadline = time.monotonic() + 20
                while invocation.outcome is None and time.monotonic() < deadline:
                    time.sleep(0.02)
                invocation.cancel()
            yield result

    result = dg.materialize([body], instance=instance, resources={"pz": PzResource()})
    assert len(far.reads) == len(list_runs(days.directory)) == 1
    assert "far/out" in materialized(result)


@pytest.mark.parametrize("end", ["failed", "refused"])
def test_a_last_pass_that_does_not_come_so_far_hides_nothing(
    end: str, days: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """Whether the node is skipped or the project has broken meanwhile, what the first pass saw is told."""
    script(days, far, repeats=(2, 1, 1, 1))
    read = far.on_read

    def then(call: ReadCall) -> Any:
        if call.ordinal == 2 and end == "failed":
            raise PzConnectorError("gone", is_transient=False)
        if call.ordinal == 1 and end == "refused":
            days.sidecar("p", "checks:\n  - not_nul: [id]\n")
        return read(call)

    far.on_read = then
    result = bench_of(days, instance).materialize(run_config=CONFIG, raise_on_error=False)
    assert not result.success
    assert len(far.reads) == (2 if end == "failed" else 1)
    found = evaluations(result)["merge_keys_unique"]
    assert (found.passed, found.metadata["pz/found_in_passes"].value) == (False, "1")


def test_a_later_attempt_tells_what_it_sees_in_a_load_that_dagster_has(
    days: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """The first attempt reported the load and its check; the next one reads further windows, and one has drifted."""
    script(days, far, drifted={2})
    far.failures = {"out": 1}
    job = Job(days, instance, translator=WATCHES, retry_policy=dg.RetryPolicy(max_retries=1))
    job.run(config=CONFIG)
    assert job.succeeded
    told = [e.asset_check_evaluation_data for e in job.events if e.event_type_value == "ASSET_CHECK_EVALUATION"]
    assert [each.passed for each in told if each.check_name == "schema_drift"] == [True, False]


@pytest.mark.parametrize("edit", ["policy", "contract", "strategy", "reader"])
def test_what_nobody_looked_at_does_not_pass(edit: str, watched: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """`PZ0708` after everything has landed: the files ended the looking after definitions were loaded. A reload helps."""
    bench = Workbench(watched, instance, translator=translator(ALL))
    assert bench.materialize().success
    path = watched.directory / "pipelines/people.sql"
    if edit == "policy":
        watched.write("project.yml", 'name: watch\nversion: "1"\non_source_drift: ignore\n')
    elif edit == "contract":
        contract = "path: 'people.csv', columns: { id: 'bigint', born: 'varchar', code: 'bigint' }"
        path.write_text(path.read_text().replace("path: 'people.csv'", contract))
    elif edit == "reader":
        pq.write_table(pa.table({"id": [1], "born": ["x"], "code": [5]}), watched.directory / "people.parquet")
        path.write_text(path.read_text().replace("path: 'people.csv'", "path: 'people.parquet', format: 'parquet'"))
    else:
        path.write_text(path.read_text().replace("strategy: 'merge', keys: ['id']", "strategy: 'replace'"))
    (watched.directory / "mart.duckdb").unlink()
    result = bench.materialize(raise_on_error=False)
    ended = {
        "policy": {"schema_drift"},
        "contract": {"schema_drift", "lossless_integers", "unambiguous_dates"},
        "strategy": {"merge_keys_unique"},
        "reader": {"lossless_integers", "unambiguous_dates"},
    }[edit]
    text = failure_of(result, "watch")
    assert text.startswith("error PZ0708")
    assert all(f"{name} of " in text for name in ended)
    assert set(evaluations(result)) == {e.name for each in bench.assets for e in each.check_specs} - ended
    assert materialized(result) == {"watch/src_files__people", "watch/people", "mart/people"}
    assert Workbench(watched, instance, translator=translator(ALL)).materialize().success


def test_a_load_of_a_run_that_did_not_look_has_no_result(
    tmp_path: Path, far: Far, instance: dg.DagsterInstance
) -> None:
    """The policy came back before the run is continued: its staged rows were never compared, which is no green check."""
    factory = ProjectFactory(tmp_path / "one", 'name: one\nversion: "1"\non_source_drift: warn\n')
    factory.connections("far: { connector: scripted, retry: { max_attempts: 1 } }\n")
    sink = "{{ sink('far', 'out', strategy: 'append', duplicates: 'accept') }}"
    factory.pipeline("p", f"INSERT INTO {sink}\nSELECT id FROM {{{{ source('far', 'events') }}}}")
    job = Job(factory, instance)
    factory.write("project.yml", 'name: one\nversion: "1"\non_source_drift: ignore\n')
    far.failures = {"out": 1}
    job.run()
    assert not job.succeeded
    factory.write("project.yml", 'name: one\nversion: "1"\non_source_drift: warn\n')
    assert "one/src_far__events" in job.run(FROM_FAILURE, parent=job.last)
    assert (job.succeeded, job.checks, len(far.reads)) == (True, [], 1)
    assert [text for text in job.messages if "schema_drift of src_far__events has no result" in text]


@pytest.mark.parametrize("edit", ["contract", "other"])
def test_a_load_that_changed_meanwhile_passes_for_nothing(
    edit: str, watched: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """The check was declared for another load: that the run which is continued saw no doubtful type says nothing."""
    watched.write("people.csv", "id,born,code\n1,2000-01-31,5\n")
    watched.write("project.yml", 'name: watch\nversion: "1"\nengine: { fusion: "off" }\n')
    job = Job(watched, instance, translator=translator(ALL - {"merge_keys"}))
    path = watched.directory / "pipelines/people.sql"
    contract = "columns: { id: 'bigint', born: 'varchar', code: 'bigint' }"
    more = contract if edit == "contract" else "format: 'csv'"
    path.write_text(path.read_text().replace("path: 'people.csv'", f"path: 'people.csv', {more}"))
    mart = watched.directory / "mart.duckdb"
    mart.write_text("this is no database")
    job.run()
    mart.unlink()
    assert "watch/src_files__people" in job.run(FROM_FAILURE, parent=job.last)
    assert job.succeeded
    assert [text for text in job.messages if text.startswith("note: 1 source load(s) are reused")]
    assert not {"lossless_integers", "unambiguous_dates"} & set(job.checks)
    silent = [text for text in job.messages if "has no result" in text]
    assert {text.split(" ")[0] for text in silent} >= {"lossless_integers", "unambiguous_dates"}


def test_a_comparison_that_fails_is_not_a_pass(watched: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The accepted columns are unreadable: the check could not be evaluated, and neither load nor step fails for it."""
    bench = Workbench(watched, instance)
    bench.materialize()
    schemas = watched.directory / ".pz/state/schemas.json"
    schemas.unlink()
    schemas.mkdir()
    result = bench.materialize()
    found = evaluations(result)["schema_drift"]
    assert (found.passed, found.metadata["pz/evaluated"].value) == (False, False)
    assert found.severity is dg.AssetCheckSeverity.ERROR
    assert result.success


@pytest.mark.parametrize("how", ["setting", "option"])
def test_reads_in_batches_are_not_watched_for_types(
    how: str, watched: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """The engine doubts inferred types only where DuckDB inferred them, so no such check is declared for other reads."""
    path = watched.directory / "pipelines/people.sql"
    if how == "setting":
        watched.write("project.yml", 'name: watch\nversion: "1"\nengine: { force_universal: true }\n')
    else:
        path.write_text(path.read_text().replace("path: 'people.csv'", "path: 'people.csv', files_per_partition: 1"))
    bench = Workbench(watched, instance, translator=translator(ALL - {"drift"}))
    assert {name for _, name, _ in declared(bench)} == {"merge_keys_unique"}
