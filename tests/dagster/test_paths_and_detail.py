"""Which directory is used, how much of an error is shown, and when a version stays the same."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import dagster as dg
import pytest

from pz_dagster import PzProject, PzResource, PzTranslator, PzTranslatorSettings
from pz_dagster.discretion import Discretion
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench

FEED = dg.AssetKey(["shop", "src_erp__events"])


def test_a_packaged_project_is_used_where_it_exists_and_nobody_develops(
    shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A development process always reads what a person edits."""
    packaged = shop.directory.parent / "packaged"
    project = PzProject(shop.directory, packaged_project_dir=packaged)
    assert project.root == shop.directory
    shutil.copytree(shop.directory, packaged)
    (packaged / "pipelines" / "more.sql").write_text("SELECT 1 AS a")
    assert project.root == packaged
    assert "more" in project.snapshot.compiled.graph.by_name
    monkeypatch.setenv("DAGSTER_IS_DEV_CLI", "1")
    assert project.root == shop.directory
    assert "more" not in project.snapshot.compiled.graph.by_name


@pytest.mark.parametrize(
    ("detail", "is_dev", "is_shown"),
    [("summary", True, False), ("full", False, True), ("auto", False, False), ("auto", True, True)],
)
def test_messages_are_full_where_that_is_asked_for(
    detail: Literal["auto", "summary", "full"], is_dev: bool, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`auto` shows them in development only; otherwise neither a quoted text nor an absolute path is left."""
    if is_dev:
        monkeypatch.setenv("DAGSTER_IS_DEV_CLI", "1")
    is_full = PzResource(error_detail=detail).shows_full_errors
    shown = Discretion(Path("/srv/shop"), is_full=is_full).text("IO Error: no 'word' in /mnt/disk/a.csv")
    assert ("word" in shown, "/mnt/disk" in shown) == (is_shown, is_shown)


def test_a_load_that_found_nothing_new_keeps_its_version(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Then what is below stays in sync; new rows make a new version, and without the setting Dagster decides."""

    def version(bench: Workbench) -> str | None:
        bench.materialize(dg.AssetSelection.assets(["mart", "events"]).upstream())
        event = instance.get_latest_materialization_event(FEED)
        assert event is not None
        assert event.asset_materialization is not None
        return (event.asset_materialization.tags or {}).get("dagster/data_version")

    bench = Workbench(shop, instance)
    first = version(bench)
    assert version(bench) == first is not None
    shop.write("in/events.csv", "id,seen_at\n3,2026-01-03 00:00:00\n")
    newer = version(bench)
    assert newer != first
    off = Workbench(shop, instance, translator=PzTranslator(PzTranslatorSettings(data_versions=False)))
    assert version(off) != newer
