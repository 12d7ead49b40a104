"""What one part of a split op takes from another: the loads of a part that ended, and nothing it cannot use."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from pz_dagster import PzProject, PzResource, PzTranslator, build_pz_assets, pz_assets
from pz_dagster.snapshot import Snapshot
from pz_engine import CancelToken, Node, RunRequest, RunStatus, list_runs, run_project
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall, rows
from tests.dagster.far_side import Far, Job
from tests.dagster.test_resume import A, B, Between, far, landed, two, watermark  # noqa: F401 - fixtures

# ruff: noqa: F811 - fixtures
TAKES = "takes the loads of pz run"


def between(what: Callable[[dg.AssetExecutionContext], None]) -> dg.AssetsDefinition:
    """An asset of somebody else after the first sink, on which the second part of the op waits."""

    @dg.asset(name="between", deps=[A])
    def found(context: dg.AssetExecutionContext) -> None:
        what(context)

    return found


def taken(job: Job) -> list[str]:
    return [text for text in job.messages if text.startswith(TAKES)]


def test_loads_are_taken_from_a_part_that_ended(two: ProjectFactory, far: Far, instance: dg.DagsterInstance) -> None:
    """A newer part that was cancelled after it had read proves nothing; the one before it does."""

    def cancelled_part(context: dg.AssetExecutionContext) -> None:
        far.ids = [1, 2, 3]
        token = CancelToken()
        far.on_write = lambda call: token.set()
        host = {"host": "dagster", "run_id": context.run.run_id, "step": "two_3", "op": "two", "partitions": []}
        run_project(RunRequest(two.directory, host=host, cancel=token))
        far.on_write = far.write
        assert list_runs(two.directory)[0].status is RunStatus.FATAL
        assert len(far.reads) == 2

    job = Job(
        two, instance, [*build_pz_assets(PzProject(two.directory), translator=Between()), between(cancelled_part)]
    )
    job.run()
    assert job.succeeded
    assert len(taken(job)) == 1
    assert len(far.reads) == 2
    assert landed(far)["b"] == [1, 2]
    assert watermark(two) == "2"


class Apart(PzTranslator):
    """Lets a whole flow wait for an asset of somebody else."""

    def get_deps(self, node: Node, snapshot: Snapshot, keys: Mapping[str, dg.AssetKey]) -> Sequence[dg.AssetKey]:
        found = super().get_deps(node, snapshot, keys)
        return [*found, dg.AssetKey("between")] if node.name == "src_far__more" else found


def test_a_part_that_shares_no_load_continues_nothing(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """Two flows in one op: the second one reads for itself, and no line says otherwise."""
    sink = "{{ sink('far', 'c', strategy: 'append', duplicates: 'accept') }}"
    two.pipeline("p_c", f"INSERT INTO {sink}\nSELECT id, name FROM {{{{ source('far', 'more') }}}}")
    made = build_pz_assets(PzProject(two.directory), translator=Apart(), op_per="project")
    job = Job(two, instance, [*made, between(lambda context: None)])
    job.run()
    assert job.succeeded
    assert {(record.host or {})["step"] for record in list_runs(two.directory)} == {"two", "two_2"}
    assert far.counts() == (2, ["a", "b", "c"])
    assert taken(job) == []


@pytest.mark.parametrize("end", ["refused", "cancelled"])
def test_a_part_whose_first_attempt_came_to_nothing_still_sees_the_slice(
    end: str, two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """Rows that arrive between the attempts are left to the next run, or both sinks would get some of them twice."""

    def body(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        invocation = pz.run(context=context)
        if context.op_execution_context.op.name == "two" or context.retry_number > 0:
            yield from invocation.stream()
            return
        if end == "cancelled":
            invocation.cancel()
            with pytest.raises(dg.Failure, match="cancelled"):
                list(invocation.stream())
            assert list_runs(two.directory)[0].status is RunStatus.FATAL
        raise dg.RetryRequested(max_retries=1)

    def arrive(context: dg.AssetExecutionContext) -> None:
        far.ids = [1, 2, 3]

    made = pz_assets(project=PzProject(two.directory), name="two", translator=Between())(body)
    job = Job(two, instance, [made, between(arrive)])
    job.run()
    assert job.succeeded
    assert far.counts() == (1, ["a", "b"])
    assert landed(far) == {"a": [1, 2], "b": [1, 2]}
    assert watermark(two) == "2"
    assert len(taken(job)) == (1 if end == "refused" else 2)


def test_checks_of_what_is_computed_again_hold_their_sink_again(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """They passed for rows that are lost; the rows that are read instead are judged before they are delivered."""
    job = Job(two, instance)
    far.failures = {"b": 1}
    job.run()
    for staging in (two.directory / ".pz" / "runs").glob("*/staging.duckdb"):
        staging.unlink()
    worse = pa.RecordBatch.from_arrays([pa.array([None], pa.int64()), pa.array(["n"])], names=["id", "name"])

    def read(call: ReadCall) -> list[pa.RecordBatch]:
        return [rows(1, 2), worse]

    far.on_read = read
    job.run("dagster/is_resume_retry", parent=job.last)
    found = [e.asset_check_evaluation_data for e in job.events if e.event_type_value == "ASSET_CHECK_EVALUATION"]
    assert {each.check_name: each.passed for each in found}["check_p_b_not_null_id"] is False
    assert (job.succeeded, landed(far)) == (False, {"a": [1, 2]})
