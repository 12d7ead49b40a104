"""When a run that is repeated until everything is caught up stops."""

from __future__ import annotations

from typing import Final, Literal

from pz_engine.app.host import RunOutcome

DEFAULT_PASSES: Final = 100

StopReason = Literal["run failed", "no source with a stop", "caught up", "max runs"]


def next_step(outcome: RunOutcome, passes: int, max_runs: int) -> StopReason | None:
    """Return why the loop stops after a pass, or None to go on.

    A source is caught up in the pass that loads its final slice, so no empty pass follows.
    """
    if outcome.exit_code != 0:
        return "run failed"
    reached = [result.caught_up for result in outcome.results if result.caught_up is not None]
    if not reached:
        return "no source with a stop"
    if all(reached):
        return "caught up"
    return "max runs" if passes >= max_runs else None
