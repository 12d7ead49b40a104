"""Between engine and op: a slow reader stalls nothing, output that cannot be written stops nothing, the host record is whole."""

import io
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, PzResource, pz_assets
from pz_dagster.errors import PzDagsterError
from pz_engine import list_runs
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import rows
from tests.dagster.conftest import Workbench
from tests.dagster.far_side import Far, Job
from tests.dagster.test_builtin_checks import watched  # noqa: F401 - fixture
from tests.dagster.test_resume import FROM_FAILURE, far, two  # noqa: F401 - fixtures

# ruff: noqa: F811 - fixtures


def journal(directory: Path) -> str:
    return "".join(path.read_text() for path in (directory / ".pz" / "journal").glob("*"))


def test_progress_that_nobody_takes_is_one_event_and_stalls_nothing(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """Whoever stops reading gets the newest progress of each node, and every other event."""
    far.on_read = lambda call: (rows(number) for number in range(100))
    seen: list[dict[str, Any]] = []

    @pz_assets(project=PzProject(two.directory))
    def slow(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        events = pz.run(context=context).stream_events()
        seen.append(next(events))
        deadline = time.monotonic() + 20
        while '"name":"far.b","status"' not in journal(two.directory):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        seen.extend(events)
        yield from ()
        raise dg.Failure("seen enough")

    dg.materialize([slow], instance=instance, resources={"pz": PzResource()}, raise_on_error=False)
    written = [json.loads(line) for line in journal(two.directory).splitlines()]
    progress = [each for each in seen if each["event"] == "node_progress"]
    assert len([each for each in written if each["event"] == "node_progress"]) > len(progress)
    nodes = [each["nodeId"] for each in progress]
    assert len(nodes) == len(set(nodes))
    newest = {each["nodeId"]: each["batches"] for each in written if each["event"] == "node_progress"}
    assert {each["nodeId"]: each["batches"] for each in progress} == newest
    rest = [each["event"] for each in written if each["event"] not in ("node_progress", "node_queued")]
    assert [each["event"] for each in seen if each["event"] not in ("node_progress", "node_queued")] == rest


def test_raw_events_of_a_refused_run_end_in_the_refusal(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A run that never started is no empty stream; messages in events are summaries."""
    texts: list[str] = []

    @pz_assets(project=PzProject(shop.directory), select="+lake.orders")
    def raw(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        invocation = pz.run(context=context)
        texts.extend(json.dumps(each) for each in invocation.stream_events())
        yield from ()

    (shop.directory / "in" / "orders.csv").write_text("id,amount\n1,a-row-value\n")
    dg.materialize([raw], instance=instance, resources={"pz": PzResource()}, raise_on_error=False)
    assert [text for text in texts if '"errorCode": "PZ05' in text]
    assert "a-row-value" not in "".join(texts)
    assert "[value removed]" in "".join(texts)
    shop.sidecar("events_merged", "checks:\n  - not_nul: [id]\n")
    texts.clear()
    with pytest.raises(PzDagsterError, match="PZ0113"):
        dg.materialize([raw], instance=instance, resources={"pz": PzResource()})
    assert texts == []


class Full(io.TextIOBase):
    """A stream on a device without space."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_captured_output_that_cannot_be_written_is_given_up(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk below the compute log fails no op; the journal has everything."""
    with monkeypatch.context() as patch:
        for name in ("stdout", "stderr"):
            patch.setattr(sys, name, Full())
        assert bench.materialize().success
    assert journal(bench.factory.directory).count('"run_completed"') == 2


def test_captured_output_of_a_narrow_stream_keeps_every_event(
    watched: ProjectFactory, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letters that the stream cannot write are escaped, in the same line."""
    bench = Workbench(watched, instance)
    bench.materialize()
    before = len(journal(watched.directory).splitlines())
    watched.write("people.csv", "id,born,code,größe\n1,2000-01-31,5,a\n")
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", narrow)
        assert bench.materialize().success
    narrow.flush()
    written = narrow.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]
    lines = [line for line in written.splitlines() if line.startswith('{"event"')]
    assert len(lines) == len(journal(watched.directory).splitlines()) - before
    assert any("gr\\xf6\\xdfe" in line for line in lines)


def test_the_host_record_says_what_was_launched(two: ProjectFactory, far: Far, instance: dg.DagsterInstance) -> None:
    """Run, root, parent, step, attempt, fingerprint and selection; nothing else but the op and its partitions."""
    job = Job(two, instance)
    far.failures = {"b": 1}
    job.run()
    first = job.last
    job.run(FROM_FAILURE, parent=first)
    newest, oldest = (record.host for record in list_runs(two.directory))
    fixed = {
        "host": "dagster",
        "step": "two",
        "op": "two",
        "attempt": 0,
        "fingerprint": PzProject(two.directory).fingerprint,
        "partitions": [],
    }
    names = ["check_p_a_not_null_id", "check_p_b_not_null_id", "far.a", "far.b", "p_a", "p_b", "src_far__events"]
    common = {**fixed, "selection": names}
    assert oldest == {**common, "run_id": first, "root_run_id": None, "parent_run_id": None}
    assert newest == {**common, "run_id": job.last, "root_run_id": first, "parent_run_id": first}
