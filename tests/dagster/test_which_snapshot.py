"""Which snapshot a process takes, what makes one stale, and what a broken project leaves of it."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, build_pz_assets, build_pz_definitions, fingerprint, project
from pz_dagster.errors import PzDefinitionError
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.test_loading import mark, nothing_handed_over  # noqa: F401 - a fixture


@pytest.fixture
def stale(shop: ProjectFactory) -> PzProject:
    """A prepared project whose files have changed since."""
    found = PzProject(shop.directory)
    found.prepare()
    shop.write("pipelines/more.sql", "SELECT 1 AS a")
    return found


def knows_more(found: PzProject) -> bool:
    return "more" in found.snapshot.compiled.graph.by_name


@pytest.mark.parametrize("verb", ["execute_run", "execute_step"])
def test_dagsters_own_workers_compile_nothing(stale: PzProject, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are told by their command line, on executors that start them as commands."""
    monkeypatch.setattr(PzProject, "_compile", lambda self: pytest.fail("a worker compiled"))
    monkeypatch.setattr(sys, "argv", ["dagster", "api", verb, "{}"])
    assert not knows_more(stale)


def test_children_of_a_process_compile_nothing(stale: PzProject) -> None:
    """The workers of the default launcher; the parent itself sees the files as they are."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(knows_more(stale)))
    child.start()
    sender.close()
    assert receiver.recv() is False
    child.join(20)
    assert knows_more(stale)


def test_what_is_on_disk_again_is_no_longer_handed_over(stale: PzProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prepared or developed meanwhile: workers get what was loaded last, not what was compiled in memory before."""
    handed = lambda: [name for name in os.environ if name.startswith("PZ_DAGSTER_SNAPSHOT_")]  # noqa: E731
    assert knows_more(stale)
    assert len(handed()) == 1
    stale.prepare()
    project._CACHE.clear()
    assert knows_more(stale)
    assert handed() == []
    (stale.root / "pipelines/more.sql").unlink()
    assert not knows_more(stale)
    assert len(handed()) == 1
    monkeypatch.setenv("DAGSTER_IS_DEV_CLI", "1")
    (stale.root / "pipelines/more.sql").write_text("SELECT 2 AS a")
    assert knows_more(stale)
    assert handed() == []


