"""Every spec of the example project, as one golden file."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster import bindings

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "dagster" / "example_specs.json"


def test_the_specs_of_the_example_are_pinned(
    tmp_path: Path, golden_update: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ops, pools, assets, edges, groups, tags, descriptions, versions, metadata, checks, jobs, timing."""
    monkeypatch.setattr(bindings, "_BINDINGS", {})  # copies of the example that other tests loaded have numbered names
    definitions = example_definitions(tmp_path)
    found = {
        "ops": [_op(each) for each in definitions.assets or [] if isinstance(each, dg.AssetsDefinition)],
        "jobs": sorted(job.name for job in definitions.jobs or []),
        "schedules": {each.name: each.cron_schedule for each in definitions.schedules or []},
        "sensors": sorted(each.name for each in definitions.sensors or []),
        "resources": sorted(definitions.resources or {}),
    }
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    if golden_update:
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def example_definitions(folder: Path, *, data: bool = False) -> dg.Definitions:
    """Load the definitions of a copy of the example, its data only on request."""
    leftovers = shutil.ignore_patterns(".pz", "output", "*.duckdb", "__pycache__", *(() if data else ("data",)))
    shutil.copytree(ROOT / "example_project", folder / "example", ignore=leftovers)
    found = runpy.run_path(str(folder / "example" / "definitions.py"))["defs"]
    assert isinstance(found, dg.Definitions)
    return found


def _op(definition: dg.AssetsDefinition) -> dict[str, Any]:
    return {
        "op": definition.op.name,
        "pool": definition.op.pool,
        "tags": {key: value for key, value in definition.op.tags.items() if key != "pz/fingerprint"},
        "assets": [_asset(spec) for spec in sorted(definition.specs, key=lambda spec: spec.key)],
        "checks": [_check(spec) for spec in sorted(definition.check_specs, key=lambda spec: spec.key)],
    }


def _asset(spec: dg.AssetSpec) -> dict[str, Any]:
    return {
        "key": spec.key.to_user_string(),
        "deps": sorted(dep.asset_key.to_user_string() for dep in spec.deps),
        "group": spec.group_name,
        "tags": dict(sorted(spec.tags.items())),
        "description": spec.description,
        "code_version": spec.code_version,
        "owners": list(spec.owners),
        "freshness": str(spec.freshness_policy.fail_window.to_timedelta()) if spec.freshness_policy else None,
        "metadata": {
            key: _plain(value) for key, value in sorted(spec.metadata.items()) if not key.startswith("dagster_")
        },
    }


def _check(spec: dg.AssetCheckSpec) -> dict[str, Any]:
    return {
        "asset": spec.asset_key.to_user_string(),
        "name": spec.name,
        "blocking": spec.blocking,
        "description": spec.description,
        "metadata": {key: _plain(value) for key, value in sorted(spec.metadata.items())},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dg.CodeReferencesMetadataValue):
        return [[each.label, getattr(each, "source", None)] for each in value.code_references]
    schema = getattr(value, "schema", value)
    if isinstance(schema, dg.TableSchema):
        return {column.name: column.type for column in schema.columns}
    return getattr(value, "value", value)
