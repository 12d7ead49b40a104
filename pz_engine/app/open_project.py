"""From a directory to a compiled project: the steps every verb shares."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import structs

from pz_engine.app.host import overlay_environment
from pz_engine.app.state_url import point_state_at, with_state_url
from pz_engine.base.hidden_values import HiddenValues, RecordingEnvironment
from pz_engine.base.state_folder import locate_state
from pz_engine.compile.builder import RunIdentity, compile_files
from pz_engine.compile.dag import CompiledProject
from pz_engine.compile.template.lint import lint_templates
from pz_engine.config.loader import load_project
from pz_engine.config.pipeline_files import load_pipeline_files
from pz_engine.config.project_file import PROJECT_FILE
from pz_engine.duck.introspect import SqlParser
from pz_engine.errors.collector import ProblemCollector
from pz_engine.errors.diagnostics import Diagnostic, ordered
from pz_engine.errors.exceptions import PzConfigError, PzValidationError

if TYPE_CHECKING:
    from pz_engine.duck.instance import DuckInstance

_PLAIN_VARIABLES: Final = frozenset(
    {"PZ_STATE_BACKEND", "PZ_STATE_SCHEMA", "PZ_STATE_ARTIFACTS", "PZ_STATE_EVENTS", "PZ_STATE_TIMEOUT_SECONDS"}
)
"""Settings that are no secrets and that messages name."""


def open_project(
    project_dir: Path,
    *,
    vars: Mapping[str, Any] | None = None,  # noqa: A002 - the option's name
    env: Mapping[str, str] | None = None,
    identity: RunIdentity | None = None,
    env_names: Literal["resolve", "keep", "keep_unset"] = "resolve",
    state_url: str | None = None,
    state_dir: Path | None = None,
    instance: DuckInstance | None = None,
) -> CompiledProject:
    """Load and compile.

    Args:
        project_dir: the project's directory.
        vars: overrides of `vars:`.
        env: laid over the process environment.
        env_names: `keep` leaves every `${NAME}` as it is written, set or not, and an `env()` of an unset variable as its
            name; `keep_unset` does so for unset ones only. Neither reports an unset variable.
        state_url: endpoint that `state:` is pointed at for this invocation.
        state_dir: what stands in for the project's `.pz`; `PZ_STATE_DIR` says it otherwise.
        identity: run id and start for templates; verbs that do not run leave it out and get an invented one.
        instance: the DuckDB to parse with; a new one without it.

    Raises:
        PzValidationError: every problem of the first phase that found any; beside the problems of files also those
            that pipelines have on their own.
    """
    environment = RecordingEnvironment(overlay_environment(env or {}))
    rendered = environment if env_names == "resolve" else _UnsetAsNames(environment)
    configured = _UnsetAsNames({}) if env_names == "keep" else rendered
    try:
        files = load_project(
            project_dir.absolute(), env=with_state_url(configured, state_url), vars_overrides=vars or None
        )
    except PzValidationError as error:
        raise PzValidationError(ordered([*error.errors, *_template_problems(project_dir)])) from None
    compiled = compile_files(files, env=rendered, identity=identity or _invented_identity(), parser=SqlParser(instance))
    secrets = {name: value for name, value in environment.used.items() if name not in _PLAIN_VARIABLES}
    compiled = replace(
        compiled,
        hidden=HiddenValues.of(secrets, vars or {}),
        state_dir=locate_state(project_dir, state_dir, overlay_environment(env or {})),
    )
    if state_url is None or compiled.project is None:
        return compiled
    try:
        state = point_state_at(compiled.project.state, state_url)
    except PzConfigError as error:
        raise PzValidationError([error.diagnostic]) from None
    return replace(compiled, project=structs.replace(compiled.project, state=state))


def _template_problems(project_dir: Path) -> list[Diagnostic]:
    """Return what is wrong with the pipelines on their own, to stand beside the problems of the other files."""
    if not (project_dir / PROJECT_FILE).is_file():
        return []
    problems = ProblemCollector()
    found = load_pipeline_files(project_dir, ProblemCollector())
    lint_templates(found.pipelines, set(found.names), problems)
    return problems.errors


def _invented_identity() -> RunIdentity:
    now = datetime.now(timezone.utc)
    return RunIdentity(f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}Z-{secrets.token_hex(2)}", now)


class _UnsetAsNames(Mapping[str, str]):
    """An environment in which an unset variable stands for its own reference; `get` sees set ones only."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> str:
        return self._values.get(key, f"${{{key}}}")

    def get(self, key: str, default: Any = None) -> Any:
        """Return a set variable."""
        return self._values.get(key, default)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
