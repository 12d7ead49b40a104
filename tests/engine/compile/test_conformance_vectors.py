"""Node ids and order that other implementations of the format agree on."""

from __future__ import annotations

import pytest

from pz_engine.base.stable_json import canonical_json
from pz_engine.compile.dag import PushedHints
from pz_engine.compile.manifest import build_manifest, compiled_sql_text
from pz_engine.compile.node_ids import check_id, pipeline_id, sink_write_id, source_load_id
from pz_engine.model.checks import Check, CheckType
from pz_engine.model.entity import WriteSide
from pz_engine.model.policies import Materialization, Strategy

STG_ORDERS = "select\n    id,\n    customer_id,\n    amount,\n    status\nfrom {{ source('crm', 'orders') }}\nwhere amount >= 10\n"


@pytest.fixture
def shop(project):
    """Two sources, three pipelines, two checks and two outputs."""
    project.write(
        "connections.yml",
        """crm:
  connector: localfiles
  entities:
    customers:
      read: {format: csv, path: customers.csv, columns: {id: bigint, email: varchar}}
    orders:
      read: {format: csv, path: orders.csv}
lake:
  connector: localfiles
  entities:
    order_totals:
      write: {format: csv, path: totals/, strategy: replace}
    orders_curated:
      write: {format: parquet, path: curated/orders/, strategy: replace}
""",
    )
    project.sql("stg_orders", STG_ORDERS)
    project.sql("order_totals", "INSERT INTO {{ sink('lake', 'order_totals') }}\nselect * from {{ ref('stg_orders') }}")
    project.sql(
        "orders_enriched",
        "INSERT INTO {{ sink('lake', 'orders_curated') }}\n"
        "select * from {{ ref('stg_orders') }} join {{ source('crm', 'customers') }} using (id)",
    )
    return project.sidecar("orders_enriched", "tags: [daily]\nchecks:\n  - not_null: [id, email]\n  - unique: [id]\n")


def test_source_ids_follow_the_published_text():
    """Without hints an id is made of the connection, the entity, the options and the contract."""
    columns = {"id": "bigint", "email": "varchar"}
    customers = source_load_id("crm", "customers", {"path": "customers.csv", "format": "csv"}, columns, PushedHints())
    assert customers == "59489ad607b22cf9"
    assert (
        source_load_id("crm", "orders", {"format": "csv", "path": "orders.csv"}, None, PushedHints())
        == "cddc6e19a966dea0"
    )


def test_check_and_sink_ids_follow_the_published_text():
    """Checks and sink writes have the published ids."""
    assert check_id("orders_enriched", Check(CheckType.NOT_NULL, ("id", "email"))) == "920c5730ad9bb632"
    assert check_id("orders_enriched", Check(CheckType.UNIQUE, ("id",))) == "ef802d36ac370b28"
    totals = WriteSide(Strategy.REPLACE, options={"format": "csv", "path": "totals/"})
    curated = WriteSide(Strategy.REPLACE, options={"format": "parquet", "path": "curated/orders/"})
    assert sink_write_id("lake", "order_totals", "order_totals", totals) == "9c197512c47c0a6b"
    assert sink_write_id("lake", "orders_curated", "orders_enriched", curated) == "b6b1e97d54f2c38e"


def test_a_compiled_project_has_the_published_ids_and_order(shop):
    """The whole project compiles to the published ids, in the published order."""
    compiled = shop.compile()
    assert [node.name for node in compiled.nodes] == [
        "src_crm__customers", "src_crm__orders", "stg_orders", "order_totals", "orders_enriched",
        "check_orders_enriched_not_null_id_email", "check_orders_enriched_unique_id", "lake.order_totals",
        "lake.orders_curated",
    ]  # fmt: skip
    ids = {node.name: node.id for node in compiled.nodes}
    assert ids["stg_orders"] == "c12d90246f26ce45"
    assert ids["lake.order_totals"] == "9c197512c47c0a6b"
    assert ids["lake.orders_curated"] == "b6b1e97d54f2c38e"
    orders = compiled.graph.by_name["src_crm__orders"]
    assert orders.hints == PushedHints(("amount", "customer_id", "id", "status"), "(amount >= 10)")


