"""What the engine watches by itself, shown as asset checks."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzTranslator, PzTranslatorSettings
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_failures import failure_of

ALL = frozenset({"drift", "merge_keys", "integers", "dates"})
LOAD = dg.AssetKey(["watch", "src_files__people"])
SINK = dg.AssetKey(["mart", "people"])


@pytest.fixture
def watched(shop: ProjectFactory) -> ProjectFactory:
    """One load without a contract into a merge, in a project that warns about drift."""
    factory = ProjectFactory(shop.directory.parent / "watch", 'name: watch\nversion: "1"\non_source_drift: warn\n')
    factory.write("people.csv", "id,born,code\n1,01/02/2000,5\n2,03/04/2001,6\n")
    factory.connections("files: { connector: localfiles, root: . }\nmart: { connector: duckdb, path: mart.duckdb }\n")
    factory.pipeline(
        "people",
        "INSERT INTO {{ sink('mart', 'people', strategy: 'merge', keys: ['id']) }}\n"
        "SELECT id, born, CAST(code AS DOUBLE) AS code FROM {{ source('files', 'people', path: 'people.csv') }}",
    )
    return factory


def translator(switches: frozenset[str]) -> PzTranslator:
    return PzTranslator(PzTranslatorSettings(builtin_checks=switches))


def evaluations(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    return {each.check_name: each for each in result.get_asset_check_evaluations()}


def declared(bench: Workbench) -> set[tuple[str, str, bool]]:
    return {
        (spec.asset_key.to_user_string(), spec.name, spec.blocking)
        for each in bench.assets
        for spec in each.check_specs
    }


def test_only_drift_is_on_and_only_where_it_is_watched(watched: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A contract or `on_source_drift: ignore` leaves nothing to check; nothing blocks."""
    assert declared(Workbench(watched, instance)) == {("watch/src_files__people", "schema_drift", False)}
    watched.write("project.yml", 'name: watch\nversion: "1"\non_source_drift: ignore\n')
    assert declared(Workbench(watched, instance)) == set()
    watched.write("project.yml", 'name: watch\nversion: "1"\non_source_drift: fail\n')
    text = (watched.directory / "pipelines/people.sql").read_text()
    contract = "columns: { id: 'int', born: 'varchar', code: 'int' }"
    watched.pipeline("people", text.replace("path: 'people.csv'", f"path: 'people.csv', {contract}"))
    assert declared(Workbench(watched, instance, translator=translator(ALL))) == {
        ("mart/people", "merge_keys_unique", False)
    }
    text = (watched.directory / "pipelines/people.sql").read_text()
    watched.pipeline("people", text.replace("strategy: 'merge', keys: ['id']", "strategy: 'replace'"))
    assert declared(Workbench(watched, instance, translator=translator(ALL))) == set()


