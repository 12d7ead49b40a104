"""Process that writes one entity and dies where `PZ_FAULT` says; started by the connector suite.

Called as `python -m pz_engine.testing.connector_suite_child module:function folder`.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from pz_engine.connectors.capabilities import Capability
from pz_engine.duck.session import DuckSession, DuckSettings
from pz_engine.model.policies import Strategy
from pz_engine.testing.connector_suite_driver import ConnectorHarness, write_batches


def main(origin: str, directory: str) -> None:
    """Build the harness and write one row."""
    module, _, function = origin.partition(":")
    harness: ConnectorHarness = getattr(importlib.import_module(module), function)(Path(directory))
    replaces = Capability.REPLACE_WRITES in harness.connector.capabilities
    with DuckSession.open(None, DuckSettings(threads=1)) as session, session.cursor() as cursor:
        query = "select 2 as k, 'after' as v"
        write_batches(cursor, harness, "orders", query, Strategy.REPLACE if replaces else Strategy.APPEND)


if __name__ == "__main__":
    main(*sys.argv[1:])
