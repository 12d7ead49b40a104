"""What a component's YAML may say, and how it becomes values; templates `{{ ... }}` work in every text."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import dagster as dg
from msgspec import Struct

from pz_dagster.keys import fold
from pz_engine import Node

_PARTITIONS: Mapping[str, Callable[..., Any]] = {
    "hourly": dg.HourlyPartitionsDefinition,
    "daily": dg.DailyPartitionsDefinition,
    "weekly": dg.WeeklyPartitionsDefinition,
    "monthly": dg.MonthlyPartitionsDefinition,
}
_MERGED = ("metadata", "tags")


class PzChecksModel(dg.Resolvable, dg.Model):
    """What failing checks do."""

    mode: Literal["gate", "observe"] = "gate"
    """Skip the consumers of their pipeline, or only report."""

    severity: dict[str, Literal["warn", "error"]] = {}
    """Severity by a pattern of check names such as `*_freshness_*`; the first pattern that matches counts."""

    def severity_of(self, name: str) -> dg.AssetCheckSeverity | None:
        """Return the severity of a check, or None when no pattern matches."""
        for pattern, severity in self.severity.items():
            if fnmatchcase(name, pattern):
                return dg.AssetCheckSeverity(severity.upper())
        return None


class PzOpModel(dg.Resolvable, dg.Model):
    """How ops run."""

    pool: str | None = None
    """Concurrency pool."""

    tags: dict[str, str] = {}
    """More tags of the ops."""

    per: Literal["flow", "project"] = "flow"
    """One op for each flow, or one for the whole project."""

    max_retries: int = 0
    """Tries after a failure that may pass by itself."""

    retry_delay: float | None = None
    """Seconds before another try."""

    @property
    def retry_policy(self) -> dg.RetryPolicy | None:
        """The policy, if anything is repeated."""
        return dg.RetryPolicy(max_retries=self.max_retries, delay=self.retry_delay) if self.max_retries else None


class PzPartitionsModel(dg.Resolvable, dg.Model):
    """Dagster partitions in place of stored watermarks."""

    by: Sequence[str]
    """Incremental entities, as `<connection>.<entity>`."""

    definition: dict[str, Any]
    """`type` (`hourly`, `daily`, `weekly`, `monthly`), `start_date`, and what else the Dagster class takes."""

    def build(self) -> Any:
        """Return the partitions definition.

        Raises:
            ValueError: its type is unknown.
        """
        options = dict(self.definition)
        kind = str(options.pop("type", ""))
        if kind not in _PARTITIONS:
            raise ValueError(f"partitions: type {kind!r} is none of {', '.join(_PARTITIONS)}")
        return _PARTITIONS[kind](**options)


class ProjectPlace(Struct, frozen=True):
    """Where a component's project is, and what tells the component from others of its location."""

    directory: Path
    name: str

    @property
    def state_key(self) -> str:
        """Name of the component's state."""
        return f"PzProjectComponent[{self.name}]"

    @property
    def resource_key(self) -> str:
        """Key of the component's resource; names that fold to one text stay apart."""
        folded = fold(self.name)
        mark = "" if folded == self.name else f"_{hashlib.sha256(self.name.encode()).hexdigest()[:6]}"
        return f"pz_{folded}{mark}"


def resolve_place(context: dg.ResolutionContext, value: Any) -> ProjectPlace:
    """Read `project`, a path relative to the YAML file; two components never share a state."""
    loading = dg.ComponentLoadContext.from_resolution_context(context)
    directory = context.resolve_source_relative_path(str(context.resolve_value(value)))
    try:
        name = loading.component_path.get_relative_key(loading.defs_module_path).removesuffix("[0]")
    except ValueError:  # a component outside the folder of definitions
        name = directory.name
    return ProjectPlace(directory, name)


SpecChange = Callable[[dg.AssetSpec, Node], dg.AssetSpec]
"""What `translation` does to a spec."""


class _Tags(tuple[str, ...]):
    """Tags of which one that is not there is nothing, where a template would fail for every asset of the component."""

    __slots__ = ()

    def __getitem__(self, place: Any) -> Any:
        return None if isinstance(place, int) and not -len(self) <= place < len(self) else super().__getitem__(place)


class _NodeView:
    """A node as templates see it: every one has `tags`, those of a load or a sink being none."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.tags = _Tags(getattr(node, "tags", ()))

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._node)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)


def resolve_translation(context: dg.ResolutionContext, model: Any) -> SpecChange:
    """Read `translation`: attributes of an asset, in which `node` and `spec` can be used.

    A tag whose template gives nothing is left out, so that one text such as `node.tags[0]` can stand for all assets.
    """
    at = context.at_path("translation")

    def change(spec: dg.AssetSpec, node: Node) -> dg.AssetSpec:
        scope = at.with_scope(node=_NodeView(node), spec=spec)
        if isinstance(model, str):
            found = at.with_scope(node=node, spec=spec).resolve_value(model)
            if isinstance(found, dg.AssetSpec):
                return found
            attributes = dict(found)
        else:
            attributes = {
                name: scope.at_path(name).resolve_value(value)
                for name, value in model.model_dump(exclude_unset=True).items()
            }
        return _changed(spec, attributes)

    return change


def _changed(spec: dg.AssetSpec, attributes: dict[str, Any]) -> dg.AssetSpec:
    if attributes.get("partitions_def") is not None:
        raise ValueError("translation: partitions_def does not belong here; use the attribute 'partitions'")
    key = _key(attributes.pop("key")) if attributes.get("key") is not None else spec.key
    prefix = attributes.pop("key_prefix", None)
    attributes["key"] = key.with_prefix(prefix) if prefix else key
    if attributes.get("deps") is not None:
        attributes["deps"] = [_key(dep) for dep in attributes["deps"]]
    if attributes.get("owners") is not None:
        attributes["owners"] = [
            owner if "@" in owner or owner.startswith("team:") else f"team:{owner}" for owner in attributes["owners"]
        ]
    if attributes.get("code_version") is not None:
        attributes["code_version"] = str(attributes["code_version"])
    if attributes.get("tags") is not None:
        attributes["tags"] = {name: str(value) for name, value in attributes["tags"].items() if value is not None}
    merged = {name: attributes.pop(name) for name in _MERGED if attributes.get(name) is not None}
    return spec.replace_attributes(**attributes).merge_attributes(**merged)


def _key(value: Any) -> dg.AssetKey:
    if isinstance(value, dg.AssetKey):
        return value
    return dg.AssetKey(value.split("/") if isinstance(value, str) else list(value))
