"""Attributes of specs beyond keys and edges: code references, tags, what a translator may set, what it is asked for."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, PzTranslator, PzTranslatorSettings, build_pz_assets
from pz_dagster.snapshot import Snapshot
from pz_engine import CheckNode, Node, SinkWriteNode
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.test_translation import specs_of

REFERENCES = "dagster/code_references"


def references(metadata: Any) -> list[tuple[str, int | None]]:
    return [(each.file_path, each.line_number) for each in metadata[REFERENCES].code_references]


def test_assets_and_checks_lead_to_their_files(shop: ProjectFactory) -> None:
    """SQL and sidecar of a pipeline, the entity's or the connection's line of the others, without an absolute path."""
    specs = specs_of(shop)
    text = (shop.directory / "connections.yml").read_text().splitlines()
    orders, lake = text.index("    orders:") + 2, text.index("lake:") + 1
    assert [path for path, _ in references(specs["shop/orders_clean"].metadata)] == [
        "pipelines/orders_clean.sql",
        "pipelines/configs/orders_clean.yml",
    ]
    assert references(specs["shop/src_erp__orders"].metadata) == [("connections.yml", orders)]
    assert references(specs["lake/orders"].metadata)[0] == ("connections.yml", lake)
    assert references(specs["lake/orders"].metadata)[1][0] == "pipelines/orders_clean.sql"
    checks = [spec for each in build_pz_assets(PzProject(shop.directory)) for spec in each.check_specs]
    sidecar = (shop.directory / "pipelines/configs/orders_clean.yml").read_text().splitlines()
    lines = {spec.name: references(spec.metadata) for spec in checks}
    assert lines["check_orders_clean_not_null_id"] == [
        ("pipelines/configs/orders_clean.yml", sidecar.index("  - not_null: [id]") + 1)
    ]


def test_a_development_process_opens_absolute_paths(shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor needs them; nothing of them stays in the snapshot."""
    monkeypatch.setenv("DAGSTER_IS_DEV_CLI", "1")
    ((file, _), *_) = references(specs_of(shop)["shop/orders_clean"].metadata)
    assert Path(file) == shop.directory / "pipelines/orders_clean.sql"
    assert str(shop.directory) not in PzProject(shop.directory).snapshot_path.read_text()


@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_references_become_links_of_a_repository(shop: ProjectFactory) -> None:
    """Deployed paths start at the project, and so does the anchor."""
    linked = dg.link_code_references_to_git(
        build_pz_assets(PzProject(shop.directory)),
        git_url="https://github.com/acme/etl",
        git_branch="main",
        file_path_mapping=dg.AnchorBasedFilePathMapping(Path("project.yml"), "jobs/shop/project.yml"),
    )
    urls = {
        each.url
        for definition in linked
        if isinstance(definition, dg.AssetsDefinition)
        for spec in definition.specs
        for each in spec.metadata[REFERENCES].code_references
    }
    assert "https://github.com/acme/etl/tree/main/jobs/shop/pipelines/orders_clean.sql#L1" in urls


def test_references_can_be_switched_off(shop: ProjectFactory) -> None:
    """Neither assets nor checks have them then."""
    translator = PzTranslator(PzTranslatorSettings(code_references=False))
    for each in build_pz_assets(PzProject(shop.directory), translator=translator):
        for spec in (*each.specs, *each.check_specs):
            assert REFERENCES not in spec.metadata


def test_the_placeholder_leads_to_every_broken_file(shop: ProjectFactory) -> None:
    """Each problem's file and line."""
    shop.sidecar("orders_clean", "checks:\n  - not_nul: [id]\n")
    shop.pipeline("events_merged", "SELECT * FROM {{ ref('nothing') }}")
    (asset,) = build_pz_assets(PzProject(shop.directory))
    (spec,) = asset.specs
    assert {path for path, _ in references(spec.metadata)} >= {"pipelines/configs/orders_clean.yml"}


