"""Builds small pz projects on disk for tests, and runs them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from pz_engine.app.host import RunOutcome, RunRequest, Selection
from pz_engine.app.run import run_project
from pz_engine.base.cancellation import CancelToken
from pz_engine.events.types import RunEvent

_PROJECT = """
name: demo
version: "1"
engine:
  threads: 2
  duckdb:
    threads: 2
    memory_limit: 512MB
"""


class ProjectFactory:
    """A project directory that a test fills file by file."""

    def __init__(self, directory: Path, project: str = _PROJECT) -> None:
        self.directory = directory
        self.write("project.yml", project)

    def write(self, path: str, text: str) -> Path:
        """Write a file, dedented, below the project."""
        target = self.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8", newline="")
        return target

    def connections(self, text: str) -> ProjectFactory:
        """Write `connections.yml`."""
        self.write("connections.yml", text)
        return self

    def pipeline(self, name: str, sql: str) -> ProjectFactory:
        """Write a pipeline."""
        self.write(f"pipelines/{name}.sql", sql)
        return self

    def sidecar(self, pipeline: str, text: str) -> ProjectFactory:
        """Write a pipeline's sidecar; `pipeline:` is added."""
        self.write(f"pipelines/configs/{pipeline}.yml", f"pipeline: {pipeline}\n" + textwrap.dedent(text).lstrip("\n"))
        return self

    def run(
        self,
        *,
        mode: Literal["run", "test"] = "run",
        selection: Selection = Selection(everything=True),  # noqa: B008 - frozen
        events: list[RunEvent] | None = None,
        cancel: CancelToken | None = None,
        vars: Mapping[str, Any] | None = None,  # noqa: A002 - the option's name
        on_event: Callable[[RunEvent], None] | None = None,
        **options: Any,
    ) -> RunOutcome:
        """Run the project in this process; events are appended to the list when one is given."""

        def receive(event: RunEvent) -> None:
            if events is not None:
                events.append(event)
            if on_event is not None:
                on_event(event)

        return run_project(
            RunRequest(
                self.directory,
                vars=vars or {},
                mode=mode,
                selection=selection,
                event_sink=receive,
                cancel=cancel or CancelToken(),
                **options,
            )
        )
