"""When a run that is repeated until everything is caught up stops."""

from __future__ import annotations

from typing import Final, Literal

from pz_engine.app.host import RunOutcome

DEFAULT_PASSES: Final = 100

StopReason = Literal["run failed", "no source with a stop", "caught up", "no watermark moved", "max runs"]


def next_step(outcome: RunOutcome, passes: int, max_runs: int) -> StopReason | None:
    """Return why the loop stops after a pass, or None to go on.

    A source is caught up in the pass that loads its final slice, so no empty pass follows. A pass that moved no
    watermark is the last one: the next would read and write the same slices again.
    """
    if outcome.exit_code != 0:
        return "run failed"
    windowed = [result for result in outcome.results if result.caught_up is not None]
    if not windowed:
        return "no source with a stop"
    if all(result.caught_up for result in windowed):
        return "caught up"
    if outcome.is_stalled:
        return "no watermark moved"
    return "max runs" if passes >= max_runs else None
