"""What the example's definitions do in Dagster: the gate, the backlog, and nothing that starts by itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster.doctor import instance_findings, pool_findings
from tests.dagster.test_golden_specs import example_definitions


def materialize(
    definitions: dg.Definitions, instance: dg.DagsterInstance, *sinks: str, **options: Any
) -> dg.ExecuteInProcessResult:
    keys = [dg.AssetKey(sink.split("/")) for sink in sinks]
    return dg.materialize(
        [each for each in definitions.assets or [] if isinstance(each, dg.AssetsDefinition)],
        instance=instance,
        resources=definitions.resources,
        selection=dg.AssetSelection.assets(*keys).upstream(),
        **options,
    )


def test_the_variable_fails_the_check_and_skips_the_consumers(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mart lands in staging, its row count fails, no output is written."""
    monkeypatch.setenv("PZ_EXAMPLE_BREAK", "1")
    definitions = example_definitions(tmp_path, data=True)
    result = materialize(
        definitions, instance, "lake/flight_delays", "lake/carrier_months", "lake/route_months", raise_on_error=False
    )
    assert not result.success
    failed = [each.check_name for each in result.get_asset_check_evaluations() if not each.passed]
    assert failed == ["check_flight_delays_row_count"]
    landed = {each.asset_key.to_user_string() for each in result.get_asset_materialization_events()}  # type: ignore[union-attr]
    assert "flights/flight_delays" in landed
    assert not [key for key in landed if key.startswith("lake/")]
    assert not (tmp_path / "example" / "output").exists()


def test_the_sensor_works_off_the_history(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    """It asks for one run a window, five in all counting the one that starts it, and then for none."""
    definitions = example_definitions(tmp_path, data=True)
    (sensor,) = definitions.sensors or []
    assert isinstance(sensor, dg.SensorDefinition)
    asked = []
    with dg.build_sensor_context(instance=instance, definitions=definitions) as context:
        for _ in range(6):
            ticks = sensor.evaluate_tick(context).run_requests or []
            if asked and not ticks:
                break
            asked.append([each.run_key for each in ticks])
            materialize(definitions, instance, "history/hourly_departures")
    assert asked[0] == []
    assert len(asked) == 5
    assert len({key for tick in asked[1:] for key in tick}) == 4


def test_the_instance_settings_are_the_recommended_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor has no advice for the instance of `make demo` and `make dev`, pools included."""
    definitions = example_definitions(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(tmp_path / "example" / "dagster.yaml", home)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    pools = [each.op.pool for each in definitions.assets or [] if isinstance(each, dg.AssetsDefinition)]
    with dg.DagsterInstance.get() as instance:
        found = [*instance_findings(instance), *pool_findings(instance, [pool for pool in pools if pool])]
    assert len(found) == 12
    assert [str(each) for each in found if each.status != "ok"] == []


def test_nothing_starts_by_itself(tmp_path: Path) -> None:
    """Whoever opens the example decides what runs."""
    definitions = example_definitions(tmp_path)
    timed = [*(definitions.schedules or []), *(definitions.sensors or [])]
    assert len(timed) == 3
    assert {each.default_status.value for each in timed} == {"STOPPED"}  # type: ignore[union-attr]
