"""When things run: jobs with schedules, a sensor that works off windows, freshness policies.

Every job made here carries the tags of its project and flow, and those that let Dagster repeat a crashed run, and only a
crashed one.
"""

import fnmatch
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg
from msgspec import Struct, field

from pz_dagster.backlog import BACKLOG_TAG, find_backlog
from pz_dagster.errors import PzDefinitionError
from pz_dagster.keys import fold, fold_tag, op_name
from pz_dagster.partitions import Partitioning
from pz_dagster.project import PzProject
from pz_dagster.snapshot import Snapshot
from pz_dagster.specs import build_specs
from pz_dagster.translator import PzTranslator
from pz_dagster.units import Unit, build_units
from pz_engine import CheckNode, Diagnostic, PzValidationError, SinkWriteNode

RUN_TAGS: Mapping[str, str] = {
    "dagster/max_retries": "1",
    "dagster/retry_strategy": "FROM_ASSET_FAILURE",
    "dagster/retry_on_asset_or_op_failure": "false",
}
"""A crashed run is tried once more from what it had not materialized; a failed node is not, the engine tried already."""


def build_pz_schedules(
    project: PzProject,
    schedules: Mapping[str, str | tuple[str, str]],
    *,
    timezone: str = "UTC",
    default_status: dg.DefaultScheduleStatus = dg.DefaultScheduleStatus.STOPPED,
    translator: PzTranslator | None = None,
    partitions_def: dg.PartitionsDefinition[str] | None = None,
    partition_by: Sequence[str] = (),
    job_tags: Mapping[str, str] | None = None,
) -> list[dg.ScheduleDefinition]:
    """Return one schedule for each name, each with a job `<project>__<name>_job` of its own.

    Args:
        project: the project.
        schedules: by name: a cron expression for everything, or a pair of cron expression and `pz ls --select` expression.
        timezone: what the cron expressions mean.
        default_status: stopped unless said otherwise; people start them.
        translator: the one that the assets were built with.
        partitions_def: likewise; a job with partitioned units is launched for the newest partition.
        partition_by: likewise.
        job_tags: in place of `RUN_TAGS` and the tags of project and flow, tag by tag.

    Raises:
        PzDefinitionError: `PZ0210`, an expression selects nothing.
    """
    snapshot = project.snapshot
    keys = _asset_keys(project, translator or PzTranslator()) if schedules else {}
    timing = Timing(timezone, default_status, Partitioning.of(partitions_def, partition_by, None), dict(job_tags or {}))
    return schedules_of(snapshot, keys, schedules, timing)


class Timing(Struct, frozen=True):
    """What the schedules of one call have in common."""

    timezone: str = "UTC"
    default_status: dg.DefaultScheduleStatus = dg.DefaultScheduleStatus.STOPPED
    partitioning: Partitioning | None = None
    job_tags: Mapping[str, str] = field(default_factory=dict)


def schedules_of(
    snapshot: Snapshot,
    keys: Mapping[str, dg.AssetKey],
    schedules: Mapping[str, str | tuple[str, str]],
    timing: Timing,
) -> list[dg.ScheduleDefinition]:
    """Return the schedules of assets that are defined; `keys` holds their keys by node id.

    Raises:
        PzDefinitionError: `PZ0210`, an expression selects none of them.
    """
    found = []
    for name, wanted in schedules.items():
        cron, expression = (wanted, None) if isinstance(wanted, str) else wanted
        ids = _select(snapshot, expression)
        assets = _selection(snapshot, keys, ids)
        if not assets:
            if snapshot.compiled.problems:
                continue
            problem = f"schedule '{name}' selects no asset of these definitions"
            raise PzDefinitionError([Diagnostic("PZ0210", problem, hint="see what 'pz ls --select' gives")])
        units = [unit for unit in build_units(snapshot) if unit.node_ids & ids]
        partitioning = timing.partitioning
        is_cut = partitioning is not None and any(partitioning.cuts(snapshot, unit) for unit in units)
        job_name = op_name(f"{fold(snapshot.project_name)}__{fold(name)}_job")
        if job_name in {f"{unit.name}_job" for unit in build_units(snapshot)}:  # of a schedule named after a sink
            job_name = op_name(f"{fold(snapshot.project_name)}__{fold(name)}_schedule_job")
        job = dg.define_asset_job(
            job_name,
            selection=dg.AssetSelection.assets(*assets),
            description=f"pz nodes `{expression}` on `{cron}`" if expression else f"The pz project on `{cron}`",
            tags={**job_tags_of(snapshot, units), **timing.job_tags},
        )
        common: dict[str, Any] = {
            "name": op_name(fold(name)),
            "job": job,
            "cron_schedule": cron,
            "execution_timezone": timing.timezone,
            "default_status": timing.default_status,
        }
        if partitioning is not None and is_cut:
            common["execution_fn"] = _newest_partition(partitioning.definition)
        found.append(dg.ScheduleDefinition(**common))
    return found


