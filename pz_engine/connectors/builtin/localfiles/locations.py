"""Where an entity's files are; relative paths resolve against the connection's root."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pz_engine.connectors.toolkit.file_options import FileReadOptions, FileWriteOptions
from pz_engine.connectors.toolkit.file_scans import FileSet
from pz_engine.connectors.toolkit.paths import folder_keys, leaves_root, matching_files, resolve
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Strategy


@dataclass(frozen=True, slots=True)
class Locations:
    """Paths of one connection."""

    connection: str
    root: Path

    @classmethod
    def of(cls, config: Mapping[str, Any], connection: str = "") -> Locations:
        """Take `root`, itself relative to the project directory."""
        base = Path(str(config.get("base_dir", "."))).absolute()
        return cls(connection, resolve(base, str(config.get("root", "."))))

    def files_to_read(self, entity: str, options: FileReadOptions, connection: str) -> FileSet:
        """List what a read covers.

        Raises:
            PzConnectorError: the path leaves the root (`PZ0365`), or the partition folders disagree.
        """
        text = options.path or f"{entity}.{options.format}"
        pattern = self._inside(text)
        files = matching_files(pattern)
        described = f"connection '{connection}': path '{text}'"
        return FileSet(files, self.root, self._keys(files, pattern, options, described), described)

    def output_directory(self, entity: str, options: FileWriteOptions) -> Path:
        """Return the folder a write lands in.

        Raises:
            PzConnectorError: the path leaves the root (`PZ0365`).
        """
        return self._inside(options.path or entity)

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


def object_name(entity: str, strategy: Strategy, suffix: str) -> str:
    """Return a file name: stable for replace, new on each call for append."""
    stem = entity.replace("/", "_")
    return f"{stem}{suffix}" if strategy is Strategy.REPLACE else f"{stem}-{secrets.token_hex(16)}{suffix}"
