"""One op for each way in which a translator partitions the assets of a flow.

Dagster launches an op for one set of partitions, so assets that are cut otherwise, or not at all, belong to another one.
"""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
from msgspec import structs

from pz_dagster.errors import PzDefinitionError
from pz_dagster.keys import fold
from pz_dagster.specs import UnitSpecs
from pz_engine import Diagnostic


def parts_of(specs: UnitSpecs) -> Iterator[UnitSpecs]:
    """Yield the specs of each op of a unit; the assets without partitions keep the unit's name and come first."""
    kinds: list[dg.PartitionsDefinition[str] | None] = []
    for spec in specs.assets:
        if spec.partitions_def not in kinds:
            kinds.append(spec.partitions_def)
    if len(kinds) <= 1:
        yield specs
        return
    kinds.sort(key=lambda kind: kind is not None)
    for number, kind in enumerate(kinds):
        assets = tuple(spec for spec in specs.assets if spec.partitions_def == kind)
        keys = {spec.key for spec in assets}
        checks = tuple(check for check in specs.checks if check.asset_key in keys)
        known = [*(spec.metadata for spec in assets), *(check.metadata or {} for check in checks)]
        ids = frozenset(str(metadata["pz/node_id"]) for metadata in known)
        label = min(str(spec.metadata["pz/node"]) for spec in assets)
        name = specs.unit.name if number == 0 else f"{specs.unit.name}__{fold(label)}"
        yield structs.replace(
            specs,
            unit=structs.replace(specs.unit, name=name, pool=specs.unit.pool or specs.unit.name, node_ids=ids),
            assets=assets,
            checks=checks,
        )


def require_one_part(specs: UnitSpecs) -> None:
    """Check what is to be one op.

    Raises:
        PzDefinitionError: `PZ0703`, a translator partitions its assets in several ways.
    """
    if len(list(parts_of(specs))) > 1:
        problem = f"the assets of op '{specs.unit.name}' are partitioned in several ways, and one op has one"
        hint = "return one answer from get_partitions_def for all of them, or use build_pz_assets, which makes more ops"
        raise PzDefinitionError([Diagnostic("PZ0703", problem, hint=hint)])
