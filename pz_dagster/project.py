"""A pz project as Dagster definitions see it: paths, variables and the snapshot.

Loading definitions opens no connection and reads no secret. A worker process never compiles and never writes: it uses
the snapshot that the run was planned with.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import dagster as dg

from pz_dagster.errors import PzDefinitionError
from pz_dagster.snapshot import Snapshot, fingerprint, from_json, take, to_json
from pz_dagster.units import Unit, build_units
from pz_engine import CompiledProject, compile_project

_LOGGER = logging.getLogger("pz_dagster")
_CACHE: dict[tuple[str, str], Snapshot] = {}
_CACHE_GUARD = threading.Lock()


@dataclass(frozen=True)
class PzProject:
    """A pz project below one directory.

    Args:
        project_dir: directory of `project.yml`; a relative path is taken from the working directory.
        vars: overrides of the project's `vars:`.
        packaged_project_dir: used instead when it exists and this is not a development process.
        on_error: `placeholder` keeps the code location alive when the project does not compile and shows every
            problem as an asset; `raise` raises `PzDefinitionError`. `PZ_DAGSTER_STRICT=1` also raises.
    """

    project_dir: Path
    vars: Mapping[str, Any] = field(default_factory=dict)
    packaged_project_dir: Path | None = None
    on_error: Literal["placeholder", "raise"] = "placeholder"

    def __post_init__(self) -> None:
        object.__setattr__(self, "project_dir", Path(self.project_dir).absolute())

    @property
    def root(self) -> Path:
        """The directory in use."""
        packaged = self.packaged_project_dir
        if packaged is not None and packaged.is_dir() and not _is_dev_process():
            return packaged.absolute()
        return self.project_dir

    @property
    def snapshot_path(self) -> Path:
        """Where the snapshot is kept."""
        return self.root / ".pz" / "target" / "dagster.json"

    @property
    def snapshot(self) -> Snapshot:
        """The project's snapshot, read once per process and content.

        Raises:
            PzDefinitionError: the project does not compile and `on_error` is `raise`.
        """
        mark = fingerprint(self.root, self.vars)
        key = (str(self.root), mark)
        with _CACHE_GUARD:
            found = _CACHE.get(key)
            if found is None:
                found = _CACHE[key] = self._load(mark)
        if found.compiled.problems and self.raises:
            raise PzDefinitionError(found.compiled.problems)
        return found

    @property
    def raises(self) -> bool:
        """Tell whether a broken project stops the code location."""
        return self.on_error == "raise" or os.environ.get("PZ_DAGSTER_STRICT") == "1"

    @property
    def units(self) -> tuple[Unit, ...]:
        """The parts of the project that one op runs each."""
        return build_units(self.snapshot)

    def prepare(self) -> None:
        """Compile now and write the snapshot, for image builds.

        Raises:
            PzDefinitionError: the project does not compile.
            OSError: the snapshot cannot be written.
        """
        mark = fingerprint(self.root, self.vars)
        compiled = self._compile()
        if compiled.problems:
            raise PzDefinitionError(compiled.problems)
        self._write(take(compiled, mark))

    def prepare_if_dev(self) -> None:
        """Compile and write the snapshot when running under `dagster dev`."""
        if _is_dev_process():
            self.prepare()

    def check(self) -> None:
        """Compile and raise every problem.

        Raises:
            PzDefinitionError: the project does not compile.
        """
        problems = self._compile().problems
        if problems:
            raise PzDefinitionError(problems)

    def asset_key_for(self, node_name: str) -> dg.AssetKey:
        """Return the default asset key of a node.

        Raises:
            KeyError: no node has that name.
        """
        from pz_dagster.translator import PzTranslator

        return PzTranslator().get_asset_key(self.snapshot.compiled.graph.by_name[node_name], self.snapshot)

    def _load(self, mark: str) -> Snapshot:
        stored = self._read()
        if stored is not None and (stored.fingerprint == mark or _is_worker_process()):
            return stored
        compiled = self._compile()
        if compiled.problems:
            for problem in compiled.problems:
                _LOGGER.error("%s", problem)
            return self._broken(compiled, stored, mark)
        fresh = take(compiled, mark)
        if not _is_worker_process():
            try:
                self._write(fresh)
            except OSError:
                _LOGGER.warning(
                    "the snapshot of project '%s' could not be written; it is compiled on each load", fresh.project_name
                )
        return fresh

    def _broken(self, compiled: CompiledProject, stored: Snapshot | None, mark: str) -> Snapshot:
        """Keep the last good graph, if any, and add what is wrong now."""
        base = stored if stored is not None else take(compiled, mark)
        return replace(base, fingerprint=mark, compiled=replace(base.compiled, problems=compiled.problems))

    def _compile(self) -> CompiledProject:
        return compile_project(self.root, vars=dict(self.vars), keep_env_names=True)

    def _read(self) -> Snapshot | None:
        try:
            return from_json(self.snapshot_path.read_bytes(), self.root)
        except OSError:
            return None

    def _write(self, snapshot: Snapshot) -> None:
        path = self.snapshot_path
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        temporary.write_bytes(to_json(snapshot))
        temporary.replace(path)


def _is_dev_process() -> bool:
    return bool(os.environ.get("DAGSTER_IS_DEV_CLI"))


def _is_worker_process() -> bool:
    """Run and step workers are multiprocessing children, or `dagster api execute_run` and `execute_step`."""
    return multiprocessing.parent_process() is not None or any(
        argument in ("execute_run", "execute_step") for argument in sys.argv[1:3]
    )
