"""Translations that meet an edit, a second load, an odd folder, a cut selection, or a name of the translator's own."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, PzTranslator, PzTranslatorSettings, build_pz_assets, build_pz_definitions
from pz_dagster.errors import PzDefinitionError
from pz_dagster.keys import fold
from pz_dagster.translation import translate
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_attributes import Rich
from tests.dagster.test_lineage import deps
from tests.dagster.test_materialize import materialized
from tests.dagster.test_translation import specs_of


def test_a_translator_sees_an_edited_project_anew(shop: ProjectFactory) -> None:
    """What it said of the files before is forgotten with them."""
    translator = PzTranslator()
    assert "shop/more" not in specs_of(shop, translator=translator)
    shop.pipeline("more", "SELECT id FROM {{ ref('orders_clean') }}")
    assert "shop/more" in specs_of(shop, translator=translator)


def test_a_severity_is_asked_for_once(shop: ProjectFactory) -> None:
    """However many results need it."""
    project, translator = PzProject(shop.directory), Rich()
    view = translate(translator, project.snapshot)
    node: Any = project.snapshot.compiled.graph.by_name["check_orders_clean_row_count"]
    assert {view.severity(node), view.severity(node)} == {dg.AssetCheckSeverity.WARN}
    assert translator.asked["severity", node.name] == 1


def test_folders_of_a_group_are_folded(shop: ProjectFactory) -> None:
    """Dagster takes letters, digits and `_` in each part."""
    shop.write("pipelines/my marts/größe/late.sql", "SELECT id FROM {{ ref('orders_clean') }}")
    translator = PzTranslator(PzTranslatorSettings(group_by_folder=True))
    assert specs_of(shop, translator=translator)["shop/late"].group_name == "shop/my_marts/gr__e"


def test_sql_with_fences_is_fenced_by_more(shop: ProjectFactory) -> None:
    """A description stays one block of code."""
    shop.pipeline("odd", "SELECT '```' AS a FROM {{ ref('orders_clean') }}")
    description = specs_of(shop)["shop/odd"].description or ""
    assert description.startswith("````sql\n")
    assert description.endswith("\n````")


def test_checks_that_a_translator_names_alike_are_refused(shop: ProjectFactory) -> None:
    """A dot passes Dagster's own look at names and ends as `_`."""

    class Naming(PzTranslator):
        def get_check_spec(self, node: Any, snapshot: Any, asset: dg.AssetKey, *, is_gate: bool) -> dg.AssetCheckSpec:
            return dg.AssetCheckSpec("a.b" if "not_null" in node.name else "a_b", asset=asset)

    with pytest.raises(PzDefinitionError, match="PZ0702"):
        build_pz_assets(PzProject(shop.directory), translator=Naming())


def test_loading_a_project_again_is_no_collision(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its own keys are its own, while the definitions before are still there."""
    lonely = ProjectFactory(tmp_path / "lonely", 'name: lonely\nversion: "1"\n')
    lonely.connections("alone: { connector: localfiles, root: . }")
    lonely.pipeline("ones", "INSERT INTO {{ sink('alone', 'ones', format: 'csv') }}\nSELECT 1 AS id")
    with caplog.at_level(logging.WARNING, "pz_dagster"):
        kept = [build_pz_definitions(PzProject(lonely.directory)) for _ in range(2)]
    assert len(kept) == 2
    assert "PZ0702" not in caplog.text


class Mapped(PzTranslator):
    """Maps partitions on one edge, and gives checks what a subclass may give them."""

    def get_asset_spec(self, node: Any, snapshot: Any, keys: Any) -> dg.AssetSpec:
        spec = super().get_asset_spec(node, snapshot, keys)
        return spec.replace_attributes(
            deps=[dg.AssetDep(dep.asset_key, partition_mapping=dg.LastPartitionMapping()) for dep in spec.deps]
        )

    def get_check_spec(self, node: Any, snapshot: Any, asset: dg.AssetKey, *, is_gate: bool) -> dg.AssetCheckSpec:
        return dg.AssetCheckSpec(
            fold(node.name),
            asset=asset,
            additional_deps=[dg.AssetKey("calendar")],
            automation_condition=dg.AutomationCondition.eager(),
            metadata={"team": "a"},
        )


def test_what_a_translator_adds_to_specs_is_kept(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Partition mappings of edges; dependencies, conditions and metadata of checks, which are still found and evaluated."""
    bench = Workbench(shop, instance, translator=Mapped())
    (flow, _) = sorted(bench.assets, key=lambda each: str(each.op.name))
    sink = flow.specs_by_key[dg.AssetKey(["lake", "orders"])]
    assert [dep.partition_mapping for dep in sink.deps] == [dg.LastPartitionMapping()]
    for spec in flow.check_specs:
        assert [dep.asset_key for dep in spec.additional_deps] == [dg.AssetKey("calendar")]
        assert spec.automation_condition == dg.AutomationCondition.eager()
        assert spec.metadata["team"] == "a"
    result = dg.materialize([flow], instance=instance, resources=bench.definitions.resources)
    assert [each.passed for each in result.get_asset_check_evaluations()] == [True, True]


def test_a_check_above_two_loads_hangs_on_the_first(shop: ProjectFactory) -> None:
    """Of several nearest assets the one that comes first in the project's order, so that it stays where it is."""
    shop.pipeline(
        "joined",
        "INSERT INTO {{ sink('lake', 'joined', format: 'csv') }}\nSELECT o.id FROM {{ source('erp', 'orders') }} AS o, "
        "{{ source('erp', 'names', path: 'events.csv', columns: { id: 'int' }) }} AS n",
    )
    shop.sidecar("joined", "checks:\n  - unique: [id]\n")
    project = PzProject(shop.directory)
    translator = PzTranslator(PzTranslatorSettings(granularity="endpoints"))
    (check,) = [
        spec
        for each in build_pz_assets(project, translator=translator)
        for spec in each.check_specs
        if "joined" in spec.name
    ]
    order = [node.name for node in project.snapshot.compiled.nodes if node.name.startswith("src_erp__")]
    first = next(name for name in order if name in ("src_erp__orders", "src_erp__names"))
    assert check.asset_key == dg.AssetKey(["shop", first])


def test_lineage_of_a_cut_flow_leaves_out_what_is_not_there(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A column that leads to a node without an asset is unknown; the rest runs."""
    translator = PzTranslator(PzTranslatorSettings(column_lineage=True))
    result = Workbench(shop, instance, select="lake.orders", translator=translator).materialize()
    assert deps(result) == {"lake/orders": None}


def test_a_selected_sink_brings_nothing_that_it_was_not_asked_for(
    shop: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """Its ancestors get a line each and a count at the end, and no event of their own."""
    result = Workbench(shop, instance).materialize(dg.AssetSelection.assets(["lake", "orders"]).without_checks())
    assert materialized(result) == {"lake/orders"}
    assert not result.get_asset_observation_events()
    lines = [each.user_message for each in instance.all_logs(result.run_id)]
    for name in ("src_erp__orders", "orders_clean"):
        assert len([each for each in lines if f"{name} " in each and "(not selected, ran as an ancestor)" in each]) == 1
    assert "2 unselected ancestor(s) ran and are not reported as materialized" in lines
