"""Which thread talks to Dagster: the op's, never the engine's."""

from __future__ import annotations

import threading
from typing import Any

import dagster as dg
import pytest

from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.far_side import Far, Job, two_sinks

WRITES = ("handle_new_event", "store_event", "report_dagster_event", "report_runless_asset_event", "add_run_tags")


@pytest.fixture
def callers(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the threads that wrote into an instance."""
    found: set[str] = set()

    def watched(original: Any) -> Any:
        def write(*arguments: Any, **named: Any) -> Any:
            found.add(threading.current_thread().name)
            return original(*arguments, **named)

        return write

    for name in WRITES:
        monkeypatch.setattr(dg.DagsterInstance, name, watched(getattr(dg.DagsterInstance, name)))
    return found


def test_only_the_op_writes_into_the_instance(
    shop: ProjectFactory, instance: dg.DagsterInstance, callers: set[str]
) -> None:
    """Logs, results, checks and the copy of the state included, of flows that succeed and of one that fails."""
    assert Workbench(shop, instance).materialize().success
    shop.sidecar("orders_clean", "checks:\n  - row_count: { min: 100 }\n")
    assert not Workbench(shop, instance).materialize(raise_on_error=False).success
    assert instance.fetch_observations(dg.AssetKey(["shop", "pz_state"]), limit=1).records
    assert callers == {threading.main_thread().name}


def test_the_engine_runs_in_a_thread_that_keeps_no_process(tmp_path: Any, instance: dg.DagsterInstance) -> None:
    """One daemon thread of its own, not the op's."""
    far, seen = Far(), list[tuple[str, bool]]()
    far.on_read = lambda call: [
        seen.extend((each.name, each.daemon) for each in threading.enumerate() if each.name == "pz-engine"),
        *far.read(call),
    ][1:]
    with far.installed():
        Job(two_sinks(tmp_path / "two"), instance).run()
    assert seen == [("pz-engine", True)]


def test_of_two_dagster_runs_at_once_one_is_overtaken_and_neither_loses_rows(
    tmp_path: Any, instance: dg.DagsterInstance
) -> None:
    """Without a pool both deliver; the slower one does not store its position, says so and succeeds."""
    far = Far()
    with far.installed(), dg.DagsterInstance.ephemeral() as elsewhere:
        factory = two_sinks(tmp_path / "two")
        slow, fast, write = Job(factory, instance), Job(factory, elsewhere), far.on_write

        def overtake(call: Any) -> None:
            far.on_write = write
            fast.run()
            write(call)

        far.on_write = overtake
        slow.run()
        assert (slow.succeeded, fast.succeeded) == (True, True)
        assert [text for text in slow.messages if "PZ0520" in text]
        assert not [text for text in fast.messages if "PZ0520" in text]
        assert far.counts() == (2, ["a", "a", "b", "b"])
        slow.run()
        assert {entity: [row["id"] for row in found] for entity, found in far.written.items()} == {
            "a": [1, 2, 1, 2],
            "b": [1, 2, 1, 2],
        }