def test_reads_with_types_of_their_own_are_not_inferred(watched: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Parquet files and databases carry types; a compressed csv does not."""
    text = (watched.directory / "pipelines/people.sql").read_text()
    for path, inferred in (("p.parquet", False), ("p.csv.gz", True), ("p', format: 'json", True)):
        watched.pipeline("people", text.replace("people.csv", path))
        names = {name for _, name, _ in declared(Workbench(watched, instance, translator=translator(ALL)))}
        assert ("lossless_integers" in names, "unambiguous_dates" in names) == (inferred, inferred), path


def test_checks_pass_when_the_engine_reports_nothing(watched: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Every selected built-in check has a result, after its asset."""
    watched.write("people.csv", "id,born,code\n1,2000-01-31,5\n")
    result = Workbench(watched, instance, translator=translator(ALL)).materialize()
    found = evaluations(result)
    assert {name: each.passed for name, each in found.items()} == dict.fromkeys(
        ("schema_drift", "lossless_integers", "unambiguous_dates", "merge_keys_unique"), True
    )


def test_what_is_found_fails_the_check_and_not_the_step(watched: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Drift, duplicate keys, lossy integers and ambiguous dates are warnings with their details; no observation doubles them."""
    bench = Workbench(watched, instance, translator=translator(ALL))
    assert bench.materialize().success
    watched.write("people.csv", "id,born,code,note\n1,01/02/2000,90071992547409931.5,a\n1,03/04/2001,2,b\n")
    result = Workbench(watched, instance, translator=translator(ALL)).materialize()
    found = evaluations(result)
    assert {name: (each.passed, each.severity) for name, each in found.items()} == dict.fromkeys(
        ("schema_drift", "lossless_integers", "unambiguous_dates", "merge_keys_unique"),
        (False, dg.AssetCheckSeverity.WARN),
    )
    changes = found["schema_drift"].metadata["pz/changes"].records
    assert {(each.data["change"], each.data["column"]) for each in changes} >= {("added", "note")}
    assert found["merge_keys_unique"].metadata["pz/extra_rows"].value == 1
    assert found["lossless_integers"].metadata["pz/columns"].value == "code"
    assert found["unambiguous_dates"].metadata["pz/formats"].records[0].data["columns"] == "born"
    assert not [event for event in result.all_events if event.event_type_value == "ASSET_OBSERVATION"]


def test_drift_that_fails_the_load_is_an_error_of_its_check(
    watched: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """The load is not materialized and the step fails, and yet the check says why."""
    watched.write("project.yml", 'name: watch\nversion: "1"\non_source_drift: fail\n')
    bench = Workbench(watched, instance)
    bench.materialize()
    watched.write("people.csv", "id,born,code,note\n1,01/02/2000,5,a\n")
    result = bench.materialize(raise_on_error=False)
    assert not result.success
    assert "PZ0331" in failure_of(result, "watch")
    check = evaluations(result)["schema_drift"]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert check.metadata["pz/policy"].value == "fail"
    assert not result.asset_materializations_for_node("watch")


def test_a_load_that_fails_for_another_reason_has_no_result(
    watched: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """Nobody looked, so nothing is claimed."""
    (watched.directory / "people.csv").unlink()
    result = Workbench(watched, instance, translator=translator(ALL)).materialize(raise_on_error=False)
    assert not result.success
    assert evaluations(result) == {}


def test_a_check_of_a_load_runs_alone(watched: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The load runs and is not reported as materialized; nothing is written."""
    bench = Workbench(watched, instance)
    selection = dg.AssetSelection.checks(dg.AssetCheckKey(LOAD, "schema_drift"))
    result = bench.materialize(selection)
    assert evaluations(result)["schema_drift"].passed
    assert not result.asset_materializations_for_node("watch")
    assert not (watched.directory / "mart.duckdb").exists()


def test_a_check_of_a_sink_needs_its_sink(watched: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """`PZ0708` before anything runs: a check alone writes nothing."""
    bench = Workbench(watched, instance, translator=translator(ALL))
    selection = dg.AssetSelection.checks(dg.AssetCheckKey(SINK, "merge_keys_unique"))
    result = bench.materialize(selection, raise_on_error=False)
    assert "PZ0708" in failure_of(result, "watch")
    assert not (watched.directory / "mart.duckdb").exists()


def test_without_its_switch_a_finding_is_an_observation(watched: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The check is one way to show it, the observation the other."""
    bench = Workbench(watched, instance, translator=translator(frozenset()))
    bench.materialize()
    watched.write("people.csv", "id,born,code,note\n1,2000-01-31,5,a\n")
    result = bench.materialize()
    (seen,) = [event for event in result.all_events if event.event_type_value == "ASSET_OBSERVATION"]
    assert seen.asset_key == LOAD
    assert evaluations(result) == {}


def test_an_unknown_switch_is_refused() -> None:
    """A misspelled check would never be seen to be missing."""
    with pytest.raises(ValueError, match=r"drfit; there are drift, merge_keys, integers, dates"):
        translator(frozenset({"drfit"}))
    with pytest.raises(ValueError, match="neither 'all' nor 'endpoints'"):
        PzTranslatorSettings(granularity="some")  # type: ignore[arg-type]
