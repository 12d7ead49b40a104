"""A far side that counts its reads and commits, a project on it, and jobs that are re-executed as the UI does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run_iterator

from pz_dagster import PzProject, PzResource, build_pz_assets
from pz_engine.connectors import PzConnectorError
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall, ScriptedConnector, WriteCall, rows


class Far(ScriptedConnector):
    """A far side whose sinks fail as often as they are told, and that counts what happens to it."""

    def __init__(self) -> None:
        super().__init__(on_read=self.read, on_write=self.write)
        self.failures: dict[str, int] = {}
        self.is_transient = True
        self.commits: list[str] = []
        self.ids = [1, 2]

    def read(self, call: ReadCall) -> Iterable[pa.RecordBatch]:
        return [rows(*self.ids)]

    def write(self, call: WriteCall) -> None:
        entity = call.spec.entity
        if call.step == "commit":
            if self.failures.get(entity, 0) > 0:
                self.failures[entity] -= 1
                raise PzConnectorError("the far side is away", is_transient=self.is_transient)
            self.commits.append(entity)

    def counts(self) -> tuple[int, list[str]]:
        """Reads and commits since the last call."""
        found = len(self.reads), sorted(self.commits)
        self.reads.clear()
        self.commits.clear()
        return found


def two_sinks(directory: Path) -> ProjectFactory:
    """One load, two checked pipelines, two sinks that append."""
    factory = ProjectFactory(directory, 'name: two\nversion: "1"\nengine: { threads: 1 }\n')
    factory.connections(
        """
        far:
          connector: scripted
          retry: { max_attempts: 1 }
          entities:
            events:
              read: { columns: { id: bigint, name: varchar }, sync: { mode: incremental, cursor: id } }
        """
    )
    for name in ("a", "b"):
        sink = f"{{{{ sink('far', '{name}', strategy: 'append', duplicates: 'accept') }}}}"
        factory.pipeline(f"p_{name}", f"INSERT INTO {sink}\nSELECT id, name FROM {{{{ source('far', 'events') }}}}")
        factory.sidecar(f"p_{name}", "checks:\n  - not_null: [id]\n")
    return factory


class Job:
    """A project's job, run and re-executed as the UI does it."""

    def __init__(
        self,
        factory: ProjectFactory,
        instance: dg.DagsterInstance,
        assets: Sequence[Any] | None = None,
        *,
        resource: PzResource | None = None,
        **options: Any,
    ) -> None:
        self.instance = instance
        made = assets if assets is not None else build_pz_assets(PzProject(factory.directory), **options)
        self.definitions = dg.Definitions(
            assets=made, resources={"pz": resource or PzResource()}, executor=dg.in_process_executor
        )
        self.job = self.definitions.resolve_implicit_global_asset_job_def()
        self.last = ""
        """The newest run's id."""

        self.succeeded = False
        self.events: list[dg.DagsterEvent] = []

    @property
    def messages(self) -> list[str]:
        """What the newest run logged."""
        return [entry.user_message for entry in self.instance.all_logs(self.last) if entry.user_message]

    @property
    def checks(self) -> list[str]:
        """Names of the checks that the newest run evaluated."""
        found = [e.asset_check_evaluation_data for e in self.events if e.event_type_value == "ASSET_CHECK_EVALUATION"]
        return sorted(each.check_name for each in found)

    def run(
        self,
        *tags: str,
        parent: str | None = None,
        assets: Iterable[dg.AssetKey] | None = None,
        checks: Iterable[dg.AssetCheckKey] | None = None,
        config: Any = None,
        partition: str | None = None,
    ) -> list[str]:
        """Run the job, as a child of another run when one is named; returns the materialized assets, sorted."""
        instance = self.instance
        job = self.job
        if assets is not None:
            job = job.get_subset(asset_selection=set(assets), asset_check_selection=set(checks or ()))
        run = instance.create_run_for_job(
            job,
            run_config=config or {},
            tags={**dict.fromkeys(tags, "true"), **({"dagster/partition": partition} if partition else {})},
            parent_run_id=parent,
            root_run_id=parent,
            asset_selection=frozenset(assets) if assets is not None else None,
        )
        self.events = list(execute_run_iterator(InMemoryJob(job), run, instance))
        self.last = run.run_id
        ended = instance.get_run_by_id(run.run_id)
        self.succeeded = ended is not None and ended.status is dg.DagsterRunStatus.SUCCESS
        found = [e.asset_key for e in self.events if e.is_step_materialization and e.asset_key is not None]
        return sorted(key.to_user_string() for key in found)
