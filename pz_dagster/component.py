"""A pz project as a component of a `dg` project: one YAML file from project to definitions."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import dagster as dg
from dagster.components import DefsStateConfig, DefsStateConfigArgs, ResolvedDefsStateConfig
from msgspec import Struct

from pz_dagster import snapshot_file
from pz_dagster.component_models import (
    ProjectPlace,
    PzChecksModel,
    PzOpModel,
    PzPartitionsModel,
    SpecChange,
    resolve_place,
    resolve_translation,
)
from pz_dagster.component_scaffolder import PzProjectScaffolder
from pz_dagster.definitions import build_pz_definitions, without_state
from pz_dagster.errors import PzDefinitionError
from pz_dagster.invocation import PzInvocation
from pz_dagster.project import PzProject
from pz_dagster.resource import PzResource
from pz_dagster.run_config import PzRunConfig
from pz_dagster.settings import PzTranslatorSettings
from pz_dagster.snapshot import Snapshot
from pz_dagster.translator import PzTranslator
from pz_engine import CheckNode, Node


@dg.scaffold_with(PzProjectScaffolder)
@dataclass(kw_only=True)
class PzProjectComponent(dg.StateBackedComponent, dg.Resolvable):
    """A pz project as assets, asset checks and jobs.

    Subclass it to change a spec (`get_asset_spec`, `get_asset_check_spec`) or what an op does (`execute`).
    """

    project: Annotated[
        ProjectPlace,
        dg.Resolver(
            resolve_place, model_field_type=str, description="Directory of the pz project, relative to this file."
        ),
    ]
    """From Python: `ProjectPlace(directory, a name of its own)`."""

    vars: dict[str, Any] = field(default_factory=dict, repr=False)
    """Overrides of the project's `vars:`; they are part of the definitions, so never secrets."""

    state_dir: str | None = None
    """Where runs, journals and state live instead of in `.pz`, relative to the project."""

    select: str = "*"
    exclude: str | None = None
    checks: PzChecksModel = field(default_factory=PzChecksModel)
    op: PzOpModel = field(default_factory=PzOpModel)
    settings: dict[str, Any] = field(default_factory=dict)
    """Switches of `PzTranslatorSettings`."""

    translation: Annotated[
        SpecChange | None,
        dg.Resolver(
            resolve_translation,
            model_field_type=str | dg.AssetAttributesModel,
            inject_before_resolve=False,
            description="Attributes of assets; `node` and `spec` can be used in templates.",
        ),
    ] = None
    resource: dict[str, Any] = field(default_factory=dict, repr=False)
    """Fields of `PzResource`."""

    schedules: dict[str, Any] = field(default_factory=dict)
    """Schedules by name: a cron expression, or a list of it and a selection."""

    partitions: PzPartitionsModel | None = None
    defs_state: ResolvedDefsStateConfig = field(default_factory=DefsStateConfigArgs.local_filesystem)

    @property
    def defs_state_config(self) -> DefsStateConfig:
        """Where the state is kept: the key names the component's place below the folder of definitions."""
        return DefsStateConfig.from_args(self.defs_state, default_key=self.project.state_key)

    def write_state_to_path(self, state_path: Path) -> None:
        """Write the snapshot; a development process also accepts a project that does not compile.

        Raises:
            PzDefinitionError: the project does not compile, outside a development process.
        """
        project = PzProject(self.project.directory, **self._options())
        if not project.is_development:
            project.check()
        state_path.parent.mkdir(parents=True, exist_ok=True)
        state_path.write_bytes(snapshot_file.to_json(project.snapshot))

    def build_defs_from_state(self, context: dg.ComponentLoadContext, state_path: Path | None) -> dg.Definitions:
        """Build definitions from a snapshot; without a readable one the project is compiled."""
        project = _StatedProject(self.project.directory, **self._options())
        if state_path is not None:
            stated = snapshot_file.from_json(state_path.read_bytes(), project.root, project.state_path)
            project = replace(project, stated=stated)
        options: dict[str, Any] = {}
        if self.partitions is not None:
            options.update(partitions_def=self.partitions.build(), partition_by=tuple(self.partitions.by))
        if self.schedules:
            options["schedules"] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in self.schedules.items()
            }
        found = build_pz_definitions(
            project,
            select=self.select,
            exclude=self.exclude,
            translator=_ComponentTranslator(self),
            op_per=self.op.per,
            checks=self.checks.mode,
            retry_policy=self.op.retry_policy,
            pool=self.op.pool,
            op_tags=dict(self.op.tags),
            resource=self._resource(),
            resource_key=self.project.resource_key,
            **options,
        )
        return found if self._is_first_of_project(context) else without_state(found, project.snapshot.project_name)

    def get_asset_spec(self, node: Node) -> dg.AssetSpec:
        """Return the spec of a load, pipeline or sink; override to change it."""
        spec = self._translator.default_spec(node)
        return self.translation(spec, node) if self.translation is not None else spec

    def get_asset_check_spec(self, node: CheckNode) -> dg.AssetCheckSpec:
        """Return the spec of a check; override to change it."""
        return self._translator.default_check_spec(node)

    def execute(self, context: dg.AssetExecutionContext, invocation: PzInvocation) -> Iterator[Any]:  # noqa: ARG002
        """Run a unit inside its op; override to act before or after."""
        yield from invocation.stream()

    def _is_first_of_project(self, context: dg.ComponentLoadContext) -> bool:
        """Tell whether this component shows the copies of the project's state, which several may define parts of.

        Dagster marks what a component defines with its file, so two of them cannot define one asset.
        """
        try:
            everybody = context.component_tree.get_all_components(of_type=PzProjectComponent)
        except Exception:  # another component is broken, and says so itself
            return True
        names = [each.project.name for each in everybody if each._project_mark == self._project_mark]
        return self.project.name == min(names, default=self.project.name)

    @property
    def _project_mark(self) -> tuple[Path, tuple[str, ...]]:
        return self.project.directory.resolve(), tuple(self.settings.get("key_prefix", ()))

    @property
    def _translator(self) -> "_ComponentTranslator":
        return self.__dict__["_asking"]  # type: ignore[no-any-return]

    def _options(self) -> dict[str, Any]:
        return {"vars": self.vars, "state_dir": Path(self.state_dir) if self.state_dir is not None else None}

    def _resource(self) -> PzResource:
        """Return a resource whose runs go through `execute`; its class holds the component, because Dagster copies it."""
        if type(self).execute is PzProjectComponent.execute:
            return PzResource(**self.resource)
        component = self

        class ComponentResource(PzResource):
            def run(self, *, context: dg.AssetExecutionContext, config: PzRunConfig | None = None) -> Any:
                return _Execution(component, context, super().run(context=context, config=config))

        return ComponentResource(**self.resource)


