"""Checks as asset checks: specs, gate and observe, severity, samples, checks that could not run."""

from __future__ import annotations

import dagster as dg
import pytest

from pz_dagster import PzTranslator, PzTranslatorSettings
from pz_dagster.snapshot import Snapshot
from pz_engine import CheckNode
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_failures import failure_of
from tests.dagster.test_materialize import materialized

SECRET = "a-row-value-nobody-shall-see"


class Warn(PzTranslator):
    """Checks that only warn."""

    def get_check_severity(self, node: CheckNode, snapshot: Snapshot) -> dg.AssetCheckSeverity:
        return dg.AssetCheckSeverity.WARN


@pytest.fixture
def failing(shop: ProjectFactory) -> ProjectFactory:
    """Both an accepted_values and a row_count check fail; the sink is the only consumer."""
    shop.write("in/orders.csv", f"id,note\n1,{SECRET}\n")
    text = (shop.directory / "connections.yml").read_text()
    shop.write("connections.yml", text.replace("amount: int", "note: varchar"))
    shop.pipeline(
        "orders_clean",
        "INSERT INTO {{ sink('lake', 'orders', format: 'parquet', strategy: 'replace') }}\n"
        "SELECT id, note FROM {{ source('erp', 'orders') }}",
    )
    shop.sidecar(
        "orders_clean",
        """
        checks:
          - accepted_values: { column: note, values: [fine, better] }
          - row_count: { min: 100 }
        """,
    )
    return shop


def evaluations(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    return {each.check_name.rpartition("orders_clean_")[2]: each for each in result.get_asset_check_evaluations()}


def test_a_spec_describes_its_check_without_the_values(failing: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Type, columns and bounds are shown, accepted values are not; ERROR checks block when they gate."""
    bench = Workbench(failing, instance)
    specs = {spec.name.rpartition("orders_clean_")[2]: spec for each in bench.assets for spec in each.check_specs}
    assert specs["accepted_values_note"].description == "accepted_values on `note`"
    assert specs["row_count"].description == "row_count: min 100"
    assert all(spec.blocking for spec in specs.values())
    observed = Workbench(failing, instance, checks="observe")
    assert not any(spec.blocking for each in observed.assets for spec in each.check_specs)


def test_violations_are_counted_and_samples_stay_behind(failing: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A count is no row value and is shown; sampled rows are not, here or in the failure."""
    result = Workbench(failing, instance).materialize(raise_on_error=False)
    found = evaluations(result)
    values = found["accepted_values_note"]
    assert not values.passed
    assert values.severity is dg.AssetCheckSeverity.ERROR
    assert values.metadata["pz/violations"].value == 1
    assert values.metadata["pz/error_code"].value == "PZ0510"
    assert values.description == "check accepted_values on staging.orders_clean found 1 violation(s)"
    assert found["row_count"].description.endswith("the relation has 1 row(s), expected at least 100")
    text = failure_of(result, "shop__lake_orders")
    assert "lake.orders" in text
    assert SECRET not in str([event.message for event in result.all_events]) + text


def test_samples_are_shown_when_asked_for(failing: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """`expose_check_samples` opens them."""
    translator = PzTranslator(PzTranslatorSettings(expose_check_samples=True))
    result = Workbench(failing, instance, translator=translator).materialize(raise_on_error=False)
    assert SECRET in (evaluations(result)["accepted_values_note"].description or "")


def test_a_check_that_warns_blocks_nothing(failing: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """WARN results fail no step and skip no consumer, in gate mode too."""
    bench = Workbench(failing, instance, translator=Warn())
    assert not any(spec.blocking for each in bench.assets for spec in each.check_specs)
    result = bench.materialize(raise_on_error=False)
    assert result.success
    assert "lake/orders" in materialized(result)
    assert {each.severity for each in result.get_asset_check_evaluations()} == {dg.AssetCheckSeverity.WARN}


@pytest.mark.parametrize("declared", ["gate", "observe"])
def test_one_launch_may_only_observe(failing: ProjectFactory, instance: dg.DagsterInstance, declared: str) -> None:
    """The config key wins over the definitions: the sink lands, the step succeeds, the checks show as failed."""
    bench = Workbench(failing, instance, checks=declared)
    config = {"ops": {"shop__lake_orders": {"config": {"checks": "observe"}}}}
    result = bench.materialize(run_config=config, raise_on_error=False)
    assert result.success
    assert "lake/orders" in materialized(result)
    assert not any(each.passed for each in result.get_asset_check_evaluations())


def test_one_launch_may_gate(failing: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The other way round, and a word that is neither is refused before data moves."""
    bench = Workbench(failing, instance, checks="observe")
    config = {"ops": {"shop__lake_orders": {"config": {"checks": "gate"}}}}
    result = bench.materialize(run_config=config, raise_on_error=False)
    assert not result.success
    assert "lake/orders" not in materialized(result)
    config["ops"]["shop__lake_orders"]["config"]["checks"] = "gat"
    refused = bench.materialize(run_config=config, raise_on_error=False)
    assert "'gate' nor 'observe'" in failure_of(refused, "shop__lake_orders")


def test_a_gating_check_without_consumers_fails_the_step(failing: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Nothing was skipped, and yet what is downstream in Dagster must not run."""
    bench = Workbench(failing, instance)
    result = bench.materialize(dg.AssetSelection.assets(["shop", "orders_clean"]), raise_on_error=False)
    assert not result.success
    assert materialized(result) == {"shop/orders_clean"}
    assert "check_orders_clean_row_count: PZ0510" in failure_of(result, "shop__lake_orders")


def test_a_check_that_cannot_run_is_an_error(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """It is not evaluated: no violations are claimed, and the failure lists it, even when checks only warn."""
    shop.sidecar(
        "orders_clean",
        "checks:\n  - custom_sql: { name: odd, sql: \"SELECT error('kaputt') FROM staging.orders_clean\" }\n",
    )
    result = Workbench(shop, instance, translator=Warn()).materialize(raise_on_error=False)
    assert not result.success
    (found,) = result.get_asset_check_evaluations()
    assert found.metadata["pz/evaluated"].value is False
    assert "pz/violations" not in found.metadata
    assert found.severity is dg.AssetCheckSeverity.ERROR
    assert "check_orders_clean_odd: PZ0" in failure_of(result, "shop__lake_orders")


def test_fail_fast_never_ends_green_with_something_skipped(
    failing: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """Observing a failed check while failing fast stops the run, so the op fails."""
    bench = Workbench(failing, instance, checks="observe", op_per="project")
    config = {"ops": {"shop": {"config": {"fail_fast": True}}}}
    result = bench.materialize(run_config=config, raise_on_error=False)
    landed = {"lake/orders", "mart/events"} & materialized(result)
    assert result.success == (len(landed) == 2)
