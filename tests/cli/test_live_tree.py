"""The live view is a picture of its events, and drawing it can never hurt a run."""

from __future__ import annotations

import io
import time
from datetime import datetime, timedelta, timezone
from typing import Any

from pz_engine.cli.render.live_display import LiveDisplay
from pz_engine.cli.render.live_tree import draw
from pz_engine.events import types
from pz_engine.model.run import ChannelTimings, NodeError, NodeKind, NodeResult, NodeStatus

START = datetime(2026, 10, 30, 10, 15, tzinfo=timezone.utc)
GOLDEN = """\
pz run
├── sources
│   ├── ok src_shop__trips 48120 rows 212ms
│   │   ├ (reused)
│   │   └ warning: PZ0523
│   └── .. src_shop__zones 500 rows 2s 250 rows/s
├── pipelines
│   └── .. trips_clean 0s
├── checks
│   └── FAIL check_trips_clean_unique_id 3 rows 9ms
│       └ PZ0510: check unique found 3 violation(s)
└── sinks
    ├── skip warehouse.totals 0 rows 0ms
    └── .. warehouse.trips 2s
        └ retry 2/3 in 1000ms (connection closed)
"""


def at(seconds: float) -> dict[str, Any]:
    return {"at": START + timedelta(seconds=seconds), "run_id": "r"}


def started(node_id: str, kind: NodeKind, name: str, seconds: float = 0) -> types.NodeStarted:
    return types.NodeStarted(**at(seconds), node_id=node_id, kind=kind, node_name=name)


def done(
    node_id: str, kind: NodeKind, name: str, status: NodeStatus, rows: int, ms: int, **more: Any
) -> types.RunEvent:
    return types.NodeCompleted(**at(1), result=NodeResult(node_id, kind, name, status, rows, ms, **more))


EVENTS: list[types.RunEvent] = [
    types.RunStarted(**at(0), project_name="p", node_count=6),
    types.NodeQueued(**at(0), node_id="z"),
    started("z", NodeKind.SOURCE_LOAD, "src_shop__zones"),
    started("t", NodeKind.SOURCE_LOAD, "src_shop__trips"),
    types.NodeProgress(**at(1), node_id="z", node_name="src_shop__zones", rows=500, bytes=1, batches=10),
    types.NodeProgress(**at(1), node_id="unheard", node_name="x", rows=500, bytes=1, batches=10),
    types.LossyIntegerInferenceDetected(**at(1), node_id="t", connection="shop", entity="trips", columns=("ref",)),
    done(
        "t",
        NodeKind.SOURCE_LOAD,
        "src_shop__trips",
        NodeStatus.SUCCESS,
        48120,
        212,
        provenance="reused",
        timings=ChannelTimings(0, 0),
    ),
    started("w", NodeKind.SINK_WRITE, "warehouse.trips"),
    types.RetryScheduled(
        **at(1),
        node_id="w",
        node_name="warehouse.trips",
        attempt=2,
        max_attempts=3,
        delay_ms=1000,
        reason="connection closed",
    ),
    done("s", NodeKind.SINK_WRITE, "warehouse.totals", NodeStatus.SKIPPED, 0, 0),
    done(
        "c",
        NodeKind.CHECK,
        "check_trips_clean_unique_id",
        NodeStatus.FAILED,
        3,
        9,
        error=NodeError("PZ0510", "check unique found 3 violation(s)\nsample: {id=1}"),
    ),
    started("p", NodeKind.PIPELINE, "trips_clean", 2),
]


def picture(events: list[types.RunEvent], seconds: float) -> str:
    return "".join(f"{line}\n" for line in draw(events, START + timedelta(seconds=seconds)))


def test_tree_is_golden() -> None:
    """Groups in the order of the data's way, rows by name, children below their row."""
    drawn = picture(EVENTS, 2)
    shortened = "\n".join(line.split(" shop.trips:")[0] for line in drawn.split("\n"))
    assert shortened == GOLDEN


def test_tree_before_anything_is_its_title() -> None:
    """Empty groups are not drawn."""
    assert picture([], 0) == "pz run\n"


def test_styles_follow_the_status() -> None:
    """Green, red and yellow rows; errors red, warnings yellow, provenance dim."""
    styles = {line.text.split(" ")[0]: line.style for line in draw(EVENTS, START)}
    assert styles["ok"] == "green"
    assert styles["FAIL"] == "red"
    assert styles["skip"] == "yellow"
    assert styles["PZ0510:"] == "red"
    assert styles["(reused)"] == "dim"
    assert styles["warning:"] == "yellow"


def test_display_shows_the_last_state_and_lines_above() -> None:
    """What is on the terminal in the end is the finished tree, and notes stand above it."""
    stream = io.StringIO()
    display = LiveDisplay(stream, "pz run", has_colour=False)
    for event in EVENTS:
        display(event)
    display.say("note: something was said")
    assert display.close(10)
    shown = stream.getvalue()
    assert "note: something was said" in shown
    assert "FAIL check_trips_clean_unique_id 3 rows 9ms" in shown
    assert shown.index("note:") < shown.rindex("warehouse.trips")


def test_broken_terminal_is_survived() -> None:
    """A terminal that breaks ends the drawing; events and closing go on."""

    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    display = LiveDisplay(Broken(), "pz run", has_colour=False)
    for event in EVENTS:
        display(event)
    assert display.close(10)


def test_hanging_terminal_is_given_up() -> None:
    """A terminal that takes nothing costs the closing bound; taking events never waits."""

    class Stuck(io.StringIO):
        def write(self, text: str) -> int:
            time.sleep(1)
            return len(text)

    display = LiveDisplay(Stuck(), "pz run", has_colour=False)
    began = time.monotonic()
    for event in EVENTS * 20:
        display(event)
    assert not display.close(0.2)
    assert time.monotonic() - began < 1