def test_what_is_not_hashed_does_not_change_ids(shop):
    """Line ends, trailing blanks, one semicolon, tags, retries, secrets and connectors leave ids alone."""
    before = {node.name: node.id for node in shop.compile().nodes}
    shop.sql("stg_orders", STG_ORDERS.replace("\n", "\r\n") + "  ;\n\n")
    shop.sidecar(
        "orders_enriched",
        "tags: [weekly]\nchecks:\n  - not_null: {columns: [id, email], sample_values: false}\n  - unique: [id]\n",
    )
    text = (shop.directory / "connections.yml").read_text()
    shop.write(
        "connections.yml",
        text.replace("connector: localfiles", "connector: s3\n  secret: x\n  retry: {max_attempts: 5}"),
    )
    assert {node.name: node.id for node in shop.compile().nodes} == before


def test_canonical_json_escapes_like_the_reference():
    """Quotes, angle brackets, plus, backtick and everything outside ASCII are escaped in upper-case hex."""
    assert (
        canonical_json({"k": "é\"&'+<>`\\\n/"})
        == '{"k":"\\u00E9\\u0022\\u0026\\u0027\\u002B\\u003C\\u003E\\u0060\\\\\\n/"}'
    )
    assert canonical_json({"b": 1.5, "a": [True, None, 10]}) == '{"a":[true,null,10],"b":1.5}'


def test_materialization_is_part_of_a_pipeline_s_id():
    """A view and a table of the same text differ."""
    assert pipeline_id("p", Materialization.TABLE, "select 1") != pipeline_id("p", Materialization.VIEW, "select 1")


def test_the_manifest_lists_nodes_in_order(shop):
    """Keys are in their documented order, tags belong to pipelines, files are project-relative."""
    manifest = build_manifest(shop.compile())
    assert list(manifest) == ["project", "version", "generatedBy", "nodes"]
    assert list(manifest["nodes"][0]) == ["id", "kind", "name", "dependsOn", "tags", "file"]
    by_name = {node["name"]: node for node in manifest["nodes"]}
    assert by_name["src_crm__orders"]["file"] == "connections.yml"
    assert by_name["orders_enriched"]["tags"] == ["daily"]
    assert by_name["check_orders_enriched_unique_id"]["file"] == "pipelines/orders_enriched.sql"
    assert by_name["orders_enriched"]["dependsOn"] == sorted(by_name["orders_enriched"]["dependsOn"])


def test_a_selection_cuts_the_manifest_but_not_its_edges(shop):
    """Only selected nodes are listed; their dependencies may name others."""
    compiled = shop.compile()
    chosen = compiled.graph.by_name["orders_enriched"]
    manifest = build_manifest(compiled, frozenset({chosen.id}))
    assert [node["name"] for node in manifest["nodes"]] == ["orders_enriched"]
    assert len(manifest["nodes"][0]["dependsOn"]) == 2


def test_compiled_sql_has_sorted_header_lines(shop):
    """The header names incremental entities first, then outputs with format and strategy."""
    shop.sql(
        "orders_enriched",
        "INSERT INTO [{{ sink('lake', 'z', strategy: 'merge', keys: ['id']) }}, {{ sink('lake', 'a', format: 'csv', duplicates: 'accept') }}]\n"
        "select * from {{ source('crm', 'customers') }} where id > {{ watermark('crm', 'customers') }}",
    )
    compiled = shop.compile()
    text = compiled_sql_text(compiled, compiled.graph.by_name["orders_enriched"])
    assert text.splitlines()[:3] == [
        "-- incremental: crm.customers (cursor id, declared in SQL)",
        "-- output: lake.a (csv, append)",
        "-- output: lake.z (merge)",
    ]
    assert "'__pz_watermark__crm.customers'" in text
    assert text.endswith("\n")
