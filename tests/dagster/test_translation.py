"""Nodes as specs: keys, edges, groups, tags, descriptions, collisions."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import dagster as dg
import pytest

from pz_dagster import PzProject, PzTranslator, PzTranslatorSettings, build_pz_assets, build_pz_definitions
from pz_dagster.errors import PzDefinitionError
from pz_dagster.snapshot import Snapshot
from pz_engine import CheckNode, Node, PipelineNode, SinkWriteNode, SourceLoadNode
from pz_engine.testing.project_factory import ProjectFactory


def specs_of(factory: ProjectFactory, **options: object) -> dict[str, dg.AssetSpec]:
    found = build_pz_assets(PzProject(factory.directory), **options)  # type: ignore[arg-type]
    return {spec.key.to_user_string(): spec for each in found for spec in each.specs}


def deps_of(spec: dg.AssetSpec) -> list[str]:
    return [dep.asset_key.to_user_string() for dep in spec.deps]


def test_keys_join_flows_without_configuration(shop: ProjectFactory) -> None:
    """Loads and pipelines are below the project, sinks and what loads read below the connection."""
    specs = specs_of(shop)
    assert deps_of(specs["lake/orders"]) == ["shop/orders_clean"]
    assert deps_of(specs["shop/orders_clean"]) == ["shop/src_erp__orders"]
    assert deps_of(specs["shop/src_erp__orders"]) == ["erp/orders"]


def test_attributes_say_what_a_node_is(shop: ProjectFactory) -> None:
    """Group, kinds, tags, description and code version come from the project."""
    specs = specs_of(shop)
    pipeline, load, sink = specs["shop/orders_clean"], specs["shop/src_erp__orders"], specs["mart/events"]
    assert {spec.group_name for spec in specs.values()} == {"shop"}
    assert (pipeline.kinds, load.kinds, sink.kinds) == (
        {"pz", "sql", "duckdb"},
        {"pz", "source", "localfiles"},
        {"pz", "duckdb"},
    )
    tags = {key: value for key, value in pipeline.tags.items() if not key.startswith("dagster/kind")}
    assert tags == {"daily": "", "pz/kind": "Pipeline", "pz/flow": "shop__lake_orders"}
    assert (pipeline.description or "").startswith("Orders worth having.\n\n```sql\n-- Orders worth having.\nINSERT")
    assert pipeline.code_version == pipeline.metadata["pz/node_id"]
    assert sink.metadata["dagster/table_name"] == "mart.events"
    assert sink.metadata["dagster/storage_kind"] == "duckdb"
    assert [c.name for c in load.metadata["dagster/column_schema"].columns] == ["id", "amount"]
    assert all(spec.skippable for spec in specs.values())


def test_settings_change_prefix_groups_and_descriptions(shop: ProjectFactory) -> None:
    """Each switch does what its docstring says."""
    shop.write("pipelines/marts/daily/late.sql", "/* Late\n * orders */\nSELECT id FROM {{ ref('orders_clean') }}")
    settings = PzTranslatorSettings(key_prefix=("eu",), group_by_folder=True, sql_in_description=False)
    specs = specs_of(shop, translator=PzTranslator(settings))
    late = specs["eu/shop/late"]
    assert late.group_name == "shop/marts/daily"
    assert late.description == "Late\norders"
    assert specs["eu/shop/orders_clean"].group_name == "shop"
    assert deps_of(specs["eu/shop/src_erp__orders"]) == ["eu/erp/orders"]


def test_long_sql_is_cut_at_eight_kibibytes(shop: ProjectFactory) -> None:
    """Bytes count, not characters, and no character is cut in half."""
    shop.pipeline("wide", "SELECT '" + "é" * 9000 + "' AS a FROM {{ ref('orders_clean') }}")
    description = specs_of(shop)["shop/wide"].description or ""
    assert 8000 < len(description.encode()) < 8192 + 40
    assert description.endswith("é\n-- …\n```")


class House(PzTranslator):
    """Renames everything, in both ways a subclass may."""

    def get_asset_key(self, node: Node, snapshot: Snapshot) -> dg.AssetKey:
        return super().get_asset_key(node, snapshot).with_prefix("house")

    def get_asset_spec(self, node: Node, snapshot: Snapshot, keys: Mapping[str, dg.AssetKey]) -> dg.AssetSpec:
        spec = super().get_asset_spec(node, snapshot, keys)
        if isinstance(node, PipelineNode):
            return spec.replace_attributes(key=spec.key.with_prefix("sql"), metadata={}, skippable=False)
        return spec

    def get_owners(self, node: Node, snapshot: Snapshot) -> Sequence[str]:
        return ["finance", "team:ops", "a@example.com"]


def test_renamed_keys_leave_no_dangling_parent(shop: ProjectFactory) -> None:
    """Edges follow the final keys, the node's identity survives, a bare owner is a team."""
    specs = specs_of(shop, translator=House())
    assert deps_of(specs["house/lake/orders"]) == ["sql/house/shop/orders_clean"]
    pipeline = specs["sql/house/shop/orders_clean"]
    assert deps_of(pipeline) == ["house/shop/src_erp__orders"]
    assert pipeline.metadata["pz/node"] == "orders_clean"
    assert pipeline.skippable
    assert pipeline.owners == ["team:finance", "team:ops", "a@example.com"]
    checks = [
        spec for each in build_pz_assets(PzProject(shop.directory), translator=House()) for spec in each.check_specs
    ]
    assert {spec.asset_key.to_user_string() for spec in checks} == {"sql/house/shop/orders_clean"}


