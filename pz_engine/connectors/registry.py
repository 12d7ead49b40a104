"""Every connector by name: built-in ones from a table that imports nothing, then installed ones.

A built-in name cannot be taken over by another distribution.
"""

from __future__ import annotations

import importlib
import threading

from pz_engine.connectors.api import Connector
from pz_engine.connectors.discovery import external_names, load_external

_BUILT_IN = {
    "duckdb": ("pz_engine.connectors.builtin.duckdb.connector", "DuckDbConnector"),
    "http": ("pz_engine.connectors.builtin.http.connector", "HttpConnector"),
    "localfiles": ("pz_engine.connectors.builtin.localfiles.connector", "LocalFilesConnector"),
}

_loaded: dict[str, Connector] = {}
_loading = threading.Lock()


def known_connectors() -> tuple[str, ...]:
    """Return the names that can be used now, sorted."""
    return tuple(sorted({*_BUILT_IN, *external_names()}))


def find_connector(name: str) -> Connector | None:
    """Return a connector, the same object each time, or None when nobody provides it.

    Raises:
        ConnectorHostError: an installed connector does not load or is built for another contract.
    """
    with _loading:
        if name not in _loaded:
            built_in = _BUILT_IN.get(name)
            if built_in is not None:
                module, factory = built_in
                found: Connector | None = getattr(importlib.import_module(module), factory)()
            else:
                found = load_external(name)
            if found is None:
                return None
            _loaded[name] = found
        return _loaded[name]
