"""The component: loading, translation, state, two of them, scaffolding, overriding."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import dagster as dg
import pytest
import yaml
from dagster.components.testing import DefsFolderSandbox, create_defs_folder_sandbox

from pz_dagster import PzProjectComponent
from pz_dagster.errors import PzDefinitionError
from pz_engine.testing.project_factory import ProjectFactory

pytestmark = [  # what Dagster's own loading of components does
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]

TYPE = "pz_dagster.PzProjectComponent"


@pytest.fixture
def sandbox() -> Iterator[DefsFolderSandbox]:
    with create_defs_folder_sandbox() as found:
        yield found


def place(sandbox: DefsFolderSandbox, shop: ProjectFactory, at: str = "shop", **attributes: Any) -> Path:
    """Put a copy of the project and a component that names it below the folder of definitions."""
    path = sandbox.defs_folder_path / at
    shutil.copytree(shop.directory, path / "pz")
    document = {"type": TYPE, "attributes": {"project": "pz", **attributes}}
    (path / "defs.yaml").write_text(yaml.safe_dump(document))
    return path


def specs_of(definitions: dg.Definitions) -> dict[str, dg.AssetSpec]:
    graph = definitions.resolve_asset_graph()
    return {
        spec.key.to_user_string(): spec
        for key in graph.materializable_asset_keys
        for spec in definitions.get_assets_def(key).specs
        if spec.key == key
    }


def materialize(definitions: dg.Definitions, instance: dg.DagsterInstance, job: str) -> dg.ExecuteInProcessResult:
    return definitions.resolve_job_def(job).execute_in_process(instance=instance)


def test_a_component_is_a_project(
    sandbox: DefsFolderSandbox, shop: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """Its path starts at the YAML file; jobs run without another resource."""
    path = place(
        sandbox, shop, op={"pool": "warehouse", "tags": {"team": "a"}, "max_retries": 2}, exclude="mart.events"
    )
    with sandbox.load_component_and_build_defs(path) as (component, definitions):
        assert isinstance(component, PzProjectComponent)
        assert set(specs_of(definitions)) == {
            "shop/src_erp__orders",
            "shop/orders_clean",
            "lake/orders",
            "shop/src_erp__events",
            "shop/events_merged",
        }
        op = definitions.get_assets_def(dg.AssetKey(["lake", "orders"])).op
        assert (op.pool, op.tags["team"]) == ("warehouse", "a")
        assert op.retry_policy == dg.RetryPolicy(max_retries=2)
        assert materialize(definitions, instance, "shop__lake_orders_job").success
        assert (path / "pz" / "out" / "orders" / "orders.parquet").exists()


def test_translation_sees_node_and_spec(sandbox: DefsFolderSandbox, shop: ProjectFactory) -> None:
    """Attributes may be templates; tags and metadata are added; a renamed key takes its edges with it."""
    translation = {
        "group_name": "finance",
        "key_prefix": "eu",
        "owners": ["ops", "a@example.com"],
        "tags": {"node": "{{ node.name }}"},
        "metadata": {"from": "{{ spec.key.path[0] }}"},
        "code_version": "{{ 7 }}",
    }
    path = place(sandbox, shop, translation=translation)
    with sandbox.load_component_and_build_defs(path) as (_, definitions):
        spec = specs_of(definitions)["eu/shop/orders_clean"]
        assert (spec.group_name, spec.code_version) == ("finance", "7")
        assert list(spec.owners) == ["team:ops", "a@example.com"]
        assert spec.tags["node"] == "orders_clean"
        assert {"daily", "pz/kind"} <= set(spec.tags)
        assert spec.metadata["from"] == "shop"
        assert [dep.asset_key.to_user_string() for dep in spec.deps] == ["eu/shop/src_erp__orders"]


def test_a_tag_that_a_node_has_not_is_left_out(sandbox: DefsFolderSandbox, shop: ProjectFactory) -> None:
    """One template stands for all assets: loads, sinks and pipelines without tags just lack it; a typo is still refused."""
    path = place(sandbox, shop, translation={"group_name": "finance", "tags": {"team": "{{ node.tags[0] }}"}})
    with sandbox.load_component_and_build_defs(path) as (_, definitions):
        specs = specs_of(definitions)
        assert {key: spec.tags["team"] for key, spec in specs.items() if "team" in spec.tags} == {
            "shop/orders_clean": "daily"
        }
        assert {spec.group_name for spec in specs.values()} == {"finance"}
    typo = place(sandbox, shop, "typo", translation={"tags": {"team": "{{ node.tag[0] }}"}})
    with pytest.raises(Exception, match="definitions for typo"), sandbox.load_component_and_build_defs(typo):
        pass


def test_checks_have_a_mode_and_severities_by_pattern(sandbox: DefsFolderSandbox, shop: ProjectFactory) -> None:
    """The first pattern that matches counts; what warns does not block, and neither does anything that is observed."""
    path = place(sandbox, shop, checks={"severity": {"*_not_null_*": "warn", "check_*": "error"}})
    observing = place(sandbox, shop, "other", checks={"mode": "observe"}, translation={"key_prefix": "o"})
    with sandbox.load_component_and_build_defs(path) as (_, definitions):
        checks = definitions.get_assets_def(dg.AssetKey(["shop", "orders_clean"])).check_specs
        assert {spec.name: spec.blocking for spec in checks} == {
            "check_orders_clean_not_null_id": False,
            "check_orders_clean_row_count": True,
        }
    with sandbox.load_component_and_build_defs(observing) as (_, definitions):
        checks = definitions.get_assets_def(dg.AssetKey(["o", "shop", "orders_clean"])).check_specs
        assert not any(spec.blocking for spec in checks)


def test_settings_and_variables_reach_the_project(sandbox: DefsFolderSandbox, shop: ProjectFactory) -> None:
    """`settings` are the translator's switches, `vars` the project's."""
    shop.write("project.yml", 'name: shop\nversion: "1"\nvars: { least: 20 }\n')
    shop.pipeline(
        "orders_clean",
        "INSERT INTO {{ sink('lake', 'orders_' ~ var('least'), format: 'csv') }}\n"
        "SELECT id FROM {{ source('erp', 'orders') }}",
    )
    path = place(sandbox, shop, vars={"least": 30}, settings={"granularity": "endpoints"})
    with sandbox.load_component_and_build_defs(path) as (_, definitions):
        keys = set(specs_of(definitions))
    assert "lake/orders_30" in keys
    assert "shop/orders_clean" not in keys


def test_two_components_of_one_location_share_nothing(
    sandbox: DefsFolderSandbox, shop: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """Projects in folders of one name have states, resources and ops of their own, and their definitions merge."""
    place(sandbox, shop, "north/shop", resource={"threads": 1})
    south = ProjectFactory(shop.directory.parent / "south", 'name: south\nversion: "1"\n')
    south.connections("files: { connector: localfiles, root: . }")
    south.pipeline("ones", "INSERT INTO {{ sink('files', 'ones', format: 'csv') }}\nSELECT 1 AS id")
    place(sandbox, south, "south/shop", resource={"threads": 2})
    with sandbox.build_component_tree() as tree:
        components = [tree.load_component(sandbox.defs_folder_path / each / "shop") for each in ("north", "south")]
        keys = [each.defs_state_config.key for each in components]  # type: ignore[attr-defined]
        assert keys == ["PzProjectComponent[north/shop]", "PzProjectComponent[south/shop]"]
        definitions = tree.build_defs()
        assert len([key for key in definitions.resources or {} if key.startswith(("pz_north_", "pz_south_"))]) == 2
        assert {"files/ones", "lake/orders"} <= set(specs_of(definitions))
        assert materialize(definitions, instance, "south_job").success


def test_state_is_what_definitions_are_built_from(
    sandbox: DefsFolderSandbox, shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a refresh nothing is compiled; another refresh sees what changed; an unreadable state is no state."""
    path = place(sandbox, shop)
    compiled: list[Path] = []
    from pz_dagster.project import PzProject

    original = PzProject._compile
    monkeypatch.setattr(PzProject, "_compile", lambda self: (compiled.append(self.root), original(self))[1])
    with sandbox.load_component_and_build_defs(path) as (component, _):
        assert isinstance(component, PzProjectComponent)
        asyncio.run(component.refresh_state(sandbox.project_root))
        (state,) = sandbox.defs_folder_path.glob(".local_defs_state/*/state")
        first = state.read_text()
        assert json.loads(first)["project"] == "shop"
        (path / "pz/pipelines/late.sql").write_text("SELECT id FROM {{ ref('orders_clean') }}")
        compiled.clear()
        with sandbox.load_component_and_build_defs(path) as (_, definitions):
            assert "shop/late" not in specs_of(definitions)
        assert compiled == []
        asyncio.run(component.refresh_state(sandbox.project_root))
        with sandbox.load_component_and_build_defs(path) as (_, definitions):
            assert "shop/late" in specs_of(definitions)
        assert str(sandbox.project_root) not in state.read_text()
        state.write_text("{}")
        with sandbox.load_component_and_build_defs(path) as (_, definitions):
            assert "shop/late" in specs_of(definitions)


