"""Connectors that other installed distributions provide, found through entry points.

An entry point names a class or a function that takes no arguments and returns a connector.
"""

from __future__ import annotations

from importlib import metadata

from pz_engine.connectors.api import PROTOCOL_MAJOR, Connector
from pz_engine.errors.exceptions import ConnectorHostError

ENTRY_POINT_GROUP = "pz.connectors"
"""Group in which a distribution announces its connectors; the entry point's name is the connector's."""


def external_names() -> tuple[str, ...]:
    """Return the announced names, sorted."""
    return tuple(sorted({entry.name for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)}))


def load_external(name: str) -> Connector | None:
    """Import and build an announced connector; None when nobody announces the name.

    Raises:
        ConnectorHostError: `PZ0307`, it does not load or is no connector; `PZ0306`, it is built for another contract.
    """
    entry = next((found for found in metadata.entry_points(group=ENTRY_POINT_GROUP) if found.name == name), None)
    if entry is None:
        return None
    origin = entry.dist.name if entry.dist is not None else entry.value
    try:
        connector: Connector = entry.load()()
        major = connector.info.protocol_major
    except Exception as error:
        raise ConnectorHostError(
            "PZ0307",
            f"connector '{name}' of package '{origin}' does not load: {type(error).__name__}",
            hint=f"python -c \"import {entry.module}\" shows why; reinstall or upgrade '{origin}'",
        ) from error
    if major != PROTOCOL_MAJOR:
        raise ConnectorHostError(
            "PZ0306",
            f"connector '{name}' of package '{origin}' is built for contract {major}, this version offers "
            f"{PROTOCOL_MAJOR}",
            hint=f"pip install --upgrade {origin}",
        )
    return connector
