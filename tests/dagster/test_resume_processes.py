"""Killed workers, locked destinations and overlapping runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from pz_engine import RunRequest, Selection, list_runs, run_project
from pz_engine.testing.http_api import Answer, HttpApi
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import WriteCall
from tests.dagster.far_side import Far, Job, two_sinks
from tests.dagster.storages import at_home

ROWS = [{"id": 1}, {"id": 2}, {"id": 3}]
DRIVER = """
import sys
from pathlib import Path
import dagster as dg
from pz_dagster import PzProject, build_pz_definitions

def make():
    definitions = build_pz_definitions(PzProject(Path(__file__).parent))
    return definitions.resolve_job_def("remote_job")

if __name__ == "__main__":
    import driver
    job, parent = dg.reconstructable(driver.make), sys.argv[1]
    options = dg.ReexecutionOptions.from_failure(parent, dg.DagsterInstance.get()) if parent else None
    tags = {"dagster/is_resume_retry": "true"} if parent else {}
    with dg.DagsterInstance.get() as instance:
        with dg.execute_job(job, instance, tags=tags, reexecution_options=options) as result:
            print(result.run_id, result.success)
"""


@pytest.fixture
def api() -> Iterator[HttpApi]:
    with HttpApi(lambda request: Answer(body=ROWS)) as found:
        yield found


@pytest.fixture
def remote(tmp_path: Path, api: HttpApi) -> ProjectFactory:
    """Rows of an API, appended to a DuckDB file."""
    factory = ProjectFactory(tmp_path / "remote", 'name: remote\nversion: "1"\n')
    factory.connections(
        f"""
        api:
          connector: http
          base_url: {api.url}
          entities:
            items:
              read: {{ path: /items, columns: {{ id: bigint }} }}
        mart:
          connector: duckdb
          path: mart.duckdb
          retry: {{ max_attempts: 1 }}
        """
    )
    factory.pipeline(
        "items",
        "INSERT INTO {{ sink('mart', 'items', strategy: 'append') }}\nSELECT id FROM {{ source('api', 'items') }}",
    )
    factory.write("driver.py", DRIVER)
    return factory


def execute(factory: ProjectFactory, home: Path, *, parent: str = "", fault: str = "") -> tuple[str, bool]:
    """Run or re-execute the job in a process of its own, its step in another; returns run id and success."""
    environment = {
        "DAGSTER_HOME": str(home),
        "PZ_FAULT": fault,
        "PYTHONPATH": ":".join([str(factory.directory), *sys.path]),
        "PATH": "",
    }
    command = [sys.executable, str(factory.directory / "driver.py"), parent]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=120)
    run_id, success = done.stdout.splitlines()[-1].split()
    return run_id, success == "True"


def landed(factory: ProjectFactory) -> list[int]:
    with duckdb.connect(str(factory.directory / "mart.duckdb")) as connection:
        return [row[0] for row in connection.execute("select id from items order by id").fetchall()]


def test_after_a_killed_worker_everything_is_extracted_again(
    remote: ProjectFactory, api: HttpApi, tmp_path: Path
) -> None:
    """Nothing is known of what the killed run did before its commit, its rows land once, and its pool is free at once."""
    home = tmp_path / "home"
    with at_home(home, "concurrency: { pools: { default_limit: 1, granularity: op } }\n") as instance:
        first, success = execute(remote, home, fault="before_sink_commit=kill")
        assert instance.event_log_storage.get_concurrency_info("pz_remote").active_slot_count == 0
        assert (success, len(api.requests)) == (False, 1)
        assert list_runs(remote.directory)[0].status.value == "running"
        second, success = execute(remote, home, parent=first)
        assert (success, len(api.requests)) == (True, 2)
        (line,) = (e.user_message for e in instance.all_logs(second) if "extracted again" in e.user_message)
    assert "was interrupted" in line
    assert landed(remote) == [1, 2, 3]


def test_after_a_locked_destination_the_load_is_reused(
    remote: ProjectFactory, api: HttpApi, instance: dg.DagsterInstance
) -> None:
    """Another process holds the file; when it lets go, the staged rows are written and nothing is asked again."""
    job, path = Job(remote, instance), remote.directory / "mart.duckdb"
    code = f"import duckdb, sys; c = duckdb.connect({str(path)!r}); print(1, flush=True); sys.stdin.readline()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        job.run()
        assert (job.succeeded, len(api.requests)) == (False, 1)
        other.communicate(b"\n")
    job.run("dagster/is_resume_retry", parent=job.last)
    assert (job.succeeded, len(api.requests)) == (True, 1)
    assert landed(remote) == [1, 2, 3]


@pytest.fixture
def far() -> Iterator[Far]:
    found = Far()
    with found.installed():
        yield found


def test_of_two_runs_at_once_the_loser_copies_nothing(far: Far, tmp_path: Path, instance: dg.DagsterInstance) -> None:
    """A run in a shell overtakes: both deliver, its position is stored, and the next Dagster run copies that one."""
    factory = two_sinks(tmp_path / "two")
    job, write = Job(factory, instance), far.on_write
    key = dg.AssetKey(["two", "pz_state"])

    def overtake(call: WriteCall) -> None:
        far.on_write = write
        assert run_project(RunRequest(factory.directory, selection=Selection(everything=True))).exit_code == 0
        write(call)

    far.on_write = overtake
    job.run()
    assert job.succeeded
    assert [text for text in job.messages if "PZ0520" in text]
    assert not instance.fetch_observations(key, limit=10).records
    job.run()
    assert not [text for text in job.messages if "PZ07" in text]
    (event,) = instance.fetch_observations(key, limit=10).records
    assert event.asset_observation is not None
    entry = event.asset_observation.metadata["pz/state"].value["watermarks/far.events"]["entry"]
    (shell,) = (record for record in list_runs(factory.directory) if record.host is None)
    assert entry["runId"] == shell.run_id
