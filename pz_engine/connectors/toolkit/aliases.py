"""Names under which a connection's databases and secrets are known to a DuckDB session."""

from __future__ import annotations

import hashlib

from pz_engine.base.identifiers import fold


def session_name(connector: str, connection: str) -> str:
    """Return a name that two different connections never share.

    The hash is of the name as written, because `prod-db` and `prod_db` fold to the same word and the second attach
    under one alias would silently read the first's database.

    >>> session_name("duckdb", "prod-db") == session_name("duckdb", "prod_db")
    False
    """
    digest = hashlib.sha256(connection.encode()).hexdigest()[:8]
    return f"pz_{connector}_{fold(connection)}_{digest}"
