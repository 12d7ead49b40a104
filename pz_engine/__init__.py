"""pz_engine: a batch SQL ETL engine on DuckDB.

Hosts import from here, connector authors from `pz_engine.connectors`, testers from `pz_engine.testing`; every deeper
path is private. Names are loaded on first use, so importing the package costs nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"