class _Execution(Struct, frozen=True):
    """An invocation whose results come from a component's `execute`."""

    component: PzProjectComponent
    context: dg.AssetExecutionContext
    invocation: PzInvocation

    def stream(self) -> Iterator[Any]:
        yield from self.component.execute(self.context, self.invocation)


@dataclass(frozen=True)
class _StatedProject(PzProject):
    """A project whose snapshot is the component's state."""

    stated: Snapshot | None = field(default=None, repr=False, compare=False)

    @property
    def snapshot(self) -> Snapshot:
        if self.stated is None:
            return super().snapshot
        if self.stated.compiled.problems and self.raises:
            raise PzDefinitionError(self.stated.compiled.problems)
        return self.stated


class _ComponentTranslator(PzTranslator):
    """Asks the component for specs, and answers what it would be without it."""

    def __init__(self, component: PzProjectComponent) -> None:
        super().__init__(PzTranslatorSettings(**component.settings))
        self._component = component
        self._scene: tuple[Any, ...] = ()

    def get_asset_spec(self, node: Node, snapshot: Snapshot, keys: Mapping[str, dg.AssetKey]) -> dg.AssetSpec:
        with self._asking(snapshot, keys):
            return self._component.get_asset_spec(node)

    def get_check_spec(
        self, node: CheckNode, snapshot: Snapshot, asset: dg.AssetKey, *, is_gate: bool
    ) -> dg.AssetCheckSpec:
        with self._asking(snapshot, asset, is_gate):
            return self._component.get_asset_check_spec(node)

    def get_check_severity(self, node: CheckNode, snapshot: Snapshot) -> dg.AssetCheckSeverity:
        found = self._component.checks.severity_of(node.name)
        return found if found is not None else super().get_check_severity(node, snapshot)

    def default_spec(self, node: Node) -> dg.AssetSpec:
        """Return the spec without the component's changes."""
        return super().get_asset_spec(node, *self._scene)

    def default_check_spec(self, node: CheckNode) -> dg.AssetCheckSpec:
        """Return the check's spec without the component's changes."""
        snapshot, asset, is_gate = self._scene
        return super().get_check_spec(node, snapshot, asset, is_gate=is_gate)

    @contextmanager
    def _asking(self, *scene: Any) -> Iterator[None]:
        """Answer the component's questions about this part of the project."""
        self._scene = scene
        self._component.__dict__["_asking"] = self
        try:
            yield
        finally:
            del self._component.__dict__["_asking"]
