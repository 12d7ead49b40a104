"""A real `dagster dev` with a home of its own, driven over GraphQL.

The server is stopped by SIGINT, as by a person, and leaves no process behind.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

_LAUNCH = """
mutation ($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  ... on RunConfigValidationInvalid { errors { message } } } }
"""
_REEXECUTE = """
mutation ($params: ReexecutionParams!) { launchRunReexecution(reexecutionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }
"""
_TERMINATE = "mutation ($id: String!) { terminateRun(runId: $id) { __typename } }"
_BACKFILL = """
mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }
"""
_BACKFILL_STATUS = """
query ($id: String!) { partitionBackfillOrError(backfillId: $id) {
  ... on PartitionBackfill { status error { message } } } }
"""
_START_SCHEDULE = """
mutation ($s: ScheduleSelector!) { startSchedule(scheduleSelector: $s) {
  __typename ... on ScheduleStateResult { scheduleState { id } } } }
"""
_STOP_SCHEDULE = "mutation ($id: String!) { stopRunningSchedule(id: $id) { __typename } }"
_START_SENSOR = "mutation ($s: SensorSelector!) { startSensor(sensorSelector: $s) { __typename } }"
_TICKS = """
query ($s: SensorSelector!) { sensorOrError(sensorSelector: $s) {
  ... on Sensor { sensorState { ticks { status runIds timestamp } } } } }
"""
_LIMIT = "mutation ($pool: String!, $n: Int!) { setConcurrencyLimit(concurrencyKey: $pool, limit: $n) }"
_STATUS = "query ($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
_LOCATIONS = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } } } } }"
_ENDED = ("SUCCESS", "FAILURE", "CANCELED")


@dataclass(frozen=True)
class DevServer:
    """A server that answers."""

    url: str
    home: Path
    location: str
    """Name of the code location; it is part of many addresses."""

    def query(self, text: str, variables: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the data of a GraphQL answer.

        Raises:
            RuntimeError: the answer holds errors.
        """
        body = {"query": text, "variables": dict(variables or {})}
        answer = httpx.post(f"{self.url}/graphql", json=body, timeout=60).json()
        if answer.get("errors"):
            raise RuntimeError(str(answer["errors"]))
        found: dict[str, Any] = answer["data"]
        return found

    def launch(
        self, assets: Sequence[Sequence[str]], config: Mapping[str, Any] | None = None, *, location: str | None = None
    ) -> str:
        """Materialize assets, each given by the parts of its key, and return the run's id."""
        selection = {"jobName": "__ASSET_JOB", "assetSelection": [{"path": list(path)} for path in assets]}
        return self._launch({**self._place(location), **selection}, config)

    def launch_job(self, name: str, *, location: str | None = None) -> str:
        """Run a job with its own configuration and tags, and return the run's id."""
        return self._launch({**self._place(location), "jobName": name}, None)

    def _launch(self, selector: Mapping[str, Any], config: Mapping[str, Any] | None) -> str:
        params = {"selector": selector, "mode": "default", "runConfigData": dict(config or {})}
        return _run_id(self.query(_LAUNCH, {"params": params})["launchPipelineExecution"])

    def reexecute(self, run_id: str, strategy: str = "FROM_ASSET_FAILURE") -> str:
        """Run again what a run left undone, and return the new run's id."""
        params = {"parentRunId": run_id, "strategy": strategy}
        return _run_id(self.query(_REEXECUTE, {"params": params})["launchRunReexecution"])

    def terminate(self, run_id: str) -> None:
        """Do what the button does; the run ends later."""
        answer = self.query(_TERMINATE, {"id": run_id})["terminateRun"]
        if answer["__typename"] != "TerminateRunSuccess":
            raise RuntimeError(f"not terminated: {answer}")

    def backfill(self, assets: Sequence[Sequence[str]], partitions: Sequence[str]) -> str:
        """Materialize partitions of assets and return the backfill's id."""
        params = {"assetSelection": [{"path": list(path)} for path in assets], "partitionNames": list(partitions)}
        answer = self.query(_BACKFILL, {"params": params})["launchPartitionBackfill"]
        if answer["__typename"] != "LaunchBackfillSuccess":
            raise RuntimeError(f"not launched: {answer}")
        return str(answer["backfillId"])

    def backfill_status(self, backfill_id: str) -> str:
        """Return how far a backfill is, its error included."""
        found = self.query(_BACKFILL_STATUS, {"id": backfill_id})["partitionBackfillOrError"]
        return str(found["status"]) + (f": {found['error']['message']}" if found.get("error") else "")

    def start_schedule(self, name: str, *, location: str | None = None) -> str:
        """Switch a schedule on, and return what stops it."""
        answer = self._switch(_START_SCHEDULE, {"scheduleName": name, **self._place(location)})
        return str(answer["scheduleState"]["id"])

    def stop_schedule(self, state_id: str) -> None:
        """Switch a schedule off that was switched on; it may fire once more."""
        self.query(_STOP_SCHEDULE, {"id": state_id})

    def start_sensor(self, name: str, *, location: str | None = None) -> None:
        """Switch a sensor on."""
        self._switch(_START_SENSOR, {"sensorName": name, **self._place(location)})

    def ticks(self, sensor: str, *, location: str | None = None) -> list[dict[str, Any]]:
        """Return the ticks of a sensor that have ended, newest first."""
        selector = {"sensorName": sensor, **self._place(location)}
        found = self.query(_TICKS, {"s": selector})["sensorOrError"]["sensorState"]["ticks"]
        return [tick for tick in found if tick["status"] != "STARTED"]

    def limit_pool(self, pool: str, limit: int) -> None:
        """Let so many ops of a pool run at once."""
        self.query(_LIMIT, {"pool": pool, "n": limit})

    def _place(self, location: str | None) -> dict[str, str]:
        return {"repositoryName": "__repository__", "repositoryLocationName": location or self.location}

    def _switch(self, mutation: str, selector: Mapping[str, str]) -> dict[str, Any]:
        (answer,) = self.query(mutation, {"s": selector}).values()
        if answer["__typename"] not in ("ScheduleStateResult", "Sensor"):
            raise RuntimeError(f"not started: {answer}")
        found: dict[str, Any] = answer
        return found

    def status(self, run_id: str) -> str:
        """Return the status of a run."""
        return str(self.query(_STATUS, {"id": run_id})["runOrError"]["status"])

    def follow(self, run_id: str, seconds: float = 240) -> str:
        """Return the status in which a run ended.

        Raises:
            TimeoutError: it has not ended in `seconds`.
        """
        deadline = time.monotonic() + seconds
        status = "unknown"
        while time.monotonic() < deadline:
            status = self.status(run_id)
            if status in _ENDED:
                return status
            time.sleep(0.5)
        raise TimeoutError(f"run {run_id} is {status} after {seconds:.0f} s")


