"""Where an entity's files are; relative paths resolve against the connection's root."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from pz_engine.base.date_tokens import has_date_tokens
from pz_engine.base.state_folder import STATE_FOLDER
from pz_engine.connectors.api import ReadSpec
from pz_engine.connectors.toolkit.date_paths import any_date, cover, moment_of
from pz_engine.connectors.toolkit.file_options import FileReadOptions, FileWriteOptions
from pz_engine.connectors.toolkit.file_scans import FileSet
from pz_engine.connectors.toolkit.paths import (
    engine_folders,
    folder_keys,
    is_engine_owned,
    leaves_root,
    matching_files,
    resolve,
)
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Strategy

ENGINE_FOLDER_HINT = "choose a 'path' outside of it, for example path: out"


class Locations(Struct, frozen=True):
    """Paths of one connection."""

    connection: str
    root: Path
    project_dir: Path
    engine_folders: tuple[Path, ...]

    @classmethod
    def of(cls, config: Mapping[str, Any], connection: str = "") -> Locations:
        """Take `root`, itself relative to the project directory."""
        base = Path(str(config.get("base_dir", "."))).absolute()
        return cls(connection, resolve(base, str(config.get("root", "."))), base, engine_folders(config))

    def files_to_read(self, spec: ReadSpec, options: FileReadOptions) -> FileSet:
        """List what a read covers; of a dated path only the folders of the spec's window, when it has both ends.

        Raises:
            PzConnectorError: the path leaves the root (`PZ0365`), or the partition folders disagree.
        """
        text = options.path or f"{spec.entity}.{options.format}"
        pattern = self._inside(any_date(text))
        described = f"connection '{spec.connection}': path '{text}'"
        window = _window(spec) if has_date_tokens(text) else None
        if window is None:
            files = matching_files(pattern)
        else:
            patterns = (self._inside(part) for part in cover(text, *window))
            files = matching_files(*patterns)
            described += f" between {spec.watermark} and {spec.upper_bound}"
        keys = self._keys(files, pattern, options, described)
        return FileSet(
            files,
            self.root,
            keys,
            described,
            pattern_text=text,
            is_folder=not files and pattern.is_dir(),
            is_window=window is not None,
        )

    def output_directory(self, entity: str, options: FileWriteOptions) -> Path:
        """Return the folder a write lands in, date tokens still in it.

        Raises:
            PzConnectorError: the path leaves the root (`PZ0365`), or is the engine's own (`PZ0301`).
        """
        directory = self._inside(options.path or entity)
        if self.writes_into_engine_folder(entity, options.path):
            raise PzConnectorError(
                f"entity '{entity}': {engine_folder_refusal(entity, options.path)}",
                is_transient=False,
                code="PZ0301",
                hint=ENGINE_FOLDER_HINT,
            )
        return directory

    def shown(self, path: Path) -> str:
        """Return a path for messages, relative to the project where possible."""
        return path.relative_to(self.project_dir).as_posix() if path.is_relative_to(self.project_dir) else str(path)

    def writes_into_engine_folder(self, entity: str, path: str | None) -> bool:
        """Tell whether a write would land among the project's runs and state."""
        return is_engine_owned(resolve(self.root, path or entity), self.engine_folders)

    def _inside(self, text: str) -> Path:
        if leaves_root(self.root, text):
            raise PzConnectorError(
                f"path '{text}' leaves the connection's root", is_transient=False, code="PZ0365", hint="remove the '..'"
            )
        return resolve(self.root, text)

    def _keys(
        self, files: tuple[Path, ...], pattern: Path, options: FileReadOptions, described: str
    ) -> tuple[str, ...]:
        if options.hive_partitioning is False:
            return ()
        keys = folder_keys([self._relative(path) for path in files], self._relative(pattern))
        if keys is None:
            raise PzConnectorError(
                f"{described}: the files do not have the same 'key=value' folders",
                is_transient=False,
                hint="narrow the path, or set hive_partitioning: false",
            )
        return keys

    def _relative(self, path: Path) -> Path:
        return path.relative_to(self.root) if path.is_relative_to(self.root) else path


def engine_folder_refusal(entity: str, path: str | None) -> str:
    """Return why a write is refused."""
    return f"path '{path or entity}' of the write lies inside '{STATE_FOLDER}/', which the engine owns and cleans"


def _window(spec: ReadSpec) -> tuple[datetime, datetime] | None:
    """Return both ends of a window; None when it is open, not about dates, or rows without a cursor are wanted too."""
    if spec.watermark is None or spec.upper_bound is None or spec.null_cursor:
        return None
    lower, upper = moment_of(spec.watermark), moment_of(spec.upper_bound)
    return None if lower is None or upper is None else (lower, upper)


def object_name(entity: str, strategy: Strategy, suffix: str) -> str:
    """Return a file name: stable for replace, new on each call for append."""
    stem = entity.replace("/", "_")
    return f"{stem}{suffix}" if strategy is Strategy.REPLACE else f"{stem}-{secrets.token_hex(16)}{suffix}"
