"""What a relation holds, whatever the order of its rows: their number and the sum of their hashes.

Hashes differ between DuckDB versions; a fingerprint that does not match only costs a full delivery.
"""

from __future__ import annotations

from msgspec import Struct

from pz_engine.duck.session import DuckCursor


class Fingerprint(Struct, frozen=True):
    """Content of a relation."""

    rows: int
    digest: str
    """Decimal text; `0` when the relation is empty."""


def fingerprint_of(cursor: DuckCursor, relation: str) -> Fingerprint:
    """Look at a whole relation once."""
    query = f"select count(*), coalesce(cast(sum(cast(hash(r) as hugeint)) as varchar), '0') from {relation} as r"
    rows, digest = cursor.rows(query)[0]
    return Fingerprint(int(rows), str(digest))
