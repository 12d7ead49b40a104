"""What lies between two attempts of one step: a retry in a shell, a run that was cancelled, or nothing."""

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from pz_dagster import PzProject, PzResource, PzTranslator, pz_assets
from pz_dagster.errors import PzDagsterError
from pz_dagster.snapshot import Snapshot
from pz_engine import CheckNode, RunRequest, run_project
from pz_engine.connectors import PzConnectorError
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall, rows
from tests.dagster.far_side import Far, Job
from tests.dagster.test_resume import ALL, CHECKS, FROM_FAILURE, far, landed, provenance, two  # noqa: F401 - fixtures

# ruff: noqa: F811 - fixtures


def test_checks_that_a_shell_evaluated_are_told_by_the_next_attempt(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """`pz retry` between two attempts did what was left: that is told, and what Dagster has already is not told twice."""
    sink = "{{ sink('far', 'b', strategy: 'append', duplicates: 'accept') }}"
    two.pipeline("p_b", f"INSERT INTO {sink}\nSELECT id, name FROM {{{{ source('far', 'more') }}}}")

    def read(call: ReadCall) -> list[pa.RecordBatch]:
        if call.spec.entity == "more" and not failed:
            failed.append(call)
            raise PzConnectorError("away", is_transient=True)
        return [rows(1, 2)]

    failed: list[ReadCall] = []

    @pz_assets(project=PzProject(two.directory), retry_policy=dg.RetryPolicy(max_retries=1))
    def body(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        if context.retry_number == 1:
            assert run_project(RunRequest(two.directory, retry_from="latest")).exit_code == 0
            far.counts()
        yield from pz.run(context=context).stream()

    far.on_read = read
    job = Job(two, instance, [body])
    assert job.run() == sorted([*ALL, "two/src_far__more"])
    assert (job.succeeded, job.checks, far.counts()) == (True, CHECKS, (0, []))
    assert provenance(job).keys() == {"far/b", "two/p_b", "two/src_far__more"}
    assert landed(far) == {"a": [1, 2], "b": [1, 2]}


def test_an_attempt_after_a_cancelled_run_begins_afresh(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """A body may ask for a retry after any end; of a run that ended fatally nothing is assumed, and one line says so."""

    @pz_assets(project=PzProject(two.directory))
    def body(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        invocation = pz.run(context=context)
        if context.retry_number > 0:
            yield from invocation.stream()
            return
        try:
            for result in invocation.stream():
                yield result
                invocation.cancel()
        except PzDagsterError:
            raise dg.RetryRequested(max_retries=1) from None

    job = Job(two, instance, [body])
    far.on_write = lambda call: time.sleep(0.3)
    assert job.run() == ALL
    assert (job.succeeded, far.counts()[0]) == (True, 2)
    assert [text for text in job.messages if "ended fatally, so everything is extracted again" in text]


def test_a_cancelled_attempt_of_a_re_execution_proves_nothing_of_its_parent(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """It had taken the parent's work over and its own end is unknown, so all of it is done again."""

    @pz_assets(project=PzProject(two.directory))
    def body(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        invocation = pz.run(context=context)
        if context.run.parent_run_id is not None and context.retry_number == 0:
            invocation.cancel()
            with pytest.raises(PzDagsterError, match="cancelled"):
                list(invocation.stream())
            raise dg.RetryRequested(max_retries=1)
        yield from invocation.stream()

    job = Job(two, instance, [body])
    far.failures = {"b": 1}
    job.run()
    far.counts()
    assert job.run(FROM_FAILURE, parent=job.last) == ALL
    assert (job.succeeded, far.counts()) == (True, (1, ["a", "b"]))


def test_an_attempt_after_one_that_never_began_continues_the_parent(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """The first attempt of a re-execution left no run of its own; the failed run's sink is still not written twice."""

    @pz_assets(project=PzProject(two.directory))
    def body(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        if context.run.parent_run_id is not None and context.retry_number == 0:
            raise dg.RetryRequested(max_retries=1)
        yield from pz.run(context=context).stream()

    job = Job(two, instance, [body])
    far.failures = {"b": 1}
    job.run()
    assert far.counts() == (1, ["a"])
    assert job.run(FROM_FAILURE, parent=job.last) == ALL
    assert (job.succeeded, far.counts()) == (True, (0, ["b"]))
    assert landed(far) == {"a": [1, 2], "b": [1, 2]}


def test_a_check_that_passes_now_is_told(two: ProjectFactory, far: Far, instance: dg.DagsterInstance) -> None:
    """Only a success is told once; a warning of the first attempt does not stand for rows that were read again."""

    class Warns(PzTranslator):
        def get_check_severity(self, node: CheckNode, snapshot: Snapshot) -> dg.AssetCheckSeverity:
            return dg.AssetCheckSeverity.WARN

    @pz_assets(project=PzProject(two.directory), translator=Warns(), retry_policy=dg.RetryPolicy(max_retries=1))
    def body(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        if context.retry_number > 0:
            for staging in (two.directory / ".pz" / "runs").glob("*/staging.duckdb"):
                staging.unlink()
            far.on_read = far.read
        yield from pz.run(context=context).stream()

    nothing = pa.RecordBatch.from_arrays([pa.array([None], pa.int64()), pa.array(["n"])], names=["id", "name"])
    far.on_read = lambda call: [rows(1, 2), nothing]
    far.failures = {"b": 1}
    job = Job(two, instance, [body])
    job.run()
    assert job.succeeded
    told = [e.asset_check_evaluation_data for e in job.events if e.event_type_value == "ASSET_CHECK_EVALUATION"]
    assert [each.passed for each in told if each.check_name == "check_p_b_not_null_id"] == [False, True]
