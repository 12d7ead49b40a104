"""One call from project to definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal

import dagster as dg

from pz_dagster.assets import DEFAULT_RESOURCE_KEY, build_pz_assets
from pz_dagster.automation import Timing, job_tags_of, schedules_of, with_freshness
from pz_dagster.bindings import BINDING_TAG
from pz_dagster.partitions import Partitioning
from pz_dagster.project import PzProject
from pz_dagster.resource import PzResource
from pz_dagster.state_records import state_key, state_spec
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
    partitions_def: dg.PartitionsDefinition[str] | None = None,
    partition_by: Sequence[str] = (),
    backfill_policy: dg.BackfillPolicy | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    pool: str | None = None,
    op_tags: dict[str, str] | None = None,
    resource: PzResource | None = None,
    resource_key: str = DEFAULT_RESOURCE_KEY,
    schedules: Mapping[str, str | tuple[str, str]] | None = None,
    sensors: Sequence[dg.SensorDefinition] = (),
    freshness: Mapping[str, timedelta] | None = None,
    job_tags: Mapping[str, str] | None = None,
) -> dg.Definitions:
    """Turn a project into assets, asset checks, one job for each unit, and the resource they run with.

    Args:
        project: the project.
        select: as for `build_pz_assets`, and so are the following ones up to `op_tags`.
        exclude: see `select`.
        translator: see `select`.
        op_per: see `select`.
        checks: see `select`.
        partitions_def: see `select`.
        partition_by: see `select`.
        backfill_policy: see `select`.
        retry_policy: see `select`.
        pool: see `select`.
        op_tags: see `select`.
        resource: engine settings; all projects of a location share one default, so their definitions merge.
        resource_key: the resource's key; a project with a resource of its own takes a key of its own.
        schedules: by name, a cron expression or a pair of cron and `pz ls --select` expression, in UTC, stopped; more
            can be said with `build_pz_schedules`.
        sensors: for example those of `build_pz_sensors`.
        freshness: how often sinks are expected to be written, by pattern of their name, such as `mart.*`.
        job_tags: in place of the tags that jobs have, tag by tag.

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
        partitions_def=partitions_def,
        partition_by=partition_by,
        backfill_policy=backfill_policy,
        retry_policy=retry_policy,
        pool=pool,
        op_tags=op_tags,
        resource_key=resource_key,
    )
    snapshot = project.snapshot
    if freshness:
        assets = with_freshness(assets, snapshot, freshness)
    jobs: list[Any] = [
        dg.define_asset_job(
            f"{definition.op.name}_job",
            selection=dg.AssetSelection.assets(*definition.keys),
            tags={**job_tags_of(snapshot, ()), "pz/flow": definition.op.tags["pz/flow"], **(job_tags or {})},
        )
        for definition in assets
        if BINDING_TAG in definition.op.tags
    ]
    keys = {
        str(spec.metadata["pz/node_id"]): spec.key
        for definition in assets
        for spec in definition.specs
        if "pz/node_id" in spec.metadata
    }
    timing = Timing(partitioning=Partitioning.of(partitions_def, partition_by, None), job_tags=dict(job_tags or {}))
    timed = schedules_of(snapshot, keys, schedules or {}, timing)
    prefix = translator.settings.key_prefix if translator is not None else ()
    state = [state_spec(snapshot.project_name, prefix)] if snapshot.compiled.nodes else []
    return dg.Definitions(
        assets=[*assets, *state],
        jobs=jobs,
        schedules=timed,
        sensors=sensors,
        resources={resource_key: resource or _DEFAULT_RESOURCE},
    )


def without_state(definitions: dg.Definitions, project: str) -> dg.Definitions:
    """Return the definitions of a part of a project without the asset of stored positions, which another part shows."""
    last = state_key(project, ()).path[-1]
    return dg.Definitions(
        assets=[
            each for each in definitions.assets or [] if not isinstance(each, dg.AssetSpec) or each.key.path[-1] != last
        ],
        jobs=definitions.jobs,
        schedules=definitions.schedules,
        sensors=definitions.sensors,
        resources=definitions.resources,
    )
