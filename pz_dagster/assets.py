"""A project's units as Dagster asset definitions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import dagster as dg

from pz_dagster.bindings import BINDING_TAG, Binding, Checks, bind
from pz_dagster.errors import PzDefinitionError
from pz_dagster.keys import fold, fold_tag, op_name
from pz_dagster.location import claim
from pz_dagster.op_parts import parts_of, require_one_part
from pz_dagster.partitions import Partitioning
from pz_dagster.placeholder import errors_asset, errors_spec
from pz_dagster.project import PzProject
from pz_dagster.run_config import PzRunConfig
from pz_dagster.snapshot import Snapshot
from pz_dagster.specs import UnitSpecs, build_specs
from pz_dagster.translator import PzTranslator
from pz_dagster.units import Unit, build_units
from pz_engine import Diagnostic, PzValidationError

DEFAULT_RESOURCE_KEY = "pz"


def build_pz_assets(
    project: PzProject,
    *,
    select: str = "*",
    exclude: str | None = None,
    translator: PzTranslator | None = None,
    op_per: Literal["flow", "project"] = "flow",
    checks: Checks = "gate",
    partitions_def: dg.PartitionsDefinition[str] | None = None,
    partition_by: Sequence[str] = (),
    backfill_policy: dg.BackfillPolicy | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    pool: str | None = None,
    op_tags: Mapping[str, str] | None = None,
    resource_key: str = DEFAULT_RESOURCE_KEY,
) -> list[dg.AssetsDefinition]:
    """Return one asset definition for each unit of a project, several where a translator partitions its assets variously.

    Args:
        project: the project.
        select: which nodes to define, in the grammar of `pz ls --select`; `*` is all.
        exclude: nodes to leave out of `select`, in the same grammar.
        translator: how nodes look in Dagster.
        op_per: one op for each flow, or one for the whole project.
        checks: `gate` makes failing checks skip the consumers of their pipeline, `observe` only reports them.
        partitions_def: time partitions of the units that read an entity of `partition_by`; the others have none.
        partition_by: incremental entities, as `<connection>.<entity>`, that a partition reads a slice of, whatever
            their stored watermarks.
        backfill_policy: how many partitions one run takes; a whole unbroken range by default.
        retry_policy: Dagster's policy for the ops; permanent failures are never retried.
        pool: concurrency pool of the ops; `pz_<unit>` by default.
        op_tags: more tags for the ops.
        resource_key: key of the `PzResource`.

    Raises:
        PzDefinitionError: the project does not compile and its `on_error` is `raise`, a selection matches nothing,
            two nodes meet in one asset key, or a unit cannot be partitioned.
    """
    snapshot = project.snapshot
    units = build_units(snapshot, _select(snapshot, select, exclude), per_project=op_per == "project")
    partitioning = _partitioning(snapshot, units, partitions_def, partition_by, backfill_policy)
    by = partitioning.by if partitioning is not None else ()
    binding = Binding(project, snapshot, translator or PzTranslator(), checks, by)
    options = _OpOptions(retry_policy, pool, dict(op_tags or {}), {resource_key}, partitioning)
    found = [
        _definition(binding, part, _generic_body(resource_key), options)
        for specs in _specs(binding, units)
        for part in parts_of(specs)
        if part.assets  # a flow of nothing but hidden pipelines has no op
    ]
    if snapshot.compiled.problems:
        part = "" if select == "*" and exclude is None else f"{select} {exclude or ''}"
        found.append(errors_asset(snapshot, part))
    return found


def pz_assets(
    project: PzProject,
    *,
    select: str = "*",
    exclude: str | None = None,
    name: str | None = None,
    translator: PzTranslator | None = None,
    checks: Checks = "gate",
    partitions_def: dg.PartitionsDefinition[str] | None = None,
    partition_by: Sequence[str] = (),
    backfill_policy: dg.BackfillPolicy | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    pool: str | None = None,
    op_tags: Mapping[str, str] | None = None,
    required_resource_keys: set[str] | None = None,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Decorate a generator function that runs a project; returns one asset definition.

    The function takes `context`, a `PzResource` called `pz`, and optionally `config: PzRunConfig`, and yields what
    `pz.run(context=context, config=config).stream()` yields.

    Raises:
        PzDefinitionError: as for `build_pz_assets`.
    """

    def decorate(function: Callable[..., Any]) -> dg.AssetsDefinition:
        snapshot = project.snapshot
        op = op_name(name or function.__name__)
        units = build_units(snapshot, _select(snapshot, select, exclude), per_project=True)
        ids = units[0].node_ids if units else frozenset[str]()
        unit = Unit(op, units[0].flow if units else op, ids)
        partitioning = _partitioning(snapshot, [unit], partitions_def, partition_by, backfill_policy)
        by = partitioning.by if partitioning is not None else ()
        binding = Binding(project, snapshot, translator or PzTranslator(), checks, by)
        (specs,) = _specs(binding, [unit])
        require_one_part(specs)
        if not specs.assets and not snapshot.compiled.problems:
            raise PzDefinitionError([_nothing_visible(select)])
        options = _OpOptions(retry_policy, pool, dict(op_tags or {}), required_resource_keys or set(), partitioning)
        extra = [errors_spec(snapshot, op)] if snapshot.compiled.problems else []
        return _definition(binding, specs, function, options, extra)

    return decorate


