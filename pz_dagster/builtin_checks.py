"""What the engine watches by itself, as asset checks: schema drift, merge keys, and types inferred from text.

Such a check has no node of its own. It is evaluated while its load or sink runs and passes when the engine reports
nothing; none of them blocks, because the engine itself stops what must not go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
from msgspec import Struct

from pz_dagster.findings import Finding, plain
from pz_dagster.settings import PzTranslatorSettings
from pz_dagster.snapshot import Snapshot
from pz_engine import Node, SinkWriteNode, SourceLoadNode, Strategy

BUILTIN_KEY = "pz/builtin"
"""Metadata key of a spec that holds the switch it comes from."""

_MOST_SHOWN = 20
"""How many findings of an op that makes many runs are shown in full, the newest ones."""


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
    switch: str, key: dg.AssetCheckKey, provenance: str | None, findings: Sequence[Finding], passes: Sequence[int] = ()
) -> dg.AssetCheckResult:
    """Build the result of a check whose subject was looked at.

    Args:
        switch: which check.
        key: its key.
        provenance: where the rows come from, if from an earlier run.
        findings: what the engine reported, one for each event, the newest last.
        passes: which run of the engine each finding is of, in an op that makes several; else empty.
    """
    metadata: dict[str, Any] = {}
    if provenance is not None:
        metadata["pz/provenance"] = provenance
    if switch == "dates" and findings:
        schema = dg.TableSchema([dg.TableColumn(name, "string") for name in ("columns", "format")])
        rows = dict.fromkeys((found["columns"], found["format"]) for found in findings)
        records = [dg.TableRecord({"columns": columns, "format": text}) for columns, text in rows]
        metadata["pz/formats"] = dg.MetadataValue.table(records, schema=schema)
    elif findings:
        metadata.update({f"pz/{name}": value for name, value in findings[-1].items()})
    if passes:
        metadata["pz/found_in_passes"] = ", ".join(str(number) for number in dict.fromkeys(passes))
        shown = [{"pass": number, **plain(found)} for number, found in zip(passes, findings, strict=True)]
        metadata["pz/found"] = dg.MetadataValue.json(shown[-_MOST_SHOWN:])
    is_error = any(found.get("policy") == "fail" for found in findings)
    return dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=not findings,
        severity=dg.AssetCheckSeverity.WARN if findings and not is_error else dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
    )


def unevaluated_check_result(key: dg.AssetCheckKey) -> dg.AssetCheckResult:
    """Build the result of a check whose subject the engine wanted to look at and could not."""
    return dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=False,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={"pz/evaluated": False},
        description="the accepted columns could not be read or stored; the run's notes say why",
    )


def _applies(switch: str, node: Node, snapshot: Snapshot) -> bool:
    if isinstance(node, SinkWriteNode):
        return switch == "merge_keys" and node.strategy is Strategy.MERGE
    if not isinstance(node, SourceLoadNode):
        return False
    if switch == "drift":
        return not node.columns and snapshot.drift_policy != "ignore"
    return switch in ("integers", "dates") and node.id in snapshot.inferring
