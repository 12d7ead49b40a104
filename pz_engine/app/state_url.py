"""`--state-url`: an endpoint for the state of one invocation; stronger than the environment, never than a pinned backend."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from pz_engine.config.project_file import PROJECT_FILE
from pz_engine.errors.exceptions import PzConfigError
from pz_engine.model.project import StateSettings

ORIGIN = "--state-url"
"""Where the backend comes from, as notes name it."""


def with_state_url(env: Mapping[str, str], url: str | None) -> Mapping[str, str]:
    """Return the environment that `state:` takes its defaults from."""
    return env if url is None else ChainMap({"PZ_STATE_BACKEND": "http", "PZ_STATE_URL": url}, cast("Any", env))


def point_state_at(settings: StateSettings, url: str | None) -> StateSettings:
    """Return the settings with the endpoint in place of their own.

    Raises:
        PzConfigError: `PZ0124`, the project pins another backend.
    """
    if url is None:
        return settings
    if settings.backend != "http":
        raise PzConfigError(
            "PZ0124",
            f"--state-url needs the state backend http, but the project pins {settings.backend}",
            file=PROJECT_FILE,
            hint="leave out --state-url, or remove state.backend",
        )
    return replace(settings, url=url, origin=ORIGIN)
