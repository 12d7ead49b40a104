"""A column contract beside the columns a source really has.

Text files have no types to compare: each value is tested when it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from pz_engine.base.csv_headers import match_column
from pz_engine.base.near_miss import did_you_mean
from pz_engine.duck.schema_policies import widened_type
from pz_engine.model.contract_types import CONTRACT_TYPE_NAMES, duck_type_of

_MOST_NAMES = 20


class Drift(Struct, frozen=True):
    """One declared column that the source has not, or not so."""

    column: str
    problem: str
    hint: str


def missing_column(name: str, found: Sequence[str]) -> Drift:
    """Describe a declared column that the source lacks."""
    listed = ", ".join(found[:_MOST_NAMES]) + (", …" if len(found) > _MOST_NAMES else "")
    return Drift(
        name, f"the source has no column '{name}'", did_you_mean(name, found) or f"its columns are: {listed or 'none'}"
    )


def find_drift(contract: Mapping[str, str], found: Mapping[str, frozenset[str]]) -> Iterator[Drift]:
    """Yield what differs, by column name.

    Args:
        contract: column to contract type.
        found: column of the source to the DuckDB types that name it equally well; the first in the alphabet is shown.
    """
    for name in sorted(contract):
        origin = match_column(found, name)
        if origin is None:
            yield missing_column(name, tuple(found))
        elif not any(_is_declared_as(kind, duck_type_of(contract[name]) or "") for kind in found[origin]):
            kind = min(found[origin])
            fitting = contract_name(kind)
            declare = f"declare '{name}' as {fitting}" if fitting is not None else f"declare '{name}' as varchar"
            yield Drift(
                name,
                f"column '{name}' is declared as {contract[name]}, the source has {kind}",
                f"{declare}, or correct the source",
            )


def contract_name(duck_type: str) -> str | None:
    """Return the contract type that stands for a DuckDB type, or None when there is none.

    >>> contract_name("BIGINT"), contract_name("DECIMAL(10,2)"), contract_name("TIMESTAMP_NS")
    ('bigint', 'decimal(10,2)', None)
    """
    names = (*CONTRACT_TYPE_NAMES, duck_type.lower())
    return next((name for name in names if duck_type_of(name) == duck_type), None)


def _is_declared_as(found: str, declared: str) -> bool:
    """Tell whether a contract names a type; one that no contract can name may be declared as what holds its values."""
    if found == declared:
        return True
    if contract_name(found) is not None:
        return False
    if declared == "VARCHAR" or found == '"NULL"':
        return True
    if found.startswith("TIMESTAMP_"):
        return declared == "TIMESTAMP"
    return widened_type(found, declared) == declared
