"""A pz project as Dagster definitions see it: paths, variables and the snapshot.

Loading definitions opens no connection and reads no secret. A worker process never writes and compiles only where
nobody left it a snapshot: it uses the one that the run was planned with.
"""

from __future__ import annotations

import json
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
from msgspec import structs

from pz_dagster import handover, snapshot_file
from pz_dagster.errors import PzDefinitionError
from pz_dagster.fingerprint import fingerprint
from pz_dagster.snapshot import Snapshot
from pz_dagster.units import Unit, build_units
from pz_engine import CompiledProject, locate_state

_LOGGER = logging.getLogger("pz_dagster")
_CACHE: dict[tuple[str, str], Snapshot] = {}
_CACHE_GUARD = threading.Lock()
_VARIABLE_NOT_SET = "PZ0103"


@dataclass(frozen=True)
class PzProject:
    """A pz project below one directory.

    Args:
        project_dir: directory of `project.yml`; a relative path is taken from the working directory.
        vars: overrides of the project's `vars:`.
        state_dir: where runs, journals and state live instead of in `.pz`, relative to the project's directory; for
            projects in read-only images. The snapshot stays with the files that it describes. `PZ_STATE_DIR` does the
            same for a whole process.
        packaged_project_dir: used instead when it exists and this is not a development process.
        on_error: `placeholder` keeps the code location alive when the project does not compile and shows every
            problem as an asset; `raise` raises `PzDefinitionError`. `PZ_DAGSTER_STRICT=1` also raises.
    """

    project_dir: Path
    vars: Mapping[str, Any] = field(default_factory=dict, repr=False)
    state_dir: Path | None = None
    packaged_project_dir: Path | None = None
    on_error: Literal["placeholder", "raise"] = "placeholder"

    def __post_init__(self) -> None:
        object.__setattr__(self, "project_dir", Path(self.project_dir).absolute())
        if self.state_dir is not None:
            object.__setattr__(self, "state_dir", Path(self.state_dir))

    @property
    def root(self) -> Path:
        """The directory in use."""
        packaged = self.packaged_project_dir
        if packaged is not None and Path(packaged).is_dir() and not _is_dev_process():
            return Path(packaged).absolute()
        return self.project_dir

    @property
    def identity(self) -> str:
        """What tells this project from others of the process: its directories and its variables."""
        return json.dumps([str(self.root), str(self.state_path), dict(self.vars)], sort_keys=True, default=str)

    @property
    def state_path(self) -> Path:
        """The directory in which runs, journals and state live."""
        return locate_state(self.root, self.state_dir)

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
        is_worker = _is_worker_process()
        mark = "" if is_worker else self.fingerprint
        key = (self.identity, mark)
        with _CACHE_GUARD:
            found = _CACHE.get(key)
            if found is None:
                found = _CACHE[key] = self._load_in_worker() if is_worker else self._load(mark)
        if found.compiled.problems and self.raises:
            raise PzDefinitionError(found.compiled.problems)
        return found

    @property
    def snapshot_state(self) -> Literal["fresh", "stale", "missing"]:
        """Whether the snapshot on disk is the one of the files as they are now."""
        stored = self._read()
        if stored is None:
            return "missing"
        return "fresh" if stored.fingerprint == self.fingerprint else "stale"

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the files as they are now."""
        return fingerprint(self.root, self.vars, snapshot_file.SCHEMA_VERSION)

    @property
    def is_development(self) -> bool:
        """Tell whether `dagster dev` or `dg dev` runs this process."""
        return _is_dev_process()

    @property
    def raises(self) -> bool:
        """Tell whether a broken project stops the code location."""
        return self.on_error == "raise" or os.environ.get("PZ_DAGSTER_STRICT") == "1"

    @property
    def units(self) -> tuple[Unit, ...]:
        """The parts of the project that one op runs each."""
        return build_units(self.snapshot)

    def prepare(self) -> None:
        """Check the project and write the snapshot, for image builds.

        Raises:
            PzDefinitionError: the project does not compile, or `pz validate` would refuse it.
            OSError: the snapshot cannot be written.
        """
        mark = self.fingerprint
        compiled = self._checked()
        snapshot_file.write(self.snapshot_path, snapshot_file.take(compiled, mark))

    def prepare_if_dev(self) -> None:
        """Do what `prepare` does when running under `dagster dev`."""
        if _is_dev_process():
            self.prepare()

    def check(self) -> None:
        """Compile, bind all SQL and raise every problem; what cannot be told without a variable that is not set is left out.

        Raises:
            PzDefinitionError: the project does not compile, or `pz validate` would refuse it.
        """
        self._checked()

    def asset_key_for(self, node_name: str) -> dg.AssetKey:
        """Return the default asset key of a node.

        Raises:
            KeyError: no node has that name.
        """
        from pz_dagster.translator import PzTranslator

        return PzTranslator().get_asset_key(self.snapshot.compiled.graph.by_name[node_name], self.snapshot)

    def seed_watermarks(
        self, assets_def: dg.AssetsDefinition, instance: dg.DagsterInstance, *, apply: bool = False
    ) -> None:
        """Print the watermarks with which runs without partitions go on from a backfill, and store them on request.

        A stored watermark that is not older stays.

        Args:
            assets_def: a partitioned unit of this project.
            instance: where its partitions are recorded.
            apply: store them; otherwise nothing is written.

        Raises:
            PzDefinitionError: `PZ0703`, the assets are not partitioned, or leave out a sink of an entity.
            PzStateError: `PZ0517`, a run is in flight; `PZ0515` or `PZ0518`, the store has something else or cannot be
                used; `PZ0520`, it changed meanwhile.
        """
        from pz_dagster.seeding import seed_watermarks

        for report in seed_watermarks(assets_def, instance, apply=apply):
            print(report)  # noqa: T201 - a person runs this

    def _load(self, mark: str) -> Snapshot:
        """Read the snapshot when it is fresh, else compile; whatever is not on disk is offered to child processes."""
        stored = self._read()
        if stored is not None and stored.fingerprint == mark:
            handover.withdraw(self.identity)
            return stored
        compiled = self._compile()
        for problem in compiled.problems:
            _LOGGER.error("%s", problem)
        if compiled.problems:
            content = self._broken(compiled, stored, mark)
        else:
            for warning in compiled.warnings:
                _LOGGER.warning("%s", warning)
            content = snapshot_file.take(compiled, mark)
            if _is_dev_process() and self._write(content):
                handover.withdraw(self.identity)
                return self._parsed(content)
        handover.offer(self.identity, content)
        loaded = self._parsed(content)
        if not compiled.problems:
            state = "has no snapshot" if stored is None else "has changed since its snapshot was taken"
            _LOGGER.warning(
                "pz project '%s' %s and was compiled in memory; `pz-dagster prepare` makes loading faster",
                loaded.project_name,
                state,
            )
        return loaded

    def _load_in_worker(self) -> Snapshot:
        content = handover.offered(self.identity)
        found = snapshot_file.from_json(content, self.root, self.state_path) if content is not None else self._read()
        if found is not None:
            return found
        mark = self.fingerprint
        compiled = self._compile()
        return self._parsed(
            self._broken(compiled, None, mark) if compiled.problems else snapshot_file.take(compiled, mark)
        )

    def _broken(self, compiled: CompiledProject, stored: Snapshot | None, mark: str) -> bytes:
        """Keep the last good graph, if any, and add what is wrong now."""
        if stored is None:
            return snapshot_file.take(compiled, mark)
        kept = replace(stored.compiled, problems=compiled.problems)
        return snapshot_file.to_json(structs.replace(stored, fingerprint=mark, compiled=kept))

    def _checked(self) -> CompiledProject:
        """Return the compiled project when nothing is wrong with it."""
        from pz_engine import validate_project

        compiled = self._compile()
        problems = compiled.problems
        if not problems:
            found = validate_project(self.root, vars=dict(self.vars)).problems
            needs_variables = any(problem.code == _VARIABLE_NOT_SET for problem in found)
            problems = () if needs_variables else found
        if problems:
            raise PzDefinitionError(problems)
        return compiled

    def _compile(self) -> CompiledProject:
        from pz_engine import compile_project

        return compile_project(self.root, vars=dict(self.vars), keep_env_names=True, state_dir=self.state_path)

    def _read(self) -> Snapshot | None:
        try:
            return snapshot_file.from_json(self.snapshot_path.read_bytes(), self.root, self.state_path)
        except OSError:
            return None

    def _parsed(self, content: bytes) -> Snapshot:
        found = snapshot_file.from_json(content, self.root, self.state_path)
        if found is None:
            raise ValueError("a snapshot that was just taken cannot be read")
        return found

    def _write(self, content: bytes) -> bool:
        try:
            snapshot_file.write(self.snapshot_path, content)
        except OSError:
            return False
        return True


def _is_dev_process() -> bool:
    return bool(os.environ.get("DAGSTER_IS_DEV_CLI"))


def _is_worker_process() -> bool:
    """Run and step workers are multiprocessing children, or `dagster api execute_run` and `execute_step`."""
    return multiprocessing.parent_process() is not None or any(
        argument in ("execute_run", "execute_step") for argument in sys.argv[1:3]
    )
