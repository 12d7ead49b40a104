"""Every spec of the example project, as one golden file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import dagster as dg

from pz_dagster import PzProject, build_pz_definitions

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "dagster" / "example_specs.json"


def test_the_specs_of_the_example_are_pinned(tmp_path: Path, golden_update: bool) -> None:
    """Ops, assets, edges, groups, kinds, tags, descriptions, versions, metadata, checks and jobs."""
    leftovers = shutil.ignore_patterns(".pz", "output", "data", "*.duckdb", "__pycache__")
    shutil.copytree(ROOT / "example_project", tmp_path / "example", ignore=leftovers)
    definitions = build_pz_definitions(PzProject(tmp_path / "example"))
    found = {
        "ops": [_op(each) for each in definitions.assets or [] if isinstance(each, dg.AssetsDefinition)],
        "jobs": sorted(job.name for job in definitions.jobs or []),
        "resources": sorted(definitions.resources or {}),
    }
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    if golden_update:
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def _op(definition: dg.AssetsDefinition) -> dict[str, Any]:
    return {
        "op": definition.op.name,
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