class _OpOptions:
    """What is handed to Dagster as it is."""

    def __init__(
        self,
        retry_policy: dg.RetryPolicy | None,
        pool: str | None,
        tags: dict[str, str],
        resource_keys: set[str],
        partitioning: Partitioning | None,
    ) -> None:
        self.retry_policy = retry_policy
        self.pool = pool
        self.tags = tags
        self.resource_keys = resource_keys
        self.partitioning = partitioning


def _partitioning(
    snapshot: Snapshot,
    units: Sequence[Unit],
    definition: dg.PartitionsDefinition[str] | None,
    by: Sequence[str],
    backfill_policy: dg.BackfillPolicy | None,
) -> Partitioning | None:
    """Read the three arguments; what is left of a project that does not compile is not judged."""
    found = Partitioning.of(definition, by, backfill_policy)
    if found is not None and not snapshot.compiled.problems:
        found.require(snapshot, units)
    return found


def _select(snapshot: Snapshot, select: str, exclude: str | None) -> frozenset[str]:
    """Resolve the selection; a project that does not compile has what its last good compile leaves of it."""
    if select == "*" and exclude is None:
        return frozenset(node.id for node in snapshot.compiled.nodes)
    from pz_engine import select_nodes

    try:
        selected = select_nodes(snapshot.compiled, None if select == "*" else select)
        return selected - select_nodes(snapshot.compiled, exclude) if exclude else selected
    except PzValidationError as error:
        if snapshot.compiled.problems:
            return frozenset()
        raise PzDefinitionError(error.errors) from None


def _nothing_visible(select: str) -> Diagnostic:
    return Diagnostic(
        "PZ0210",
        f"selection '{select}' holds nothing but hidden pipelines",
        hint="select their loads or sinks, or leave granularity at 'all'",
    )


def _specs(binding: Binding, units: Sequence[Unit]) -> tuple[UnitSpecs, ...]:
    return build_specs(
        binding.snapshot,
        units,
        binding.translator,
        identity=str(binding.project.root),
        is_gate=binding.checks == "gate",
    )


def _generic_body(resource_key: str) -> Callable[..., Any]:
    def run_unit(context: dg.AssetExecutionContext, config: PzRunConfig) -> Iterator[Any]:
        resource = getattr(context.resources, resource_key)
        yield from resource.run(context=context, config=config).stream()

    return run_unit


def _definition(
    binding: Binding,
    specs: UnitSpecs,
    function: Callable[..., Any],
    options: _OpOptions,
    extra: Sequence[dg.AssetSpec] = (),
) -> dg.AssetsDefinition:
    snapshot, unit = binding.snapshot, specs.unit
    assets = specs.assets
    count = len(snapshot.compiled.problems)
    if count:
        assets = tuple(
            spec.replace_attributes(description=f"**The project has {count} problem(s).**\n\n{spec.description or ''}")
            for spec in assets
        )
    partitioning = options.partitioning
    is_cut = partitioning is not None and partitioning.cuts(snapshot, unit)
    definition = dg.multi_asset(
        name=unit.name,
        specs=[*assets, *extra],
        check_specs=specs.checks,
        can_subset=True,
        partitions_def=partitioning.definition if partitioning is not None and is_cut else None,
        backfill_policy=partitioning.backfill_policy if partitioning is not None and is_cut else None,
        retry_policy=options.retry_policy,
        pool=options.pool or f"pz_{unit.pool or unit.name}",
        required_resource_keys=options.resource_keys,
        op_tags={
            **options.tags,
            BINDING_TAG: bind(unit.name, binding),
            "pz/project": fold_tag(snapshot.project_name) or fold(snapshot.project_name),
            "pz/flow": fold_tag(unit.flow),
            "pz/fingerprint": snapshot.fingerprint[:16],
        },
    )(function)
    claim(str(binding.project.root), definition.op, specs.outputs)
    return definition
