"""The backlog sensor as the daemon uses it: each key is launched once, and what fails is neither hammered nor forgotten."""

import json

import dagster as dg
import duckdb
import pytest

from pz_dagster import PzResource, PzTranslator, PzTranslatorSettings
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_automation import backlog, requests_of
from tests.dagster.test_catching_up import config, windowed  # noqa: F401 - a fixture

FLOW = dg.AssetSelection.assets(["mart", "events"]).upstream()


class Daemon:
    """Looks at the sensor and launches every key once."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.keys: set[str | None] = set()

    def tick(self) -> str:
        """Return what became of one look."""
        asked, skipped = requests_of(backlog(self.bench), self.bench)
        if not asked:
            return skipped
        if asked[0].run_key in self.keys:
            return "known"
        self.keys.add(asked[0].run_key)
        result = dg.materialize(
            self.bench.assets,
            instance=self.bench.instance,
            resources=self.bench.definitions.resources,
            selection=dg.AssetSelection.assets(*(asked[0].asset_selection or ())),
            tags=dict(asked[0].tags),
            raise_on_error=False,
        )
        return "landed" if result.success else "failed"

    def work(self) -> tuple[int, str]:
        """Tick until nothing lands any more; returns how often something did, and the last answer."""
        for number in range(20):
            answer = self.tick()
            if answer != "landed":
                return number, answer
        raise AssertionError("no end")


def rows(factory: ProjectFactory) -> int:
    with duckdb.connect(str(factory.directory / "mart.duckdb"), read_only=True) as connection:
        found = connection.execute("select count(*) from events").fetchone()
    assert found is not None
    return int(found[0])


def test_a_window_that_failed_is_not_hammered_and_the_rest_follows_it(
    windowed: ProjectFactory,  # noqa: F811
    instance: dg.DagsterInstance,
) -> None:
    """While the destination is down one run fails; once a person has landed that window, the sensor goes on to the end."""
    bench = Workbench(windowed, instance)
    bench.materialize(FLOW)
    daemon, mart = Daemon(bench), windowed.directory / "mart.duckdb"
    assert daemon.tick() == "landed"
    content = mart.read_bytes()
    mart.write_text("this is no database")
    assert [daemon.tick() for _ in range(3)] == ["failed", "known", "known"]
    mart.write_bytes(content)
    assert daemon.tick() == "known"
    bench.materialize(FLOW)
    assert daemon.work() == (2, "every window that is known of has been read")
    assert rows(windowed) == 5


def test_positions_that_come_again_are_worked_off_again(
    windowed: ProjectFactory,  # noqa: F811
    instance: dg.DagsterInstance,
) -> None:
    """After a full refresh the same watermarks are reached once more, by other runs."""
    bench = Workbench(windowed, instance)
    bench.materialize(FLOW)
    daemon = Daemon(bench)
    assert daemon.work()[0] == 4
    (windowed.directory / "mart.duckdb").unlink()
    bench.materialize(FLOW, run_config=config("shop__mart_events", full_refresh=True))
    assert daemon.work()[0] == 4
    assert rows(windowed) == 5


@pytest.mark.parametrize("data_versions", [True, False])
def test_positions_need_not_be_in_the_instance(
    windowed: ProjectFactory,  # noqa: F811
    instance: dg.DagsterInstance,
    data_versions: bool,
) -> None:
    """With `state_copy="off"` the keys hold none, and the backlog is worked off all the same."""
    translator = PzTranslator(settings=PzTranslatorSettings(data_versions=data_versions))
    bench = Workbench(windowed, instance, resource=PzResource(state_copy="off"), translator=translator)
    bench.materialize(FLOW)
    daemon = Daemon(bench)
    assert daemon.work() == (4, "every window that is known of has been read")
    assert rows(windowed) == 5
    assert "2026-01" not in "".join(str(key).partition("@")[0] for key in daemon.keys)


def test_a_watermark_that_does_not_move_ends_it(
    windowed: ProjectFactory,  # noqa: F811
    instance: dg.DagsterInstance,
) -> None:
    """The state goes back each time, as if it could not be written: one run reads the window again, and no more follow."""
    bench = Workbench(windowed, instance, resource=PzResource(state_copy="off"))
    bench.materialize(FLOW)
    state = windowed.directory / ".pz" / "state" / "watermarks.json"
    before = json.loads(state.read_text())
    daemon, answers = Daemon(bench), []
    for _ in range(4):
        answers.append(daemon.tick())
        state.write_text(json.dumps(before))
    assert answers[:2] == ["landed", "landed"]
    assert set(answers[2:]) == {
        "the run that was asked for last read the same window again: its watermark does not move"
    }
