"""How the tests of the command line call it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_calls import Call, Called

from pz_engine.app.scaffold import scaffold
from pz_engine.cli.main import run
from pz_engine.cli.render.terminal import Terminal


@pytest.fixture
def pz(capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the command line in this process."""

    def call(*arguments: object) -> Called:
        out, err = io.StringIO(), io.StringIO()
        terminal = Terminal(out, err, os.environ)
        code = run([str(argument) for argument in arguments], terminal)
        assert terminal.close()
        direct = capsys.readouterr()
        return Called(code, direct.out + out.getvalue(), direct.err + err.getvalue())

    return call


@pytest.fixture
def pz_process() -> Call:
    """Call the command line in a process of its own."""

    def call(*arguments: object, **environment: str) -> Called:
        done = subprocess.run(
            [sys.executable, "-m", "pz_engine", *(str(argument) for argument in arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, **environment},
        )
        return Called(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A fresh copy of the sample project."""
    return scaffold(tmp_path / "sample", "sample").directory
