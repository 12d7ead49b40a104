"""A snapshot's nodes as specs, with every collision found before Dagster meets it.

Dependencies are settled last, from the final key of every node, so a translator that renames a key leaves no dangling
parent.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

import dagster as dg
from msgspec import Struct

from pz_dagster.builtin_checks import builtin_check_specs
from pz_dagster.errors import PzDefinitionError
from pz_dagster.keys import PLACEHOLDER, asset_key, check_output_name, output_name
from pz_dagster.location import Claim, claimed_by_others
from pz_dagster.snapshot import Snapshot
from pz_dagster.state_records import state_key
from pz_dagster.tables import problem_table
from pz_dagster.translation import Translation, translate
from pz_dagster.translator import PzTranslator
from pz_dagster.units import Unit
from pz_dagster.visibility import home_of, visible_parents
from pz_engine import CheckNode, Diagnostic, Graph, Node, PipelineNode, SinkWriteNode, SourceLoadNode

_LOGGER = logging.getLogger("pz_dagster")


class UnitSpecs(Struct, frozen=True):
    """Specs of one op."""

    unit: Unit
    assets: tuple[dg.AssetSpec, ...]
    checks: tuple[dg.AssetCheckSpec, ...]
    outputs: Mapping[str, Claim]
    """Output names of the op."""

    problems: tuple[Diagnostic, ...] = ()


def build_specs(
    snapshot: Snapshot, units: Sequence[Unit], translator: PzTranslator, *, identity: str, is_gate: bool
) -> tuple[UnitSpecs, ...]:
    """Build the specs of a project's units.

    Args:
        snapshot: the project.
        units: its ops; nodes of no unit only lend their keys.
        translator: how nodes look.
        identity: tells the project from others of the process.
        is_gate: whether failing checks block.

    Raises:
        PzDefinitionError: `PZ0702`, two nodes meet in one key or in one output name. Nodes of two projects are only
            warned about, because this process may hold several code locations; Dagster refuses them in one.
    """
    view = translate(translator, snapshot)
    assets = _asset_specs(snapshot, units, view)
    found = [_unit_specs(unit, view, assets, is_gate=is_gate) for unit in units]
    problems = _key_collisions(view, assets)
    problems.extend(problem for each in found for problem in each.problems if problem not in problems)
    outputs = {name: claim for each in found for name, claim in each.outputs.items()}
    if problems:
        raise PzDefinitionError(problems)
    for name, other in claimed_by_others(identity, outputs).items():
        _LOGGER.warning("%s", _collision(outputs[name], other, name))
    return tuple(found)


def _asset_specs(snapshot: Snapshot, units: Sequence[Unit], view: Translation) -> dict[str, dg.AssetSpec]:
    nodes, keys, specs = view.nodes, view.keys, view.specs
    renamed = {keys[node_id]: spec.key for node_id, spec in specs.items()}
    deps = {
        node_id: [
            dg.AssetDep(renamed.get(dep.asset_key, dep.asset_key), partition_mapping=dep.partition_mapping)
            for dep in spec.deps
        ]
        for node_id, spec in specs.items()
    }
    final = {node_id: spec.key for node_id, spec in specs.items()}
    _leave_out_namesakes(view, final, renamed, deps)
    kept = _orderly(snapshot.compiled.graph, final, deps, units)
    return {
        node.id: specs[node.id].replace_attributes(
            deps=kept[node.id],
            skippable=True,
            metadata={**specs[node.id].metadata, **_identity(node), **_warnings(node, snapshot)},
        )
        for node in nodes
    }


def _leave_out_namesakes(
    view: Translation,
    keys: Mapping[str, dg.AssetKey],
    renamed: Mapping[dg.AssetKey, dg.AssetKey],
    deps: Mapping[str, list[dg.AssetDep]],
) -> None:
    """Remove dependencies of loads on a load or pipeline that is only called like the remote entity they read.

    A connection may be called like the project, and an entity of it like a pipeline.
    """
    snapshot, translator = view.snapshot, view.translator
    graph = snapshot.compiled.graph
    namesakes = {key for node_id, key in keys.items() if not isinstance(graph.by_id[node_id], SinkWriteNode)}
    for node_id, wanted in deps.items():
        node = graph.by_id[node_id]
        if isinstance(node, SourceLoadNode) and any(dep.asset_key in namesakes for dep in wanted):
            remote = translator.get_remote_key(node, snapshot)
            remote = renamed.get(remote, remote)
            wanted[:] = [dep for dep in wanted if dep.asset_key != remote or remote not in namesakes]


def _identity(node: Node) -> dict[str, str]:
    """Name the node in a way that survives whatever is done to its key later."""
    return {"pz/node_id": node.id, "pz/node": node.name}


def _warnings(node: Node, snapshot: Snapshot) -> dict[str, dg.MetadataValue]:
    files = {node.file, getattr(node, "sidecar", None)}
    found = [warning for warning in snapshot.compiled.warnings if warning.file in files]
    if not found or not isinstance(node, PipelineNode):
        return {}
    return {"pz/warnings": problem_table(found)}


def _orderly(
    graph: Graph, keys: Mapping[str, dg.AssetKey], deps: Mapping[str, list[dg.AssetDep]], units: Sequence[Unit]
) -> dict[str, list[dg.AssetDep]]:
    """Leave out what Dagster could not order: edges inside an op that the engine does not know, and edges in a circle."""
    node_of = {key: node_id for node_id, key in keys.items()}
    unit_of = {node_id: unit.name for unit in units for node_id in unit.node_ids}
    above: dict[str, set[str]] = {node_id: set(visible_parents(graph.by_id[node_id], graph, keys)) for node_id in keys}
    kept: dict[str, list[dg.AssetDep]] = {}
    for node_id, wanted in deps.items():
        kept[node_id] = []
        for dep in wanted:
            parent = node_of.get(dep.asset_key)
            if parent is None or parent in above[node_id]:
                kept[node_id].append(dep)
            elif unit_of.get(parent) is not None and unit_of.get(parent) == unit_of.get(node_id):
                continue
            elif node_id == parent or node_id in _reach(above, parent):
                _LOGGER.warning("%s reads what it leads to; Dagster shows no edge", keys[node_id].to_user_string())
            else:
                above[node_id].add(parent)
                kept[node_id].append(dep)
    return kept


def _reach(above: Mapping[str, Iterable[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for parent in above[waiting.pop()]:
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found


def _unit_specs(unit: Unit, view: Translation, assets: Mapping[str, dg.AssetSpec], *, is_gate: bool) -> UnitSpecs:
    snapshot, settings = view.snapshot, view.translator.settings
    graph = snapshot.compiled.graph
    ordered = [graph.by_id[node_id] for node_id in sorted(unit.node_ids, key=snapshot.position.__getitem__)]
    within = assets.keys() & unit.node_ids
    found: list[dg.AssetSpec] = []
    checks: list[dg.AssetCheckSpec] = []
    outputs = _reserved(view)
    problems: list[Diagnostic] = []
    for node in ordered:
        own = _claim(node, snapshot)
        names: list[str] = []
        if isinstance(node, CheckNode):
            home = home_of(node, graph, within)
            if home is None:
                _LOGGER.warning("check '%s' is left out: nothing above its pipeline is an asset", node.name)
                continue
            spec = view.check_spec(node, assets[home.id].key, is_gate=is_gate)
            checks.append(_identified(spec, node))
            names.append(check_output_name(spec))
        elif node.id in assets:
            found.append(assets[node.id])
            names.append(output_name(assets[node.id].key))
            for spec in builtin_check_specs(node, assets[node.id].key, snapshot, settings):
                checks.append(_identified(spec, node))
                names.append(check_output_name(spec))
        for name in names:
            if name in outputs:
                problems.append(_collision(own, outputs[name], name))
            outputs[name] = own
    return UnitSpecs(unit, tuple(found), tuple(checks), outputs, tuple(problems))


def _identified(spec: dg.AssetCheckSpec, node: Node) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        spec.name,
        asset=spec.asset_key,
        description=spec.description,
        additional_deps=spec.additional_deps,
        blocking=spec.blocking,
        metadata={**spec.metadata, **_identity(node)},
        automation_condition=spec.automation_condition,
    )


def _reserved(view: Translation) -> dict[str, Claim]:
    """Return the keys that belong to the project itself, which no node may have."""
    project = view.snapshot.project_name
    own = {
        state_key(project, view.translator.settings.key_prefix): "the asset of stored positions",
        asset_key([project, PLACEHOLDER]): "the placeholder of a project that does not compile",
    }
    return {output_name(key): Claim(what, "project.yml", project) for key, what in own.items()}


def _key_collisions(view: Translation, assets: Mapping[str, dg.AssetSpec]) -> list[Diagnostic]:
    """Compare all nodes of the project, those of different ops too."""
    snapshot = view.snapshot
    seen = _reserved(view)
    problems: list[Diagnostic] = []
    for node_id, spec in assets.items():
        node = snapshot.compiled.graph.by_id[node_id]
        name, own = output_name(spec.key), _claim(node, snapshot)
        if name in seen:
            problems.append(_collision(own, seen[name], name))
        seen.setdefault(name, own)
    return problems


def _claim(node: Node, snapshot: Snapshot) -> Claim:
    """Name a node and the file a person would edit: a sink's is its pipeline's."""
    file = snapshot.compiled.graph.by_name[node.pipeline].file if isinstance(node, SinkWriteNode) else node.file
    return Claim(node.name, file, snapshot.project_name)


def _collision(own: Claim, other: Claim, name: str) -> Diagnostic:
    where = "" if own.project == other.project else f" of project '{other.project}'"
    return Diagnostic(
        "PZ0702",
        f"'{own.node}' ({own.file}) and '{other.node}' ({other.file}){where} both become '{name}' in Dagster",
        own.file,
        hint="rename one of them, set key_prefix in PzTranslatorSettings, or override PzTranslator.get_asset_key"
        " (for a check: get_check_spec)",
    )
