"""What a component's attributes do beyond the first page: one op, a selection, edges, names, templates that give a spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.testing import DefsFolderSandbox

from pz_dagster import PzResource
from pz_dagster.component_models import ProjectPlace
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.test_component import place, pytestmark, sandbox, specs_of  # noqa: F401 - a fixture and what loading needs


def test_one_op_a_selection_and_a_resource(
    sandbox: DefsFolderSandbox,  # noqa: F811
    shop: ProjectFactory,
    instance: dg.DagsterInstance,
) -> None:
    """`op: {per: project}`, `select`, `resource` and `state_dir` reach what runs."""
    path = place(
        sandbox,
        shop,
        op={"per": "project", "max_retries": 1, "retry_delay": 60},
        select="+orders_clean+ +events_merged",
        resource={"threads": 3},
        state_dir="elsewhere",
    )
    with sandbox.load_component_and_build_defs(path) as (_, definitions):
        assert "mart/events" not in specs_of(definitions)
        sink = definitions.get_assets_def(dg.AssetKey(["lake", "orders"]))
        assert sink is definitions.get_assets_def(dg.AssetKey(["shop", "events_merged"]))
        assert sink.op.name == "shop"
        assert sink.op.retry_policy == dg.RetryPolicy(max_retries=1, delay=60)
        (resource,) = [each for key, each in (definitions.resources or {}).items() if key.startswith("pz_shop")]
        assert isinstance(resource, PzResource)
        assert resource.threads == 3
        assert definitions.resolve_job_def("shop_job").execute_in_process(instance=instance).success
    assert (path / "pz" / "elsewhere" / "runs").is_dir()
    assert not (path / "pz" / ".pz" / "runs").exists()


def test_edges_and_keys_may_be_written(sandbox: DefsFolderSandbox, shop: ProjectFactory) -> None:  # noqa: F811
    """Keys as text with slashes; tags that are numbers become text."""
    translation: dict[str, Any] = {
        "key": "{{ 'house/' ~ node.name if node.kind.value == 'Pipeline' else spec.key.to_user_string() }}",
        "deps": ["one/upstream"],
        "tags": {"year": "2026"},
    }
    path = place(sandbox, shop, translation=translation)
    with sandbox.load_component_and_build_defs(path) as (_, definitions):
        specs = specs_of(definitions)
        assert "house/orders_clean" in specs
        assert {dep.asset_key for spec in specs.values() for dep in spec.deps} == {dg.AssetKey(["one", "upstream"])}
        assert {spec.tags["year"] for spec in specs.values()} == {"2026"}


def test_partitions_do_not_hide_in_a_translation(sandbox: DefsFolderSandbox, shop: ProjectFactory) -> None:  # noqa: F811
    """The engine would not cut by them, so the attribute that does is named."""
    daily = {"type": "daily", "start_date": "2026-01-01"}
    path = place(sandbox, shop, translation={"partitions_def": daily})
    with (
        pytest.raises(Exception, match="definitions for shop") as caught,
        sandbox.load_component_and_build_defs(path),
    ):
        pass
    assert "use the attribute 'partitions'" in str(caught.value.__cause__)


def test_names_that_fold_to_one_text_have_resources_of_their_own() -> None:
    """Two folders that differ in a dash only."""
    keys = {ProjectPlace(Path("x"), name).resource_key for name in ("a-b", "a_b", "a/b")}
    assert len(keys) == 3
    assert "pz_a_b" in keys


def test_a_scaffold_without_a_template_is_the_smallest(
    sandbox: DefsFolderSandbox,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And it loads."""
    from pz_dagster import PzProjectComponent

    path = sandbox.scaffold_component(PzProjectComponent, "small", scaffold_params={})
    with sandbox.load_component_and_build_defs(path) as (_, definitions):
        assert "pz_errors" not in " ".join(specs_of(definitions))


def test_two_components_of_one_project_stand_side_by_side(
    sandbox: DefsFolderSandbox,  # noqa: F811
    shop: ProjectFactory,
    instance: dg.DagsterInstance,
) -> None:
    """Each defines a part of it, with a state, a resource and ops of its own; the project's copy of its state is one asset."""
    first = place(sandbox, shop, "north", select="+lake.orders")
    second = sandbox.defs_folder_path / "south"
    second.mkdir()
    text = (first / "defs.yaml").read_text()
    (second / "defs.yaml").write_text(
        text.replace("project: pz", "project: ../north/pz").replace("+lake.orders", "+mart.events")
    )
    with sandbox.build_component_tree() as tree:
        components: list[Any] = [tree.load_component(path) for path in (first, second)]
        assert len({each.defs_state_config.key for each in components}) == 2
        assert len({each.project.resource_key for each in components}) == 2
        definitions = tree.build_defs()
        assert {"lake/orders", "mart/events"} <= set(specs_of(definitions))
        assert dg.AssetKey(["shop", "pz_state"]) in definitions.resolve_asset_graph().get_all_asset_keys()
        for unit in ("shop__lake_orders", "shop__mart_events"):
            assert definitions.resolve_job_def(f"{unit}_job").execute_in_process(instance=instance).success


def test_a_translation_may_be_one_template(sandbox: DefsFolderSandbox, shop: ProjectFactory) -> None:  # noqa: F811
    """It gives the spec itself, from the one there is and the node."""
    path = place(sandbox, shop, translation="{{ spec.merge_attributes(tags={'is': node.name}) }}")
    with sandbox.load_component_and_build_defs(path) as (_, definitions):
        spec = specs_of(definitions)["shop/orders_clean"]
        assert (spec.tags["is"], spec.tags["pz/kind"]) == ("orders_clean", "Pipeline")
