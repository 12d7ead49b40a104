"""From a directory to a compiled project: the steps every verb shares."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pz_engine.app.host import overlay_environment
from pz_engine.compile.builder import RunIdentity, compile_files
from pz_engine.compile.dag import CompiledProject
from pz_engine.config.loader import load_project


def open_project(
    project_dir: Path,
    *,
    vars: Mapping[str, Any] | None = None,  # noqa: A002 - the option's name
    env: Mapping[str, str] | None = None,
    identity: RunIdentity | None = None,
    keep_unset_env: bool = False,
) -> CompiledProject:
    """Load and compile.

    Args:
        project_dir: the project's directory.
        vars: overrides of `vars:`.
        env: laid over the process environment.
        keep_unset_env: leave an unset `${NAME}` as it is written instead of reporting it.
        identity: run id and start for templates; verbs that do not run leave it out and get an invented one.

    Raises:
        PzValidationError: every problem of the first phase that found any.
    """
    environment = overlay_environment(env or {})
    if keep_unset_env:
        environment = _KeepUnset(environment)
    files = load_project(project_dir.absolute(), env=environment, vars_overrides=vars or None)
    return compile_files(files, env=environment, identity=identity or _invented_identity())


def _invented_identity() -> RunIdentity:
    now = datetime.now(timezone.utc)
    return RunIdentity(f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}Z-{secrets.token_hex(2)}", now)


class _KeepUnset(dict[str, str]):
    """An environment in which an unset variable stands for its own reference; pz's own settings stay unset."""

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or _is_reference(key)

    def __missing__(self, key: str) -> str:
        if not _is_reference(key):
            raise KeyError(key)
        return f"${{{key}}}"

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value, or the reference itself."""
        try:
            return self[key]
        except KeyError:
            return default


def _is_reference(key: object) -> bool:
    return isinstance(key, str) and not key.startswith("PZ_")
