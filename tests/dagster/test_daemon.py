"""One `dagster dev` with its daemon does everything that only a daemon does, all of it at once.

`PZ_DAEMON_CASES=backfill` chooses the cases with that in their names. Most of it is waiting, so the cases run beside each other, as one test: workers of pytest would start a server each.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.dagster.daemon import backfilling, firing, overlapping, redoing, stopping
from tests.dagster.daemon.scene import Scene, scene

SWITCH = os.environ.get("PZ_DAEMON_TESTS") == "1"  # read here: tests start without such variables
ONLY = os.environ.get("PZ_DAEMON_CASES", "")

CASES: tuple[Callable[[Scene], None], ...] = (
    backfilling.a_backfill_of_many_runs,
    backfilling.a_backfill_in_one_run,
    firing.a_schedule_fires,
    firing.the_backlog_is_worked_off,
    firing.an_eager_chain_runs_once_and_its_sink_is_followed,
    stopping.a_terminated_run_is_canceled_and_lets_go,
    stopping.a_killed_worker_frees_its_pool,
    stopping.a_killed_run_of_a_job_is_repeated,
    overlapping.runs_of_one_unit_wait_for_each_other,
    redoing.what_succeeded_is_not_done_again,
)


@pytest.mark.slow
@pytest.mark.skipif(not SWITCH, reason="set PZ_DAEMON_TESTS=1 to start a server with its daemon")
def test_what_a_daemon_does(tmp_path: Path) -> None:
    """Backfills, schedules, sensors, stopped and killed runs, overlaps and re-executions, each as its own docstring says."""
    failed: dict[str, str] = {}

    def run(case: Callable[[Scene], None]) -> None:
        try:
            case(found)
        except Exception:
            failed[case.__name__] = traceback.format_exc()

    with scene(tmp_path) as found, ThreadPoolExecutor(len(CASES)) as pool:
        list(pool.map(run, [case for case in CASES if ONLY in case.__name__]))
        found.gate.set()  # whatever still waits must end, or the server could not
        assert not failed, "\n\n".join(f"{name}:\n{text}" for name, text in failed.items())
