"""Check nodes as Dagster check results."""

from __future__ import annotations

from typing import Any

import dagster as dg

from pz_dagster.discretion import CHECK_FAILED, Discretion
from pz_engine import NodeResult, NodeStatus


def check_result(
    result: NodeResult, key: dg.AssetCheckKey, severity: dg.AssetCheckSeverity, discretion: Discretion
) -> dg.AssetCheckResult:
    """Build the result of a check that ran or could not be evaluated.

    Args:
        result: what the engine reported; not a skipped node.
        key: the check.
        severity: of a violation; a check that could not be evaluated is always an error.
        discretion: what may be shown.
    """
    metadata: dict[str, Any] = {"pz/duration_ms": result.duration_ms}
    if result.provenance is not None:
        metadata = {"pz/provenance": result.provenance}
    description: str | None = None
    passed = result.status is NodeStatus.SUCCESS
    if passed:
        metadata["pz/violations"] = 0
    elif result.error is not None:
        metadata["pz/error_code"] = result.error.code
        description = discretion.error(result)
        if result.error.code != CHECK_FAILED:
            metadata["pz/evaluated"] = False
            severity = dg.AssetCheckSeverity.ERROR
        elif result.rows is not None:
            metadata["pz/violations"] = result.rows
    return dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=passed,
        severity=severity if not passed else dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
        description=description,
    )
