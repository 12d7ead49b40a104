"""One call from project to definitions."""

from __future__ import annotations

from typing import Any, Literal

import dagster as dg

from pz_dagster.assets import DEFAULT_RESOURCE_KEY, build_pz_assets
from pz_dagster.bindings import BINDING_TAG
from pz_dagster.project import PzProject
from pz_dagster.resource import PzResource
from pz_dagster.state_records import state_spec
from pz_dagster.translator import PzTranslator

_DEFAULT_RESOURCE = PzResource()


def build_pz_definitions(
    project: PzProject,
    *,
    select: str = "*",
    exclude: str | None = None,
    translator: PzTranslator | None = None,
    op_per: Literal["flow", "project"] = "flow",
    checks: Literal["gate", "observe"] = "gate",
    retry_policy: dg.RetryPolicy | None = None,
    pool: str | None = None,
    op_tags: dict[str, str] | None = None,
    resource: PzResource | None = None,
    resource_key: str = DEFAULT_RESOURCE_KEY,
) -> dg.Definitions:
    """Turn a project into assets, asset checks, one job for each unit, and the resource they run with.

    Args:
        project: the project.
        select: as for `build_pz_assets`, and so are the following ones up to `op_tags`.
        exclude: see `select`.
        translator: see `select`.
        op_per: see `select`.
        checks: see `select`.
        retry_policy: see `select`.
        pool: see `select`.
        op_tags: see `select`.
        resource: engine settings; all projects of a location share one default, so their definitions merge.
        resource_key: the resource's key; a project with a resource of its own takes a key of its own.

    Raises:
        PzDefinitionError: as for `build_pz_assets`.
    """
    assets = build_pz_assets(
        project,
        select=select,
        exclude=exclude,
        translator=translator,
        op_per=op_per,
        checks=checks,
        retry_policy=retry_policy,
        pool=pool,
        op_tags=op_tags,
        resource_key=resource_key,
    )
    jobs: list[Any] = [
        dg.define_asset_job(f"{definition.op.name}_job", selection=dg.AssetSelection.assets(*definition.keys))
        for definition in assets
        if BINDING_TAG in definition.op.tags
    ]
    prefix = translator.settings.key_prefix if translator is not None else ()
    state = [state_spec(project.snapshot.project_name, prefix)] if project.snapshot.compiled.nodes else []
    return dg.Definitions(assets=[*assets, *state], jobs=jobs, resources={resource_key: resource or _DEFAULT_RESOURCE})