def build_pz_sensors(
    project: PzProject,
    *,
    backlog: bool = False,
    default_status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED,
    minimum_interval_seconds: int = 30,
    translator: PzTranslator | None = None,
    job_tags: Mapping[str, str] | None = None,
) -> list[dg.SensorDefinition]:
    """Return the sensors of a project.

    Args:
        project: the project.
        backlog: one sensor for each flow that reads windows up to a stop: while its newest load was not caught up and no
            run of the flow is queued or started, it launches the next one. The run's key is the watermark and the run
            that reached it, so a window is never asked for twice, not even one that fails; a load that has never run is
            not started.
        default_status: stopped unless said otherwise.
        minimum_interval_seconds: how often a sensor looks at most.
        translator: the one that the assets were built with.
        job_tags: as for `build_pz_schedules`.
    """
    snapshot = project.snapshot
    if not backlog or snapshot.compiled.problems or not snapshot.stopping:
        return []
    keys = _asset_keys(project, translator or PzTranslator())
    found = []
    for unit in build_units(snapshot):
        loads = {
            keys[node_id]: _sinks_below(snapshot, keys, node_id)
            for node_id in sorted(unit.node_ids & snapshot.stopping)
        }
        if loads:
            tags = {**job_tags_of(snapshot, [unit]), **(job_tags or {})}
            assets = [keys[node_id] for node_id in sorted(unit.node_ids) if node_id in keys]
            found.append(_backlog_sensor(unit, loads, assets, tags, default_status, minimum_interval_seconds))
    return found


def job_tags_of(snapshot: Snapshot, units: Sequence[Unit]) -> dict[str, str]:
    """Return the tags of a job: what it is about, its flow when it has one, and how Dagster repeats it."""
    tags = {**RUN_TAGS, "pz/project": fold_tag(snapshot.project_name) or fold(snapshot.project_name)}
    if len(units) == 1 and (flow := fold_tag(units[0].flow)):
        tags["pz/flow"] = flow
    return tags


def with_freshness(
    assets: Sequence[dg.AssetsDefinition], snapshot: Snapshot, freshness: Mapping[str, timedelta]
) -> list[dg.AssetsDefinition]:
    """Expect the sinks whose names match a pattern, such as `mart.*`, to be written that often; the first match counts.

    Raises:
        PzDefinitionError: `PZ0210`, a pattern matches no sink.
    """
    sinks = [node.name for node in snapshot.compiled.nodes if isinstance(node, SinkWriteNode)]
    idle = [pattern for pattern in freshness if not fnmatch.filter(sinks, pattern)]
    if idle and not snapshot.compiled.problems:
        raise PzDefinitionError(
            [
                Diagnostic("PZ0210", f"freshness: '{pattern}' matches no sink", hint="name a sink, such as mart.*")
                for pattern in idle
            ]
        )
    windows = {
        sink: next(window for pattern, window in freshness.items() if fnmatch.fnmatchcase(sink, pattern))
        for sink in sinks
        if any(fnmatch.fnmatchcase(sink, pattern) for pattern in freshness)
    }

    def expect(spec: dg.AssetSpec) -> dg.AssetSpec:
        window = windows.get(str(spec.metadata.get("pz/node")))
        if window is None:
            return spec
        return spec.replace_attributes(freshness_policy=dg.FreshnessPolicy.time_window(fail_window=window))

    return [definition.map_asset_specs(expect) for definition in assets]


def _backlog_sensor(
    unit: Unit,
    loads: Mapping[dg.AssetKey, Sequence[dg.AssetKey]],
    assets: Sequence[dg.AssetKey],
    tags: Mapping[str, str],
    default_status: dg.DefaultSensorStatus,
    minimum_interval_seconds: int,
) -> dg.SensorDefinition:
    def evaluate(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        found = find_backlog(context.instance, loads, assets)
        if isinstance(found, dg.SkipReason):
            return found
        marked = {**tags, BACKLOG_TAG: found.mark}
        return dg.RunRequest(run_key=found.run_key, asset_selection=list(assets), tags=marked)

    return dg.SensorDefinition(
        name=op_name(f"{unit.name}_backlog"),
        evaluation_fn=evaluate,
        minimum_interval_seconds=minimum_interval_seconds,
        description="Launches the next run while windows are left to read.",
        default_status=default_status,
        asset_selection=dg.AssetSelection.assets(*assets),
    )


def _sinks_below(snapshot: Snapshot, keys: Mapping[str, dg.AssetKey], load: str) -> list[dg.AssetKey]:
    graph = snapshot.compiled.graph
    below = sorted(graph.descendants([load]))
    return [keys[each] for each in below if isinstance(graph.by_id[each], SinkWriteNode) and each in keys]


def _newest_partition(definition: dg.TimeWindowPartitionsDefinition) -> Any:
    def evaluate(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        with dg.partition_loading_context(context.scheduled_execution_time):
            key = definition.get_last_partition_key()
        return dg.SkipReason("no partition has ended yet") if key is None else dg.RunRequest(partition_key=key)

    return evaluate


def _select(snapshot: Snapshot, expression: str | None) -> frozenset[str]:
    if expression is None:
        return frozenset(node.id for node in snapshot.compiled.nodes)
    from pz_engine import select_nodes

    try:
        return select_nodes(snapshot.compiled, expression)
    except PzValidationError as error:
        if snapshot.compiled.problems:
            return frozenset()
        raise PzDefinitionError(error.errors) from None


def _asset_keys(project: PzProject, translator: PzTranslator) -> dict[str, dg.AssetKey]:
    """Return the final key of every asset by node id, as the assets' own specs have it."""
    snapshot = project.snapshot
    built = build_specs(snapshot, build_units(snapshot), translator, identity=str(project.root), is_gate=True)
    return {str(spec.metadata["pz/node_id"]): spec.key for unit in built for spec in unit.assets}


def _selection(snapshot: Snapshot, keys: Mapping[str, dg.AssetKey], ids: frozenset[str]) -> list[dg.AssetKey]:
    """Return the assets of a selection; a selected check brings the asset it is on, and assets bring their checks."""
    graph = snapshot.compiled.graph
    nodes = [graph.by_id[node_id] for node_id in ids]
    owners = {graph.by_name[node.pipeline].id if isinstance(node, CheckNode) else node.id for node in nodes}
    return sorted(keys[node_id] for node_id in owners if node_id in keys)
