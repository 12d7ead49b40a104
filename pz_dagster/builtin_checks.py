"""What the engine watches by itself, as asset checks: schema drift, merge keys, and types inferred from text.

Such a check has no node of its own. It is evaluated while its load or sink runs and passes when the engine reports
nothing; none of them blocks, because the engine itself stops what must not go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
from msgspec import Struct

from pz_dagster.findings import Finding
from pz_dagster.settings import PzTranslatorSettings
from pz_dagster.snapshot import Snapshot
from pz_engine import Node, NodeResult, NodeStatus, SinkWriteNode, SourceLoadNode, Strategy

BUILTIN_KEY = "pz/builtin"
"""Metadata key of a spec that holds the switch it comes from."""


class _Kind(Struct, frozen=True):
    check: str
    description: str


_KINDS: Mapping[str, _Kind] = {
    "drift": _Kind("schema_drift", "The columns are those that were accepted before."),
    "merge_keys": _Kind("merge_keys_unique", "No merge key occurs twice in what is written."),
    "integers": _Kind("lossless_integers", "No whole number was read into a type that cannot hold it exactly."),
    "dates": _Kind("unambiguous_dates", "Dates tell their day from their month."),
}


def builtin_check_specs(
    node: Node, key: dg.AssetKey, snapshot: Snapshot, settings: PzTranslatorSettings
) -> Iterator[dg.AssetCheckSpec]:
    """Yield the built-in checks of an asset, in the order of the switches."""
    for switch, kind in _KINDS.items():
        if switch in settings.builtin_checks and _applies(switch, node, snapshot):
            yield dg.AssetCheckSpec(
                kind.check, asset=key, description=kind.description, blocking=False, metadata={BUILTIN_KEY: switch}
            )


def builtin_check_result(
    switch: str, key: dg.AssetCheckKey, result: NodeResult, findings: Sequence[Finding]
) -> dg.AssetCheckResult | None:
    """Build the result once the node has ended; None when it ended too early to tell.

    Args:
        switch: which check.
        key: its key.
        result: how the node ended.
        findings: what the engine reported, one for each event.
    """
    if result.status is not NodeStatus.SUCCESS and not findings:
        return None
    metadata: dict[str, Any] = {}
    if result.provenance is not None:
        metadata["pz/provenance"] = result.provenance
    if switch == "dates" and findings:
        schema = dg.TableSchema([dg.TableColumn(name, "string") for name in ("columns", "format")])
        records = [dg.TableRecord({name: found[name] for name in ("columns", "format")}) for found in findings]
        metadata["pz/formats"] = dg.MetadataValue.table(records, schema=schema)
    elif findings:
        metadata.update({f"pz/{name}": value for name, value in findings[-1].items()})
    is_error = any(found.get("policy") == "fail" for found in findings)
    return dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=not findings,
        severity=dg.AssetCheckSeverity.WARN if findings and not is_error else dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
    )


def _applies(switch: str, node: Node, snapshot: Snapshot) -> bool:
    if isinstance(node, SinkWriteNode):
        return switch == "merge_keys" and node.strategy is Strategy.MERGE
    if not isinstance(node, SourceLoadNode):
        return False
    if switch == "drift":
        return not node.columns and snapshot.drift_policy != "ignore"
    return switch in ("integers", "dates") and node.id in snapshot.inferring
