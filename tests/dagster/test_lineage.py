"""Column lineage on materializations."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, PzTranslator, PzTranslatorSettings, lineage
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench


def deps(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, set[str]] | None]:
    found: dict[str, dict[str, set[str]] | None] = {}
    for event in result.all_events:
        if event.is_step_materialization:
            metadata: Any = event.step_materialization_data.materialization.metadata
            value = metadata.get("dagster/column_lineage")
            found[event.asset_key.to_user_string()] = value and {
                column: {f"{dep.asset_key.to_user_string()}.{dep.column_name}" for dep in sources}
                for column, sources in value.value.deps_by_column.items()
            }
    return found


LINEAGE = PzTranslator(PzTranslatorSettings(column_lineage=True, key_prefix=("eu",)))


def test_columns_point_to_the_columns_behind_them(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Keys are the final ones; a constant depends on nothing; loads have no lineage."""
    shop.pipeline(
        "orders_clean",
        "INSERT INTO {{ sink('lake', 'orders', format: 'parquet', strategy: 'replace') }}\n"
        "SELECT id, id + amount AS both, 1 AS one FROM {{ source('erp', 'orders') }}",
    )
    found = deps(Workbench(shop, instance, translator=LINEAGE).materialize())
    load = "eu/shop/src_erp__orders"
    assert found["eu/shop/orders_clean"] == {
        "id": {f"{load}.id"},
        "both": {f"{load}.id", f"{load}.amount"},
        "one": set(),
    }
    assert found["eu/lake/orders"] == {name: {f"eu/shop/orders_clean.{name}"} for name in ("id", "both", "one")}
    assert found[load] is None


def test_unknown_columns_are_left_out(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """An undeclared source hides what a star means; a sink still says which of the pipeline's known columns it writes."""
    shop.write("in/loose.csv", "id,note\n1,a\n")
    read = "{{ source('erp', 'loose', path: 'loose.csv') }}"
    shop.pipeline("starred", f"INSERT INTO {{{{ sink('lake', 'starred', format: 'csv') }}}}\nSELECT * FROM {read}")
    shop.pipeline(
        "picked", "SELECT s.note AS note, o.id AS id FROM {{ ref('starred') }} AS s, {{ ref('orders_clean') }} AS o"
    )
    found = deps(Workbench(shop, instance, translator=LINEAGE).materialize())
    assert found["eu/shop/starred"] is None
    assert found["eu/lake/starred"] is None
    picked = found["eu/shop/picked"]
    assert picked is not None
    assert picked["id"] == {"eu/shop/orders_clean.id"}


def test_lineage_is_opt_in(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Nothing shows it in open source Dagster."""
    assert set(deps(Workbench(shop, instance).materialize()).values()) == {None}


def test_lineage_that_cannot_be_traced_stops_nothing(
    shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure in there is a warning; the assets are what matters."""
    import pz_engine

    def fail(_: object) -> None:
        raise RuntimeError("deep")

    monkeypatch.setattr(pz_engine, "column_lineage", fail)
    assert lineage.trace_columns(PzProject(shop.directory).snapshot.compiled) == {}
    assert "column lineage is left out" in caplog.text
