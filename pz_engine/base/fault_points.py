"""Named places where a test can make a run fail or die.

A no-op unless the variable `PZ_FAULT` holds `name=action`, the action being `kill`, `raise` or `sleep:<ms>`.
"""

from __future__ import annotations

import os
import signal
import time

NAMES = frozenset(
    {
        "after_staging_opened",
        "after_batch",
        "after_checkpoint",
        "before_partition_commit",
        "after_partition_commit",
        "after_load",
        "before_sink_commit",
        "before_rename",
        "after_write_batch",
        "before_abort",
        "after_sink_commit",
        "after_node_results",
        "before_state_write",
        "before_terminal_results",
    }
)
"""Every fault point; a test fails when one is used that is not listed."""


class InjectedFault(Exception):  # noqa: N818 - raised on purpose
    """Raised by a fault point whose action is `raise`."""


def fault_point(name: str) -> None:
    """Do what `PZ_FAULT` asks at this place, normally nothing."""
    wanted = os.environ.get("PZ_FAULT")
    if not wanted or not wanted.startswith(f"{name}="):
        return
    action = wanted.partition("=")[2]
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "raise":
        raise InjectedFault(name)
    if action.startswith("sleep:"):
        time.sleep(int(action.removeprefix("sleep:")) / 1000)
