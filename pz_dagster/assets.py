"""A project's units as Dagster asset definitions."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import dagster as dg

from pz_dagster.bindings import BINDING_TAG, Binding, bind
from pz_dagster.errors import PzDefinitionError
from pz_dagster.failures import broken_project_error
from pz_dagster.keys import asset_key, fold, fold_tag
from pz_dagster.project import PzProject
from pz_dagster.run_config import PzRunConfig
from pz_dagster.snapshot import Snapshot
from pz_dagster.specs import unit_specs
from pz_dagster.translator import PzTranslator
from pz_dagster.units import Unit, build_units
from pz_engine import PzValidationError, select_nodes

DEFAULT_RESOURCE_KEY = "pz"


def build_pz_assets(
    project: PzProject,
    *,
    select: str = "*",
    exclude: str | None = None,
    translator: PzTranslator | None = None,
    op_per: Literal["flow", "project"] = "flow",
    checks: Literal["gate", "observe"] = "gate",
    retry_policy: dg.RetryPolicy | None = None,
    pool: str | None = None,
    op_tags: Mapping[str, str] | None = None,
    resource_key: str = DEFAULT_RESOURCE_KEY,
) -> list[dg.AssetsDefinition]:
    """Return one asset definition for each unit of a project.

    Args:
        project: the project.
        select: which nodes to define, in the grammar of `pz ls --select`; `*` is all.
        exclude: nodes to leave out of `select`, in the same grammar.
        translator: how nodes look in Dagster.
        op_per: one op for each flow, or one for the whole project.
        checks: `gate` makes failing checks skip the consumers of their pipeline, `observe` only reports them.
        retry_policy: Dagster's policy for the ops; permanent failures are never retried.
        pool: concurrency pool of the ops.
        op_tags: more tags for the ops.
        resource_key: key of the `PzResource`.

    Raises:
        PzDefinitionError: the project does not compile and its `on_error` is `raise`, a selection matches nothing, or
            two nodes meet in one asset key.
    """
    translator = translator or PzTranslator()
    snapshot = project.snapshot
    selected = _select(snapshot, select, exclude)
    units = build_units(snapshot, selected, per_project=op_per == "project")
    found = [
        _definition(
            project,
            snapshot,
            unit,
            Binding(project, snapshot, translator, checks),
            _generic_body(resource_key),
            retry_policy=retry_policy,
            pool=pool,
            op_tags=op_tags,
            resource_keys={resource_key},
        )
        for unit in units
    ]
    if snapshot.compiled.problems:
        found.append(_placeholder(snapshot))
    return found


def pz_assets(
    project: PzProject,
    *,
    select: str = "*",
    exclude: str | None = None,
    name: str | None = None,
    translator: PzTranslator | None = None,
    checks: Literal["gate", "observe"] = "gate",
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
    translator = translator or PzTranslator()

    def decorate(function: Callable[..., Any]) -> dg.AssetsDefinition:
        snapshot = project.snapshot
        selected = _select(snapshot, select, exclude)
        unit = dataclasses.replace(build_units(snapshot, selected, per_project=True)[0], name=name or function.__name__)
        return _definition(
            project,
            snapshot,
            unit,
            Binding(project, snapshot, translator, checks),
            function,
            retry_policy=retry_policy,
            pool=pool,
            op_tags=op_tags,
            resource_keys=required_resource_keys or set(),
        )

    return decorate


def _select(snapshot: Snapshot, select: str, exclude: str | None) -> frozenset[str]:
    try:
        selected = select_nodes(snapshot.compiled, None if select == "*" else select)
        return selected - select_nodes(snapshot.compiled, exclude) if exclude else selected
    except PzValidationError as error:
        raise PzDefinitionError(error.errors) from None


def _generic_body(resource_key: str) -> Callable[..., Any]:
    def run_unit(context: dg.AssetExecutionContext, config: PzRunConfig) -> Iterator[Any]:
        resource = getattr(context.resources, resource_key)
        yield from resource.run(context=context, config=config).stream()

    return run_unit


def _definition(
    project: PzProject,
    snapshot: Snapshot,
    unit: Unit,
    binding: Binding,
    function: Callable[..., Any],
    *,
    retry_policy: dg.RetryPolicy | None,
    pool: str | None,
    op_tags: Mapping[str, str] | None,
    resource_keys: set[str],
) -> dg.AssetsDefinition:
    specs = unit_specs(snapshot, unit, binding.translator, is_gate=binding.checks == "gate")
    assets: Sequence[dg.AssetSpec] = specs.assets
    if snapshot.compiled.problems:
        count = len(snapshot.compiled.problems)
        assets = [
            spec.replace_attributes(description=f"**The project has {count} problem(s).**\n\n{spec.description or ''}")
            for spec in assets
        ]
    name = f"{fold(str(project.root.name))}/{unit.name}"
    bind(name, binding)
    return dg.multi_asset(
        name=unit.name,
        specs=assets,
        check_specs=specs.checks,
        can_subset=True,
        retry_policy=retry_policy,
        pool=pool,
        required_resource_keys=resource_keys,
        op_tags={
            **(op_tags or {}),
            BINDING_TAG: name,
            "pz/project": fold_tag(snapshot.project_name),
            "pz/flow": fold_tag(unit.flow),
            "pz/fingerprint": snapshot.fingerprint[:16],
        },
    )(function)


def _placeholder(snapshot: Snapshot) -> dg.AssetsDefinition:
    """Show what is wrong with a project as one asset that cannot be materialized."""
    problems = snapshot.compiled.problems
    name = snapshot.project_name
    listed = "\n".join(f"- `{p.code}` {p.place or ''}: {p.message}{f' — {p.hint}' if p.hint else ''}" for p in problems)

    @dg.asset(
        key=asset_key([name, "pz_errors"]),
        group_name=fold(name),
        kinds={"pz"},
        tags={"pz/status": "broken"},
        description=f"Project `{name}` does not compile:\n\n{listed}",
    )
    def pz_errors() -> None:
        raise broken_project_error(name, problems)

    return pz_errors