def test_names_with_dots_blanks_and_letters_of_all_kinds_are_folded(shop: ProjectFactory) -> None:
    """Dagster takes `[A-Za-z0-9_]` only; an entity is split at its dots; every op, key and tag is legal."""
    text = (shop.directory / "connections.yml").read_text()
    shop.write("connections.yml", text.replace("    orders:", '    "sales.größe-2":'))
    sink = "{{ sink('lake', 'a.b.c-d', format: 'csv') }}"
    shop.pipeline("orders_clean", f"INSERT INTO {sink}\nSELECT id FROM {{{{ source('erp', 'sales.größe-2') }}}}")
    shop.sidecar("orders_clean", 'tags: ["team/data eng", "größe", "日本", "dagster/priority"]\n')
    shop.write("project.yml", 'name: int\nversion: "1"\n')
    definitions = build_pz_definitions(PzProject(shop.directory))
    graph = definitions.resolve_asset_graph()
    keys = {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert {"lake/a/b/c_d", "erp/sales/gr__e_2"} & keys == {"lake/a/b/c_d", "erp/sales/gr__e_2"}
    tags = graph.get(dg.AssetKey(["int", "orders_clean"])).tags
    assert "team/data_eng" in tags
    assert "gr__e" in tags
    assert "dagster_priority" in tags
    assert "" not in tags
    assert dg.materialize([each for each in definitions.assets or [] if isinstance(each, dg.AssetsDefinition)],
                          resources=definitions.resources).success  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second"), [("a-b", "a_b"), ("a.b", "a__b"), ("größe", "gr__e")], ids=["dash", "joined", "letters"]
)
def test_two_nodes_that_meet_in_one_key_are_both_named(shop: ProjectFactory, first: str, second: str) -> None:
    """`PZ0702` names nodes, files and what to override, wherever the two are."""
    for name, entity in (("one", first), ("two", second)):
        sink = f"{{{{ sink('lake', '{entity}', format: 'csv') }}}}"
        shop.pipeline(name, f"INSERT INTO {sink}\nSELECT id FROM {{{{ source('erp', 'orders') }}}}")
    with pytest.raises(PzDefinitionError) as caught:
        build_pz_definitions(PzProject(shop.directory))
    (problem,) = caught.value.problems
    assert problem.code == "PZ0702"
    assert all(text in problem.message for text in ("(pipelines/one.sql)", "(pipelines/two.sql)"))
    assert "get_asset_key" in (problem.hint or "")


def test_checks_with_one_output_name_are_refused(shop: ProjectFactory) -> None:
    """Names are cut to 200 characters, and what is left may be the same."""
    long = "x" * 250
    shop.write("in/wide.csv", f"{long}1,{long}2\n1,2\n")
    shop.pipeline("wide", f"SELECT {long}1, {long}2 FROM {{{{ source('erp', 'wide', path: 'wide.csv') }}}}")
    shop.sidecar("wide", f"checks:\n  - not_null: [{long}1]\n  - not_null: [{long}2]\n")
    with pytest.raises(PzDefinitionError, match="PZ0702"):
        build_pz_assets(PzProject(shop.directory))


def test_a_pipeline_reading_what_its_own_flow_writes_gets_no_edge_in_a_circle(shop: ProjectFactory) -> None:
    """The engine does not order the two, so neither does Dagster, whatever the op holds."""
    shop.pipeline(
        "again",
        "INSERT INTO {{ sink('mart', 'history', strategy: 'append', duplicates: 'accept') }}\n"
        "SELECT o.id FROM {{ source('erp', 'orders') }} AS o LEFT JOIN {{ source('mart', 'history') }} AS h ON h.id = o.id",
    )
    specs = specs_of(shop)
    assert deps_of(specs["shop/src_mart__history"]) == []


def test_flows_join_through_an_entity_one_writes_and_the_other_reads(shop: ProjectFactory) -> None:
    """The load depends on the sink of the other flow, in its own op and under its own key; one op for all has no edge."""
    sink = "{{ sink('lake', 'copies', format: 'csv') }}"
    shop.pipeline("copies", f"INSERT INTO {sink}\nSELECT id FROM {{{{ source('mart', 'events') }}}}")
    assert deps_of(specs_of(shop)["shop/src_mart__events"]) == ["mart/events"]
    assert deps_of(specs_of(shop, translator=House())["house/shop/src_mart__events"]) == ["house/mart/events"]
    assert deps_of(specs_of(shop, op_per="project")["shop/src_mart__events"]) == []


