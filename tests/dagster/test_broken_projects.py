"""A project that does not compile never takes its code location down."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, PzResource, build_pz_assets, build_pz_definitions, pz_assets
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.test_failures import failure_of


@pytest.fixture
def broken(shop: ProjectFactory) -> ProjectFactory:
    shop.sidecar("orders_clean", "checks:\n  - not_nul: [id]\n")
    return shop


def test_an_unreadable_project_is_named_after_its_folder(shop: ProjectFactory) -> None:
    """Even its name is unknown then."""
    shop.write("project.yml", "name: [\n")
    (placeholder,) = build_pz_assets(PzProject(shop.directory))
    assert placeholder.key == dg.AssetKey(["shop", "pz_errors"])
    assert placeholder.specs_by_key[placeholder.key].tags["pz/status"] == "broken"


def test_definitions_with_selections_load_too(broken: ProjectFactory) -> None:
    """A selection cannot match what did not compile; each call has a placeholder of its own."""
    project = PzProject(broken.directory)
    first = build_pz_assets(project, select="tag:daily")
    second = build_pz_assets(project, select="mart.events", exclude="lake.orders")

    @pz_assets(project=project, select="+lake.orders")
    def daily(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        yield from pz.run(context=context).stream()

    graph = dg.Definitions(assets=[*first, *second, daily], resources={"pz": PzResource()}).resolve_asset_graph()
    assert len(graph.get_all_asset_keys()) == 3


def test_a_body_of_your_own_fails_with_the_problems(broken: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Nothing runs, whether a good compile is known or not."""

    @pz_assets(project=PzProject(broken.directory))
    def daily(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        yield from pz.run(context=context).stream()

    result = dg.materialize([daily], instance=instance, resources={"pz": PzResource()}, raise_on_error=False)
    assert "PZ0707" in failure_of(result, "daily")
    assert "PZ0113" in failure_of(result, "daily")


def test_every_op_of_a_last_good_project_fails_before_data_moves(
    shop: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """Descriptions say how many problems there are; jobs stay; the fixed project is whole again."""
    project = PzProject(shop.directory)
    project.prepare()
    good = (shop.directory / "pipelines" / "configs" / "orders_clean.yml").read_text()
    shop.sidecar("orders_clean", "checks:\n  - not_nul: [id]\n")
    definitions = build_pz_definitions(project)
    assets = [each for each in definitions.assets or [] if isinstance(each, dg.AssetsDefinition)]
    descriptions = [
        spec.description or "" for each in assets for spec in each.specs if spec.key.path[-1] != "pz_errors"
    ]
    assert len(descriptions) == 6
    assert all(text.startswith("**The project has 1 problem(s).**") for text in descriptions)
    assert sorted(job.name for job in definitions.jobs or []) == ["shop__lake_orders_job", "shop__mart_events_job"]
    result = dg.materialize(assets, instance=instance, resources=definitions.resources, raise_on_error=False)
    failed = {event.step_key for event in result.all_events if event.is_step_failure}
    assert failed == {"shop__lake_orders", "shop__mart_events", "shop__pz_errors"}
    assert not (shop.directory / ".pz" / "runs").exists()
    shop.write("pipelines/configs/orders_clean.yml", good)
    assert not project.snapshot.compiled.problems


def test_problems_are_logged_once(broken: ProjectFactory, caplog: pytest.LogCaptureFixture) -> None:
    """At error level, with place and next step."""
    project = PzProject(broken.directory)
    build_pz_definitions(project)
    build_pz_definitions(project)
    lines = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(lines) == 1
    assert "pipelines/configs/orders_clean.yml:3" in lines[0].getMessage()


def test_a_broken_project_keeps_its_own_name(shop: ProjectFactory) -> None:
    """The placeholder is named after `project.yml`, not after the folder, so two broken projects can stand side by side."""
    shop.write("project.yml", 'name: storefront\nversion: "1"\n')
    shop.pipeline("orders_clean", "SELECT * FROM {{ ref('nothing') }}")
    definitions = build_pz_definitions(PzProject(shop.directory))
    keys = {key.to_user_string() for each in definitions.assets or [] for key in each.keys}  # type: ignore[union-attr]
    assert keys == {"storefront/pz_errors"}