def test_a_state_holds_no_secret(
    sandbox: DefsFolderSandbox, shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`${NAME}` stays a name, in the state and in what is built from it."""
    monkeypatch.setenv("LAKE_PASSWORD", "s3cr3t pa'ss@word")
    text = (shop.directory / "connections.yml").read_text()
    shop.write("connections.yml", text.replace("path: mart.duckdb", "path: ${LAKE_PASSWORD}/mart.duckdb"))
    path = place(sandbox, shop, resource={"env": {"OTHER": "s3cr3t too"}})
    with sandbox.load_component_and_build_defs(path) as (component, _):
        assert isinstance(component, PzProjectComponent)
        asyncio.run(component.refresh_state(sandbox.project_root))
    (state,) = sandbox.defs_folder_path.glob(".local_defs_state/*/state")
    with sandbox.load_component_and_build_defs(path) as (component, definitions):
        specs = [each.specs for each in definitions.assets or [] if isinstance(each, dg.AssetsDefinition)]
        for shown in (state.read_text(), repr(component), repr(specs), repr(definitions.resources)):
            assert "s3cr3t" not in shown


def test_a_broken_project_stops_an_image_build_and_no_development(
    sandbox: DefsFolderSandbox, shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refresh names every problem; under `dagster dev` the placeholder shows them."""
    shop.sidecar("orders_clean", "checks:\n  - not_nul: [id]\n")
    path = place(sandbox, shop)
    with sandbox.load_component_and_build_defs(path) as (component, definitions):
        assert isinstance(component, PzProjectComponent)
        assert set(specs_of(definitions)) == {"shop/pz_errors"}
        with pytest.raises(PzDefinitionError, match="PZ0113"):
            asyncio.run(component.refresh_state(sandbox.project_root))
        monkeypatch.setenv("DAGSTER_IS_DEV_CLI", "1")
        asyncio.run(component.refresh_state(sandbox.project_root))
    monkeypatch.delenv("DAGSTER_IS_DEV_CLI")
    with sandbox.load_component_and_build_defs(path) as (_, definitions):
        assert set(specs_of(definitions)) == {"shop/pz_errors"}


OVERRIDES = """
import dagster as dg
from pz_dagster import PzProjectComponent

class House(PzProjectComponent):
    def get_asset_spec(self, node):
        return super().get_asset_spec(node).replace_attributes(owners=["team:house"])

    def get_asset_check_spec(self, node):
        spec = super().get_asset_check_spec(node)
        return dg.AssetCheckSpec(spec.name, asset=spec.asset_key, description="ours", blocking=False)

    def execute(self, context, invocation):
        context.log.info("before")
        yield from invocation.stream()
        context.log.info(f"after {invocation.outcome.status.value}")
"""


def test_a_subclass_changes_specs_and_what_an_op_does(
    sandbox: DefsFolderSandbox, shop: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """The three methods that are there to be overridden."""
    path = place(sandbox, shop)
    (sandbox.defs_folder_path.parent / "house.py").write_text(OVERRIDES)
    text = (path / "defs.yaml").read_text()
    (path / "defs.yaml").write_text(text.replace(TYPE, f"{sandbox.project_name}.house.House"))
    with sandbox.load_component_and_build_defs(path) as (_, definitions):
        specs = specs_of(definitions)
        assert {owner for spec in specs.values() for owner in spec.owners} == {"team:house"}
        checks = definitions.get_assets_def(dg.AssetKey(["shop", "orders_clean"])).check_specs
        assert {(spec.description, spec.blocking) for spec in checks} == {("ours", False)}
        result = materialize(definitions, instance, "shop__lake_orders_job")
        messages = [each.user_message for each in instance.all_logs(result.run_id)]
        assert [each for each in messages if each == "before" or each.startswith("after")] == [
            "before",
            "after success",
        ]


def test_scaffold_then_materialize(sandbox: DefsFolderSandbox, instance: dg.DagsterInstance) -> None:
    """A template makes a project beside the YAML, and it runs as it comes."""
    path = sandbox.scaffold_component(PzProjectComponent, "rides", scaffold_params={"template": "sample"})
    assert yaml.safe_load((path / "defs.yaml").read_text())["attributes"] == {"project": "rides"}
    with sandbox.load_component_and_build_defs(path) as (_, definitions):
        for job in definitions.jobs or []:
            assert materialize(definitions, instance, job.name).success
    assert list((path / "rides" / "output").rglob("*.parquet"))


def test_scaffolding_around_a_project_and_what_is_refused(
    sandbox: DefsFolderSandbox, shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is written relative to the YAML; a place without a project, or both options, is a clear refusal."""
    monkeypatch.chdir(shop.directory.parent)
    path = sandbox.scaffold_component(PzProjectComponent, "around", scaffold_params={"project_path": "shop"})
    written = yaml.safe_load((path / "defs.yaml").read_text())["attributes"]["project"]
    assert (path / written).samefile(shop.directory)
    with sandbox.load_component_and_build_defs(path) as (_, definitions):
        assert "lake/orders" in specs_of(definitions)
    for params, words in (
        ({"project_path": "nowhere"}, "no project.yml in nowhere"),
        ({"project_path": "shop", "template": "sample"}, "exclude each other"),
        ({"template": "sampel"}, "PZ0131"),
    ):
        with pytest.raises(click.ClickException, match=words):
            sandbox.scaffold_component(PzProjectComponent, "refused", scaffold_params=params)


def test_the_registry_finds_the_component() -> None:
    """`dg` looks for modules behind this entry point."""
    entries = importlib.metadata.entry_points(group="dagster_dg_cli.registry_modules")
    assert "pz_dagster" in {entry.value for entry in entries}
    assert "PzProjectComponent" in dir(__import__("pz_dagster"))
