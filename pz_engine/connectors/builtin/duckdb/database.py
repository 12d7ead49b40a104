"""The database file of one connection: where it is, and what may be done with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from pz_engine.base.state_folder import STATE_FOLDER
from pz_engine.connectors.fragments import AttachStep
from pz_engine.connectors.toolkit.aliases import session_name
from pz_engine.connectors.toolkit.paths import engine_folders, is_engine_owned
from pz_engine.errors.exceptions import PzConnectorError

_MAGIC = b"DUCK"
_MAGIC_OFFSET = 8


class DatabaseFile(Struct, frozen=True):
    """A DuckDB file; it may not exist yet."""

    path: Path
    project_dir: Path
    engine_folders: tuple[Path, ...]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> DatabaseFile:
        """Take `path`, relative to the project directory."""
        base = Path(str(config.get("base_dir", "."))).absolute()
        return cls(Path(os.path.normpath(base / str(config["path"]))), base, engine_folders(config))

    @property
    def refusal(self) -> str | None:
        """Why the file may not be used at all, or None."""
        if is_engine_owned(self.path, self.engine_folders):
            return f"database '{self.name}' lies inside '{STATE_FOLDER}/', which the engine owns and cleans"
        if self.path.is_dir():
            return f"database '{self.name}' is a folder"
        return None

    @property
    def name(self) -> str:
        """Return the path for messages, relative to the project where possible."""
        if self.path.is_relative_to(self.project_dir):
            return self.path.relative_to(self.project_dir).as_posix()
        return str(self.path)

    @property
    def real_path(self) -> str:
        """Return where the file is, links followed: the same for every spelling of its path."""
        return os.path.realpath(self.path)

    def is_database(self) -> bool:
        """Tell whether the existing file starts like a DuckDB database.

        Raises:
            OSError: the file cannot be read.
        """
        with self.path.open("rb") as file:
            start = file.read(_MAGIC_OFFSET + len(_MAGIC))
        return not start or start[_MAGIC_OFFSET:] == _MAGIC

    def require_readable(self) -> None:
        """Refuse a read that would have to create the file.

        Raises:
            PzConnectorError: permanent, `PZ0353`.
        """
        self._require_usable()
        if not self.path.exists():
            raise PzConnectorError(
                f"database '{self.name}' does not exist",
                is_transient=False,
                code="PZ0353",
                hint="correct 'path', or run the pipeline that writes it first",
            )

    def require_writable(self) -> None:
        """Refuse a write whose folder is missing; the file itself is created on attach.

        Raises:
            PzConnectorError: permanent, `PZ0353`.
        """
        self._require_usable()
        if not self.path.parent.is_dir():
            raise PzConnectorError(
                f"the folder of database '{self.name}' does not exist",
                is_transient=False,
                code="PZ0353",
                hint="create that folder, or correct 'path'",
            )

    def attach_step(self, connection: str) -> AttachStep:
        """Return the attach that reads and writes of a connection share."""
        return AttachStep(session_name("duckdb", connection), str(self.path))

    def _require_usable(self) -> None:
        refusal = self.refusal
        if refusal is not None:
            raise PzConnectorError(refusal, is_transient=False, code="PZ0353", hint="choose another 'path'")
