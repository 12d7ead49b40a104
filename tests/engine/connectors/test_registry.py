"""Finding connectors by name, without importing what nobody asked for."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

from pz_engine.connectors import discovery, registry
from pz_engine.connectors.api import PROTOCOL_MAJOR, ConnectorInfo, SinkConnector, SourceConnector
from pz_engine.errors.exceptions import ConnectorHostError


class Acme:
    """An external connector, as far as loading looks."""

    info = ConnectorInfo("acme", "1.2.3", "pz-acme")


class Outdated:
    """One built for another contract."""

    info = ConnectorInfo("outdated", "0.1", "pz-outdated", protocol_major=PROTOCOL_MAJOR + 1)


@pytest.fixture
def announced(monkeypatch):
    """Announce connectors of this module under the given names."""

    def announce(**targets):
        entries = [metadata.EntryPoint(name, value, discovery.ENTRY_POINT_GROUP) for name, value in targets.items()]
        monkeypatch.setattr(discovery.metadata, "entry_points", lambda group: entries)
        monkeypatch.setattr(registry, "_loaded", {})

    return announce


def test_built_in_connectors_read_and_write():
    """Each satisfies both protocols and is the same object every time."""
    for name in ("duckdb", "localfiles"):
        connector = registry.find_connector(name)
        assert isinstance(connector, SourceConnector)
        assert isinstance(connector, SinkConnector)
        assert connector.info.name == name
        assert registry.find_connector(name) is connector


def test_unknown_name_is_none():
    """Who asks says what it means."""
    assert registry.find_connector("no_such_connector") is None


def test_external_connector_is_found_by_its_entry_point(announced):
    """Installing a distribution is enough."""
    announced(acme=f"{__name__}:Acme")
    assert registry.find_connector("acme").info.version == "1.2.3"
    assert registry.known_connectors() == ("acme", "duckdb", "http", "localfiles")


def test_built_in_name_cannot_be_taken_over(announced):
    """Another distribution's `duckdb` is not used."""
    announced(duckdb=f"{__name__}:Acme")
    assert registry.find_connector("duckdb").info.package == "pz-dagster"


def test_connector_that_does_not_load_is_an_error(announced):
    """With the line that shows why."""
    announced(broken="no_such_module_at_all:Thing")
    with pytest.raises(ConnectorHostError, match="does not load") as caught:
        registry.find_connector("broken")
    assert caught.value.code == "PZ0307"
    assert "no_such_module_at_all" in caught.value.hint


def test_connector_of_another_contract_is_refused(announced):
    """Before anything is called on it."""
    announced(outdated=f"{__name__}:Outdated")
    with pytest.raises(ConnectorHostError) as caught:
        registry.find_connector("outdated")
    assert caught.value.code == "PZ0306"


def test_validation_needs_no_driver():
    """Finding and validating connectors imports neither DuckDB nor pyarrow."""
    code = (
        "import sys\n"
        "from pz_engine.connectors.registry import find_connector, known_connectors\n"
        "from pz_engine.connectors import ConnectionUse\n"
        "for name in known_connectors():\n"
        "    find_connector(name).validate(ConnectionUse(name, {'path': 'x'}, reads={'a': {}}, writes={'a': {}}))\n"
        "assert not {'duckdb', 'pyarrow'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