@contextmanager
def dev_server(*definitions: Path, home: Path, environment: Mapping[str, str] | None = None) -> Iterator[DevServer]:
    """Serve files of definitions until the block ends.

    Args:
        definitions: the Python files; each is a code location of its own, named after the file.
        home: the instance's folder with its `dagster.yaml`; what it holds stays.
        environment: variables on top of this process's own.

    Raises:
        TimeoutError: the server does not answer, or processes are left when it has ended; its log is part of the message.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    files = [word for path in definitions for word in ("-f", str(path))]
    command = [sys.executable, "-m", "dagster", "dev", *files, "-h", "127.0.0.1", "-p", str(port)]
    variables = {**os.environ, "DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "1", **(environment or {})}
    log = home / "dev.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=home,
            env=variables,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=_reset_signals,  # noqa: PLW1509
        )
    try:
        server = _wait_until_ready(process, url, home, log)
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=60)
        finally:
            left = _wait_until_gone(home)
            for pid in left:
                os.kill(pid, signal.SIGKILL)
    if left:
        raise TimeoutError(f"{len(left)} process(es) outlived the server:\n{log.read_text(errors='replace')[-3000:]}")


def _reset_signals() -> None:
    """A shell's background job ignores them, and a server that inherits this could not be stopped."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, home: Path, log: Path) -> DevServer:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx.get(f"{url}/server_info", timeout=5).raise_for_status()
            server = DevServer(url, home, "")
            nodes = server.query(_LOCATIONS)["repositoriesOrError"].get("nodes")
            if nodes:
                return DevServer(url, home, nodes[0]["location"]["name"])
        except (httpx.HTTPError, RuntimeError):
            pass
        time.sleep(0.5)
    raise TimeoutError(f"dagster dev does not answer:\n{log.read_text(errors='replace')[-3000:]}")


def _wait_until_gone(home: Path) -> list[int]:
    """Return the processes of this home that are still there after a while."""
    deadline = time.monotonic() + 30
    while (left := _processes(home)) and time.monotonic() < deadline:
        time.sleep(0.3)
    return left


def _processes(home: Path) -> list[int]:
    wanted = f"DAGSTER_HOME={home}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int(entry.name) != os.getpid() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:  # it has just ended, or belongs to somebody else
            continue
    return found


def _run_id(answer: Mapping[str, Any]) -> str:
    if answer["__typename"] != "LaunchRunSuccess":
        raise RuntimeError(f"not launched: {answer}")
    return str(answer["run"]["runId"])
