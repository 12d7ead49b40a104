"""What people may rely on: names, parameters, methods to override, switches and their defaults."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

import pz_dagster
from pz_dagster import PzProject, PzTranslator, PzTranslatorSettings, bindings, build_pz_assets, errors
from pz_engine.testing.project_factory import ProjectFactory

ROOT = Path(__file__).parents[2]
SHARED = {
    "select",
    "exclude",
    "translator",
    "checks",
    "partitions_def",
    "partition_by",
    "backfill_policy",
    "retry_policy",
}
METHODS = {
    "get_asset_spec", "get_asset_key", "get_remote_key", "get_deps", "get_group_name", "get_kinds", "get_tags",
    "get_owners", "get_description", "get_metadata", "get_code_version", "get_automation_condition",
    "get_freshness_policy", "get_partitions_def", "get_check_spec", "get_check_severity",
}  # fmt: skip


def parameters(of: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(of).parameters)


def test_twelve_names_are_public() -> None:
    """And every one is there."""
    assert set(pz_dagster.__all__) == {
        "PzProject", "PzTranslator", "PzTranslatorSettings", "pz_assets", "build_pz_assets", "build_pz_definitions",
        "PzResource", "PzInvocation", "PzRunConfig", "build_pz_schedules", "build_pz_sensors", "PzProjectComponent",
    }  # fmt: skip
    assert all(hasattr(pz_dagster, name) for name in pz_dagster.__all__)
    assert issubclass(errors.PzDagsterError, dg.Failure)
    assert issubclass(errors.PzDefinitionError, dg.DagsterInvalidDefinitionError)


def test_calls_take_what_they_are_documented_to_take() -> None:
    """Everything after the project is named; nothing selects or partitions by default, and checks gate."""
    for call, own in (
        (pz_dagster.pz_assets, {"name", "pool", "op_tags", "required_resource_keys"}),
        (pz_dagster.build_pz_assets, {"op_per", "pool", "op_tags"}),
        (pz_dagster.build_pz_definitions, {"op_per", "resource", "resource_key", "schedules", "sensors", "freshness"}),
    ):
        found = parameters(call)
        assert found.keys() >= SHARED | own
        assert all(each.kind is each.KEYWORD_ONLY for name, each in found.items() if name != "project")
        wanted = {"select": "*", "exclude": None, "checks": "gate", "partitions_def": None, "partition_by": ()}
        assert {name: found[name].default for name in wanted} == wanted
    assert parameters(pz_dagster.build_pz_schedules)["default_status"].default is dg.DefaultScheduleStatus.STOPPED
    assert parameters(pz_dagster.build_pz_schedules)["timezone"].default == "UTC"
    assert parameters(pz_dagster.build_pz_sensors)["default_status"].default is dg.DefaultSensorStatus.STOPPED
    assert parameters(pz_dagster.build_pz_sensors)["backlog"].default is False
    fields = pz_dagster.PzResource.model_fields
    assert {name: fields[name].default for name in ("state_copy", "error_detail", "log_progress_seconds")} == {
        "state_copy": "auto",
        "error_detail": "auto",
        "log_progress_seconds": 30,
    }
    assert {"threads", "memory_limit", "duckdb_threads", "env"} <= fields.keys()
    config = {name: field.default for name, field in pz_dagster.PzRunConfig.model_fields.items()}
    assert config == {"full_refresh": False, "fail_fast": False, "until_caught_up": 1, "vars": {}, "checks": None}


def test_every_attribute_has_a_method_to_override() -> None:
    """One method for each attribute, and no other."""
    assert {name for name in vars(PzTranslator) if name.startswith("get_")} == METHODS


def test_switches_are_frozen_documented_and_off_where_they_cost() -> None:
    """Their defaults, and a reason for each in the source."""
    assert dataclasses.asdict(PzTranslatorSettings()) == {
        "granularity": "all",
        "group_by_folder": False,
        "key_prefix": (),
        "sql_in_description": True,
        "code_references": True,
        "column_lineage": False,
        "builtin_checks": frozenset({"drift"}),
        "expose_check_samples": False,
        "data_versions": True,
    }
    with pytest.raises(dataclasses.FrozenInstanceError):
        PzTranslatorSettings().granularity = "endpoints"  # type: ignore[misc]
    source = inspect.getsource(PzTranslatorSettings)
    for field in dataclasses.fields(PzTranslatorSettings):
        assert re.search(rf'\n    {field.name}: [^\n]+\n    """', source), field.name


def test_definitions_hold_no_graph_and_no_object(shop: ProjectFactory) -> None:
    """Metadata is text, numbers and Dagster's own values; an op finds its project through one tag."""
    for definition in build_pz_assets(PzProject(shop.directory)):
        assert definition.op.tags["pz/binding"] in bindings._BINDINGS
        assert definition.op.tags["pz/project"] == "shop"
        assert definition.op.tags["pz/flow"] == definition.op.name
        assert definition.op.tags["pz/fingerprint"] == PzProject(shop.directory).fingerprint[:16]
        for spec in (*definition.specs, *definition.check_specs):
            for name, value in (spec.metadata or {}).items():
                own = type(value).__module__.partition(".")[0]
                assert own in ("builtins", "dagster"), (name, value)


def test_modules_whose_annotations_dagster_reads_have_real_ones() -> None:
    """Text in their place breaks config parameters and component fields."""
    for name in ("assets", "resource", "run_config", "automation", "component", "component_models"):
        assert "from __future__ import annotations" not in (ROOT / "pz_dagster" / f"{name}.py").read_text()
    assert "from __future__" not in (ROOT / "example_project" / "definitions.py").read_text()