def test_flows_that_feed_each_other_still_load(shop: ProjectFactory, caplog: pytest.LogCaptureFixture) -> None:
    """Dagster knows no circles: the edge that closes one is left out with a warning."""
    for name, source, target in (("there", "left", "right"), ("back", "right", "left")):
        sink = f"{{{{ sink('mart', '{target}', strategy: 'replace') }}}}"
        shop.pipeline(name, f"INSERT INTO {sink}\nSELECT id FROM {{{{ source('mart', '{source}') }}}}")
    build_pz_definitions(PzProject(shop.directory)).resolve_asset_graph()
    assert "shows no edge" in caplog.text


def test_units_are_named_after_their_smallest_sink(shop: ProjectFactory) -> None:
    """One flow takes the project's name; flows whose folded names agree stay apart."""
    assert {unit.name for unit in PzProject(shop.directory).units} == {"shop__lake_orders", "shop__mart_events"}
    assert [each.op.name for each in build_pz_assets(PzProject(shop.directory), op_per="project")] == ["shop"]
    for name, entity in (("one", "x-y"), ("two", "x.y")):
        sink = f"{{{{ sink('lake', '{entity}', format: 'csv') }}}}"
        shop.pipeline(name, f"INSERT INTO {sink}\nSELECT 1 AS id")
    names = [unit.name for unit in PzProject(shop.directory).units]
    assert len(set(names)) == 4
    (shop.directory / "pipelines" / "events_merged.sql").unlink()
    for name in ("one", "two"):
        (shop.directory / "pipelines" / f"{name}.sql").unlink()
    assert [unit.name for unit in PzProject(shop.directory).units] == ["shop"]


def test_selections_cut_a_project(shop: ProjectFactory) -> None:
    """`select` and `exclude` decide which nodes are defined; one that matches nothing is refused."""
    assert set(specs_of(shop, select="+orders_clean")) == {"shop/src_erp__orders", "shop/orders_clean"}
    assert "lake/orders" not in specs_of(shop, exclude="lake.orders")
    with pytest.raises(PzDefinitionError, match="PZ0210"):
        build_pz_assets(PzProject(shop.directory), select="nothing_of_that_name")


def test_warnings_show_on_the_pipeline_they_name(shop: ProjectFactory) -> None:
    """A compile warning is a table on its asset."""
    shop.pipeline("stamped", "SELECT '{{ run_id }}' AS r, id FROM {{ ref('orders_clean') }}")
    rows = specs_of(shop)["shop/stamped"].metadata["pz/warnings"].records
    assert [row.data["code"] for row in rows] == ["PZ0223", "PZ0232"]


def test_two_projects_share_one_location(shop: ProjectFactory, tmp_path: Path) -> None:
    """The default resource is one object, so definitions merge; a project may take a resource of its own."""
    other = ProjectFactory(tmp_path / "other", 'name: other\nversion: "1"\n')
    other.connections("files: { connector: localfiles, root: . }")
    other.pipeline("ones", "INSERT INTO {{ sink('files', 'ones', format: 'csv') }}\nSELECT 1 AS id")
    first, second = (build_pz_definitions(PzProject(each.directory)) for each in (shop, other))
    merged = dg.Definitions.merge(first, second)
    assert dg.AssetKey(["files", "ones"]) in merged.resolve_asset_graph().get_all_asset_keys()


def test_two_projects_with_one_key_are_warned_about(
    shop: ProjectFactory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each is fine alone; the warning names both projects, and Dagster refuses the merger."""
    other = ProjectFactory(tmp_path / "other", 'name: other\nversion: "1"\n')
    other.connections("lake: { connector: localfiles, root: . }")
    other.pipeline("orders2", "INSERT INTO {{ sink('lake', 'orders', format: 'csv') }}\nSELECT 1 AS id")
    first = build_pz_definitions(PzProject(shop.directory))
    with caplog.at_level(logging.WARNING, "pz_dagster"):
        second = build_pz_definitions(PzProject(other.directory))
    assert "PZ0702" in caplog.text
    assert "project 'shop'" in caplog.text
    with pytest.raises(dg.DagsterInvalidDefinitionError):
        dg.Definitions.merge(first, second).resolve_asset_graph()


def test_every_kind_of_node_reaches_the_translator(shop: ProjectFactory) -> None:
    """Methods are called with the typed node."""
    seen: set[type] = set()

    class Watching(PzTranslator):
        def get_metadata(self, node: Node, snapshot: Snapshot) -> Mapping[str, object]:
            seen.add(type(node))
            return {}

        def get_check_severity(self, node: CheckNode, snapshot: Snapshot) -> dg.AssetCheckSeverity:
            seen.add(type(node))
            return dg.AssetCheckSeverity.WARN

    (assets, _) = build_pz_assets(PzProject(shop.directory), translator=Watching())
    assert seen == {SourceLoadNode, PipelineNode, SinkWriteNode, CheckNode}
    assert not any(spec.blocking for spec in assets.check_specs)
