"""Runs a project in a process that may be killed: a fork of one that has imported the engine and never opened DuckDB.

Started as a module it reads one JSON request a line and answers with one line each.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]


def run_here(directory: Path, action: str) -> dict[str, Any]:
    """Run or retry a project in this process; returns what happened as plain data."""
    from pz_engine.app.host import LATEST, RunRequest, Selection
    from pz_engine.app.run import run_project
    from pz_engine.errors.exceptions import PzStateError

    request = RunRequest(
        directory,
        selection=Selection() if action == "retry" else Selection(everything=True),
        retry_from=LATEST if action == "retry" else None,
    )
    try:
        outcome = run_project(request)
    except PzStateError as error:
        return {"end": "refused", "code": error.code}
    except Exception as error:  # what a fault point raises outside of nodes
        if type(error).__name__ != "InjectedFault":
            raise
        return {"end": "died"}
    return {
        "end": "finished" if outcome.results else "nothing",
        "run_id": outcome.run_id,
        "exit_code": outcome.exit_code,
        "status": outcome.status.value,
        "notes": list(outcome.notes),
    }


class Nursery:
    """Gives every step that may kill a process of its own.

    Args:
        processors: what the engine is told of the machine, None: the truth; with 1 it reads one partition after the other.
    """

    def __init__(self, processors: int | None = None) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PZ_")}
        environment["PYTHONPATH"] = os.pathsep.join([str(_ROOT), *sys.path])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.resume.process", *([] if processors is None else [str(processors)])],
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, directory: Path, action: str, fault: str | None) -> dict[str, Any]:
        """Run a step to its end, whichever that is."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"directory": str(directory), "action": action, "fault": fault}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if answer["end"] == "error":
            raise AssertionError(answer["text"])
        return answer

    def close(self) -> None:
        """End the process it started."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


def _import_what_a_run_imports() -> None:
    """Let a child run a small project, and import here what it imported, so that later children need not."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        from pz_engine.testing.project_factory import ProjectFactory

        with tempfile.TemporaryDirectory() as directory:
            project = ProjectFactory(Path(directory)).connections("lake: { connector: localfiles }\n")
            project.write("things.csv", "id\n1\n")
            project.pipeline("p", "INSERT INTO {{ sink('lake', 't') }} SELECT * FROM {{ source('lake', 'things') }}")
            project.run()
        os.write(writing, json.dumps(list(sys.modules)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        names = json.load(pipe)
    os.wait()
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _serve() -> None:
    from pz_engine.testing import fault_connector

    _import_what_a_run_imports()
    if len(sys.argv) > 1:
        os.cpu_count = lambda: int(sys.argv[1])

    with fault_connector.installed():
        for line in sys.stdin:
            request = json.loads(line)
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(reading)
                _be_child(request, writing)
            os.close(writing)
            with os.fdopen(reading) as pipe:
                told = pipe.read()
            _, status = os.waitpid(child, 0)
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
                told = json.dumps({"end": "died"})
            sys.stdout.write((told or json.dumps({"end": "error", "text": f"a child ended with {status}"})) + "\n")
            sys.stdout.flush()


def _be_child(request: dict[str, Any], writing: int) -> None:
    try:
        if request["fault"]:
            os.environ["PZ_FAULT"] = request["fault"]
        answer = run_here(Path(request["directory"]), request["action"])
    except BaseException as error:
        import traceback

        answer = {"end": "error", "text": "".join(traceback.format_exception(error))}
    os.write(writing, json.dumps(answer).encode())
    os._exit(0)


if __name__ == "__main__":
    _serve()
