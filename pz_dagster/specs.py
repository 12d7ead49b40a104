"""A snapshot's nodes as specs, with every collision found before Dagster meets it."""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg

from pz_dagster.errors import PzDefinitionError
from pz_dagster.keys import joined
from pz_dagster.snapshot import Snapshot
from pz_dagster.translator import PzTranslator
from pz_dagster.units import Unit
from pz_engine import CheckNode, Diagnostic, Node


@dataclass(frozen=True)
class UnitSpecs:
    """Specs of one op."""

    assets: tuple[dg.AssetSpec, ...]
    checks: tuple[dg.AssetCheckSpec, ...]


def asset_keys(snapshot: Snapshot, translator: PzTranslator) -> dict[str, dg.AssetKey]:
    """Return the final key of every node but checks, by node id.

    Raises:
        PzDefinitionError: `PZ0702`, two nodes meet in one key or in one output name.
    """
    keys: dict[str, dg.AssetKey] = {}
    seen: dict[str, Node] = {}
    problems: list[Diagnostic] = []
    for node in snapshot.compiled.nodes:
        if isinstance(node, CheckNode):
            continue
        key = translator.get_asset_key(node, snapshot)
        other = seen.get(joined(key))
        if other is not None:
            problems.append(
                Diagnostic(
                    "PZ0702",
                    f"'{node.name}' ({node.file}) and '{other.name}' ({other.file}) share the asset key {key.to_user_string()}",
                    node.file,
                    node.line,
                    "rename one of them, or override PzTranslator.get_asset_key",
                )
            )
        seen[joined(key)] = node
        keys[node.id] = key
    if problems:
        raise PzDefinitionError(problems)
    return keys


def unit_specs(snapshot: Snapshot, unit: Unit, translator: PzTranslator, *, is_gate: bool) -> UnitSpecs:
    """Build the specs of one unit.

    Raises:
        PzDefinitionError: `PZ0702`.
    """
    keys, graph = asset_keys(snapshot, translator), snapshot.compiled.graph
    nodes = [node for node in snapshot.compiled.nodes if node.id in unit.node_ids]
    assets = tuple(translator.get_asset_spec(node, snapshot, keys) for node in nodes if not isinstance(node, CheckNode))
    final = {spec.metadata["pz/node_id"]: spec.key for spec in assets}
    checks: list[dg.AssetCheckSpec] = []
    for node in nodes:
        if isinstance(node, CheckNode):
            pipeline = graph.by_name[node.pipeline]
            asset = final.get(pipeline.id, keys[pipeline.id])
            checks.append(translator.get_check_spec(node, snapshot, asset, is_gate=is_gate))
    _refuse_equal_checks(checks)
    return UnitSpecs(assets, tuple(checks))


def _refuse_equal_checks(checks: list[dg.AssetCheckSpec]) -> None:
    seen: set[tuple[dg.AssetKey, str]] = set()
    problems: list[Diagnostic] = []
    for spec in checks:
        identity = (spec.asset_key, spec.name)
        if identity in seen:
            problems.append(Diagnostic("PZ0702", f"two checks are called '{spec.name}'", hint="rename one of them"))
        seen.add(identity)
    if problems:
        raise PzDefinitionError(problems)
