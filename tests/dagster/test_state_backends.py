"""Positions that are kept elsewhere than on the project's disk, and sync tokens."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import dagster as dg
import pytest

from pz_dagster.state_records import read_records, state_key
from pz_engine.connectors.capabilities import Capability
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ScriptedConnector
from pz_engine.testing.state_server import StateServer
from tests.dagster.conftest import Workbench
from tests.dagster.test_materialize import metadata_of
from tests.dagster.test_state_copy import EVENTS, KEY, NAME, arrive, warnings_of


def test_a_remote_backend_is_right_by_itself(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """What it stores is copied; what it has lost or what stands behind is never changed from the copy."""
    with StateServer() as server:
        shop.write("project.yml", f'name: shop\nversion: "1"\nstate: {{ backend: http, url: "{server.url}" }}\n')
        bench = Workbench(shop, instance)
        bench.materialize(EVENTS)
        before = server.payload("watermarks", "erp.events")
        (record,) = read_records(instance, KEY)[NAME]
        assert record.entry == json.loads(before or "{}")
        assert not (shop.directory / ".pz" / "state" / "watermarks.json").exists()
        arrive(shop, 3)
        bench.materialize(EVENTS)
        assert len(read_records(instance, KEY)[NAME]) == 2
    with StateServer() as empty:
        shop.write("project.yml", f'name: shop\nversion: "1"\nstate: {{ backend: http, url: "{empty.url}" }}\n')
        result = bench.materialize(EVENTS)
        assert metadata_of(result, "mart", "events")["pz/rows"] == 3
        assert not [text for text in warnings_of(instance, result) if "PZ07" in text]


@pytest.mark.parametrize("is_public", [True, False])
def test_a_token_comes_back_where_it_may_be_copied(
    tmp_path: Path, instance: dg.DagsterInstance, is_public: bool
) -> None:
    """On a new disk a feed goes on where it was; a connector whose tokens may hold secrets starts again."""
    connector = ScriptedConnector(shape="feed", token=lambda spec: f"{spec.prior_token or ''}x")
    if is_public:
        connector.capabilities |= Capability.PUBLIC_TOKENS
    factory = ProjectFactory(tmp_path / "feed", 'name: feed\nversion: "1"\n')
    factory.connections("far: { connector: scripted }\n")
    factory.pipeline(
        "p",
        "INSERT INTO {{ sink('far', 'out', strategy: 'append', duplicates: 'accept') }}\n"
        "SELECT id FROM {{ source('far', 'things') }}",
    )
    with connector.installed():
        bench = Workbench(factory, instance)
        bench.materialize()
        bench.materialize()
        assert [read.prior_token for read in connector.reads] == [None, "x"]
        records = read_records(instance, state_key("feed")).get("sync-state/far.things", ())
        assert [(each.entry or {}).get("token") for each in records] == (["xx", "x"] if is_public else [])
        shutil.rmtree(factory.directory / ".pz")
        result = bench.materialize()
        assert connector.reads[-1].prior_token == ("xx" if is_public else None)
        assert bool([text for text in warnings_of(instance, result) if "PZ0705" in text]) is is_public
        (factory.directory / ".pz" / "state" / "sync-state.json").write_text('{"version": 1, "syncState": {}}')
        bench.materialize()
        assert connector.reads[-1].prior_token is None  # dropped on purpose, and nothing brings it back
