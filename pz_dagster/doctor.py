"""What stands between a deployment and smooth runs: installed versions, instance settings, pools, the snapshot.

Every finding is a value; nothing is changed. Only names and settings are read, never a connection or a row.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import dagster as dg
from msgspec import Struct

from pz_dagster.project import PzProject

_DISTRIBUTION = "pz-dagster"
_SLOTS = ("free_slots_after_run_end_seconds",)
"""Any number of seconds frees them."""

_RECOMMENDED: tuple[tuple[str, tuple[str, ...], Any, str], ...] = (
    ("concurrency", ("pools", "default_limit"), 1, "a pool without a limit limits nothing"),
    ("concurrency", ("pools", "granularity"), "op", "a limit shall count ops, not runs"),
    ("run_monitoring", ("enabled",), True, "a killed run keeps its pool slot otherwise"),
    (
        "run_monitoring",
        _SLOTS,
        60,
        "the slots of runs that ended badly stay taken otherwise",
    ),
    ("run_retries", ("enabled",), True, "a run whose process died is not started again otherwise"),
    ("run_retries", ("max_retries",), 0, "only jobs with the tag dagster/max_retries should be repeated"),
    ("run_retries", ("retry_on_asset_or_op_failure",), False, "the engine already repeated what may pass by itself"),
    ("telemetry", ("enabled",), False, "Dagster reports its use otherwise"),
    ("nux", ("enabled",), False, "a dialog covers the first page otherwise"),
)


class Finding(Struct, frozen=True):
    """One thing that was looked at."""

    status: Literal["ok", "advice", "problem"]
    """`advice` works and could be better; `problem` does not work, or not for long."""

    subject: str
    message: str
    next_step: str | None = None

    def __str__(self) -> str:
        ending = f"; {self.next_step}" if self.next_step else ""
        return f"{self.status:<8}{self.subject}: {self.message}{ending}"


def version_findings() -> Iterator[Finding]:
    """Compare what is installed with what the distribution asks for."""
    from packaging.requirements import Requirement

    for text in importlib.metadata.requires(_DISTRIBUTION) or ():
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        installed = _version(requirement.name)
        if installed is None:
            yield Finding("problem", requirement.name, "is not installed", f"pip install '{requirement}'")
        elif not requirement.specifier.contains(installed, prereleases=True):
            yield Finding(
                "problem",
                requirement.name,
                f"{installed} is not {requirement.specifier}",
                f"pip install '{requirement.name}{requirement.specifier}'",
            )
        else:
            yield Finding("ok", requirement.name, installed)


def storage_findings(configuration: str) -> Iterator[Finding]:
    """Tell whether an instance in PostgreSQL names the driver, without which newer versions of SQLAlchemy take another.

    Args:
        configuration: the text of `dagster.yaml`; only searched, never shown.
    """
    from packaging.version import Version

    core, storage = _version("sqlalchemy"), _version("dagster-postgres")
    if core is None or storage is None or Version(core) < Version("2.1"):
        return
    if "postgres" in configuration and "postgresql+psycopg2" not in configuration:
        yield Finding(
            "advice",
            "dagster-postgres",
            f"{storage} with SQLAlchemy {core} needs the driver in the URL",
            "write postgresql+psycopg2:// in dagster.yaml, or scheme: postgresql+psycopg2",
        )


def instance_findings(instance: dg.DagsterInstance) -> Iterator[Finding]:
    """Compare an instance's settings with the recommended ones."""
    for section, path, wanted, reason in _RECOMMENDED:
        found = _setting(instance, section, path)
        name = ".".join((section, *path))
        if found == wanted or (path == _SLOTS and isinstance(found, int) and not isinstance(found, bool)):
            yield Finding("ok", name, _spelled(found))
        else:
            now = "not set" if found is None else _spelled(found)
            yield Finding("advice", name, f"{now}; {reason}", f"set {_spelled(wanted)} in dagster.yaml")


def pool_findings(instance: dg.DagsterInstance, pools: Iterable[str]) -> Iterator[Finding]:
    """Tell which pools have a limit, of their own or by default."""
    default = _setting(instance, "concurrency", ("pools", "default_limit"))
    limits = {limit.name: limit.limit for limit in instance.event_log_storage.get_pool_limits()}
    for pool in pools:
        limit = limits.get(pool, default)
        if limit is None:
            yield Finding("advice", f"pool {pool}", "has no limit", f"run: dagster instance concurrency set {pool} 1")
        else:
            yield Finding("ok", f"pool {pool}", f"limit {limit}")


def snapshot_findings(project: PzProject) -> Iterator[Finding]:
    """Tell whether the project compiles and its snapshot is the one of its files."""
    from pz_dagster.errors import PzDefinitionError

    try:
        project.check()
    except PzDefinitionError as error:
        for problem in error.problems:
            yield Finding("problem", "project", str(problem))
    else:
        yield Finding("ok", "project", "compiles")
    state = project.snapshot_state
    if state == "fresh":
        yield Finding("ok", "snapshot", "fresh")
    else:
        yield Finding("advice", "snapshot", state, "run: pz-dagster prepare")


def _setting(instance: dg.DagsterInstance, section: str, path: tuple[str, ...]) -> Any:
    found: Any = instance.get_settings(section)
    for part in path:
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _spelled(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
