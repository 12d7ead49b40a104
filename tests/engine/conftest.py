"""A project that a test writes, loads and compiles in place."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from pz_engine.compile.builder import RunIdentity, compile_files
from pz_engine.compile.dag import CompiledProject
from pz_engine.config.loader import ProjectFiles, load_project
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.errors.exceptions import PzValidationError

IDENTITY = RunIdentity("20261130T120000000Z-abcd", datetime(2026, 11, 30, 12, tzinfo=timezone.utc))


class MiniProject:
    """Files on disk, and what loading and compiling make of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.write("project.yml", "name: demo\nversion: '1'\n")

    def write(self, path: str, text: str) -> MiniProject:
        target = self.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
        return self

    def sql(self, name: str, text: str) -> MiniProject:
        return self.write(f"pipelines/{name}.sql", text)

    def sidecar(self, pipeline: str, text: str) -> MiniProject:
        return self.write(f"pipelines/configs/{pipeline}.yml", f"pipeline: {pipeline}\n{text}")

    def load(self, env: dict[str, str] | None = None, variables: dict[str, object] | None = None) -> ProjectFiles:
        return load_project(self.directory, env=env or {}, vars_overrides=variables)

    def compile(self, env: dict[str, str] | None = None) -> CompiledProject:
        return compile_files(self.load(env), env=env or {}, identity=IDENTITY)

    def problems(self, env: dict[str, str] | None = None) -> tuple[Diagnostic, ...]:
        """Compile, expecting problems."""
        with pytest.raises(PzValidationError) as caught:
            self.compile(env)
        return caught.value.errors

    def found(self, env: dict[str, str] | None = None) -> list[tuple[str, str | None]]:
        """Compile, expecting problems; return each one's code and place."""
        return [(problem.code, problem.place) for problem in self.problems(env)]


@pytest.fixture
def project(tmp_path: Path) -> MiniProject:
    """An empty project."""
    return MiniProject(tmp_path / "demo")