def test_tags_that_change_are_said_once(shop: ProjectFactory, caplog: pytest.LogCaptureFixture) -> None:
    """One line for the project names each tag and what became of it."""
    shop.sidecar("orders_clean", 'tags: ["team/data eng", "日本", fine]\n')
    project = PzProject(shop.directory)
    translator = PzTranslator()
    for _ in range(2):
        build_pz_assets(project, translator=translator)
    (line,) = [each for each in caplog.messages if "spelled otherwise" in each]
    assert "'team/data eng' (team/data_eng), '日本' (left out)" in line
    assert "fine" not in line


class Rich(PzTranslator):
    """Sets everything that has no default, and counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[tuple[str, str]] = Counter()

    def get_asset_key(self, node: Node, snapshot: Snapshot) -> dg.AssetKey:
        self.asked["key", node.name] += 1
        return super().get_asset_key(node, snapshot)

    def get_description(self, node: Node, snapshot: Snapshot) -> str | None:
        self.asked["description", node.name] += 1
        return "described"

    def get_automation_condition(self, node: Node, snapshot: Snapshot) -> Any:
        return dg.AutomationCondition.eager() if isinstance(node, SinkWriteNode) else None

    def get_freshness_policy(self, node: Node, snapshot: Snapshot) -> dg.FreshnessPolicy | None:
        fresh = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=6))
        return fresh if isinstance(node, SinkWriteNode) else None

    def get_partitions_def(self, node: Node, snapshot: Snapshot) -> Any:
        return dg.DailyPartitionsDefinition("2026-01-01") if node.name == "mart.events" else None

    def get_remote_key(self, node: Any, snapshot: Snapshot) -> dg.AssetKey:
        return dg.AssetKey(["outside", node.entity])

    def get_code_version(self, node: Node, snapshot: Snapshot) -> str | None:
        return "v1"

    def get_check_severity(self, node: CheckNode, snapshot: Snapshot) -> dg.AssetCheckSeverity:
        self.asked["severity", node.name] += 1
        return dg.AssetCheckSeverity.WARN


def test_a_translator_may_set_every_attribute(shop: ProjectFactory) -> None:
    """Condition, freshness, partitions, remote key, description and code version reach the spec."""
    specs = specs_of(shop, translator=Rich(), select="orders_clean+ +orders_clean")
    sink, load = specs["lake/orders"], specs["shop/src_erp__orders"]
    assert sink.automation_condition == dg.AutomationCondition.eager()
    assert sink.freshness_policy is not None
    assert (sink.code_version, sink.description) == ("v1", "described")
    assert [dep.asset_key.to_user_string() for dep in load.deps] == ["outside/orders"]
    assert load.automation_condition is load.freshness_policy is None
    snapshot = PzProject(shop.directory).snapshot
    sink_node = snapshot.compiled.graph.by_name["mart.events"]
    spec = Rich().get_asset_spec(sink_node, snapshot, {n.id: dg.AssetKey(n.id) for n in snapshot.compiled.nodes})
    assert spec.partitions_def == dg.DailyPartitionsDefinition("2026-01-01")


def test_a_translator_is_asked_once_for_a_node(shop: ProjectFactory) -> None:
    """However many definitions are built from one project."""
    project, translator = PzProject(shop.directory), Rich()
    for select in ("*", "orders_clean+", "+events_merged"):
        build_pz_assets(project, translator=translator, select=select)
    assert {kind for kind, _ in translator.asked} == {"key", "description", "severity"}
    assert set(translator.asked.values()) == {1}


class ByValue(PzTranslator):
    """Compares by value and has no hash."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByValue)

    __hash__ = None  # type: ignore[assignment]


def test_a_translator_without_a_hash_translates_too(shop: ProjectFactory) -> None:
    """It is only asked more often."""
    assert specs_of(shop, translator=ByValue()).keys() == specs_of(shop).keys()