def test_workers_tell_variables_apart(shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """One project with two sets of variables in one location is two snapshots."""
    shop.write("project.yml", 'name: shop\nversion: "1"\nvars: { target: a }\n')
    shop.pipeline("ones", "INSERT INTO {{ sink('lake', var('target'), format: 'csv') }}\nSELECT 1 AS id")
    both = {each: PzProject(shop.directory, vars={"target": each}) for each in ("left", "right")}
    for each in both.values():
        assert each.snapshot
    project._CACHE.clear()
    monkeypatch.setattr(project, "_is_worker_process", lambda: True)
    for target, each in both.items():
        assert f"lake.{target}" in each.snapshot.compiled.graph.by_name


def test_another_size_or_time_is_read_again(shop: ProjectFactory) -> None:
    """An edit that keeps the size is seen by its time."""
    path = shop.write("pipelines/x.sql", "SELECT 1 AS a")
    found = []
    for age, text in ((60, "SELECT 1 AS a"), (50, "SELECT 2 AS a"), (50, "SELECT 22 AS a")):
        path.write_text(text)
        os.utime(path, (time.time() - age,) * 2)
        found.append(mark(shop.directory))
    assert len(set(found)) == 3


@pytest.mark.parametrize("key", ["schema_version", "engine_version"])
def test_a_snapshot_of_another_version_is_none(shop: ProjectFactory, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a worker guesses what its fields mean."""
    found = PzProject(shop.directory)
    found.prepare()
    document = json.loads(found.snapshot_path.read_text())
    found.snapshot_path.write_text(json.dumps({**document, key: 0, "project": "other"}))
    assert found.snapshot_state == "missing"
    monkeypatch.setattr(project, "_is_worker_process", lambda: True)
    assert found.snapshot.project_name == "shop"


def test_a_write_that_fails_leaves_the_snapshot_before(stale: PzProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written aside and renamed; nothing half done stays."""

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    before = stale.snapshot_path.read_bytes()
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="No space"):
        stale.prepare()
    assert stale.snapshot_path.read_bytes() == before
    assert [path.name for path in stale.snapshot_path.parent.iterdir()] == ["dagster.json"]


def test_only_development_prepares_by_itself(stale: PzProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """`prepare_if_dev` is for definitions that are loaded everywhere."""
    stale.prepare_if_dev()
    assert stale.snapshot_state == "stale"
    monkeypatch.setenv("DAGSTER_IS_DEV_CLI", "1")
    stale.prepare_if_dev()
    assert stale.snapshot_state == "fresh"


def test_a_project_knows_the_keys_of_its_nodes(shop: ProjectFactory) -> None:
    """For definitions of other things that depend on them."""
    found = PzProject(shop.directory)
    assert found.asset_key_for("lake.orders") == dg.AssetKey(["lake", "orders"])
    assert found.asset_key_for("src_erp__orders") == dg.AssetKey(["shop", "src_erp__orders"])
    with pytest.raises(KeyError):
        found.asset_key_for("nothing")


def test_a_project_may_raise_its_problems(shop: ProjectFactory) -> None:
    """`on_error="raise"`, and `check`, whatever `on_error` says; both hold every problem."""
    shop.sidecar("orders_clean", "checks:\n  - not_nul: [id]\n")
    shop.write("connections.yml", "erp: [\n")
    strict: Any = PzProject(shop.directory, on_error="raise")
    for ask in (lambda: build_pz_definitions(strict), PzProject(shop.directory).check, strict.check):
        with pytest.raises(PzDefinitionError) as caught:
            ask()
        assert {"pipelines/configs/orders_clean.yml", "connections.yml"} <= {
            each.file for each in caught.value.problems
        }
    assert len(build_pz_assets(PzProject(shop.directory))) == 1


def test_a_placeholder_lists_place_message_and_next_step(shop: ProjectFactory) -> None:
    """Of each problem, so that nobody has to look into a log."""
    shop.sidecar("orders_clean", "checks:\n  - not_nul: [id]\n")
    (problem,) = PzProject(shop.directory).snapshot.compiled.problems
    (asset,) = build_pz_assets(PzProject(shop.directory))
    (spec,) = asset.specs
    assert problem.hint
    wanted = f"- `PZ0113` pipelines/configs/orders_clean.yml:3: {problem.message} — {problem.hint}"
    assert wanted in (spec.description or "").splitlines()
    assert spec.kinds == {"pz"}


def test_compile_warnings_are_logged(shop: ProjectFactory, caplog: pytest.LogCaptureFixture) -> None:
    """Once, when the project is compiled."""
    shop.pipeline("stamped", "SELECT '{{ run_id }}' AS r, id FROM {{ ref('orders_clean') }}")
    with caplog.at_level(logging.WARNING, "pz_dagster"):
        for _ in range(2):
            build_pz_definitions(PzProject(shop.directory))
    assert len([each for each in caplog.messages if "PZ0223" in each]) == 1


def test_accepted_values_stay_out_of_the_snapshot(shop: ProjectFactory) -> None:
    """They may be row values; bounds are kept, because descriptions show them."""
    shop.sidecar(
        "orders_clean",
        "checks:\n  - accepted_values: { column: id, values: [471147114711] }\n  - row_count: { max: 8005 }\n"
        "  - custom_sql: { name: odd, sql: 'SELECT 1 FROM staging.orders_clean WHERE id = 600613' }\n",
    )
    found = PzProject(shop.directory)
    found.prepare()
    text = found.snapshot_path.read_text()
    assert "8005" in text
    assert "471147114711" not in text
    assert "600613" not in text


def test_what_was_handed_over_may_be_gone(stale: PzProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody cleaned the temporary directory: a worker then takes what is on disk."""
    assert knows_more(stale)
    (name,) = [each for each in os.environ if each.startswith("PZ_DAGSTER_SNAPSHOT_")]
    Path(os.environ[name]).unlink()
    monkeypatch.setattr(project, "_is_worker_process", lambda: True)
    assert not knows_more(stale)


def test_versions_are_part_of_the_fingerprint(shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the snapshot's form and of the engine that compiled it."""
    before = fingerprint.fingerprint(shop.directory, {}, 1)
    assert fingerprint.fingerprint(shop.directory, {}, 2) != before
    monkeypatch.setattr(fingerprint, "__version__", "0.0.0")
    assert fingerprint.fingerprint(shop.directory, {}, 1) != before


@pytest.mark.parametrize("act", [PzProject.prepare, PzProject.check])
def test_sql_that_no_run_would_take_is_no_snapshot(
    shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch, act: Callable[[PzProject], None]
) -> None:
    """An image build ends with every problem; a variable that only the deployment has hides what it may decide."""
    shop.pipeline("typo", "selec id from {{ source('erp', 'orders') }}\n")
    shop.pipeline("missing", "select colour from {{ source('erp', 'orders') }}\n")
    with pytest.raises(PzDefinitionError) as caught:
        act(PzProject(shop.directory))
    assert {(problem.code, problem.file) for problem in caught.value.problems} == {
        ("PZ0401", "pipelines/missing.sql"),
        ("PZ0401", "pipelines/typo.sql"),
    }
    assert not PzProject(shop.directory).snapshot_path.exists()
    for name in ("typo", "missing"):
        (shop.directory / "pipelines" / f"{name}.sql").unlink()
    shop.pipeline("cut", "select id from {{ source('erp', 'orders') }} where amount > {{ env('LEAST') }}\n")
    act(PzProject(shop.directory))
    monkeypatch.setenv("LEAST", "twenty")
    with pytest.raises(PzDefinitionError):
        act(PzProject(shop.directory))
