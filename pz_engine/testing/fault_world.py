"""The outside world of the faulty connector: a folder that outlives every process that a test kills.

Everything here changes by one append or one rename, so that a kill never leaves half of anything; a fault is struck off
the list on disk before it acts.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pz_engine.base.atomic_files import write_atomically

Row = dict[str, Any]

_ANYWHERE: Final = ("fail", "fail_transient", "hang", "kill")

POINTS: Final[Mapping[str, tuple[str, ...]]] = {
    "plan": _ANYWHERE,
    "partition": _ANYWHERE,
    "page": _ANYWHERE,
    "read_end": _ANYWHERE,
    "checkpoint": ("fail", "fail_transient", "kill"),
    "token": ("fail", "fail_transient", "kill"),
    "begin": _ANYWHERE,
    "batch": (*_ANYWHERE, "half", "landed", "kill_landed", "wrong_count"),
    "commit": (*_ANYWHERE, "landed", "unknown", "kill_landed", "wrong_count"),
    "abort": ("fail", "kill"),
}
"""Places of a read and of a write, with what can go wrong there.

`half`: half of the batch is visible and confirmed, then the write fails. `landed`: everything is visible, then the call
times out, unconfirmed; `unknown`: the same, and trying again is not offered. `kill_landed`: the process dies at that
moment. `wrong_count`: the destination counts one row less in a batch, one more in a commit.
"""

_guard = threading.Lock()


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong, once."""

    point: str
    action: str
    entity: str | None = None
    """Where; None for any entity."""

    skip: int = 0
    """How many times the point is passed first."""

    def __post_init__(self) -> None:
        if self.action not in POINTS.get(self.point, ()):
            raise ValueError(f"nothing of the kind '{self.action}' happens at '{self.point}'")


class World:
    """One folder: what sources hold, what destinations show, what was asked of them, and what is still to go wrong."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def create(self) -> World:
        """Make the folder."""
        for name in ("source", "destination"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        return self

    def happen(self, entity: str, rows: Iterable[Row]) -> None:
        """Add to a source's history; every row has `id` and a `seq` that only grows."""
        self._append(self.directory / "source" / f"{entity}.jsonl", rows)

    def history(self, entity: str) -> list[Row]:
        """Return everything that ever happened at a source, oldest first."""
        return _lines(self.directory / "source" / f"{entity}.jsonl")

    def current(self, entity: str, after: int | None = None) -> list[Row]:
        """Return the newest version of each id, by `seq`; only those after a given one."""
        newest = {row["id"]: row for row in self.history(entity)}
        return sorted(
            (row for row in newest.values() if after is None or row["seq"] > after), key=lambda row: row["seq"]
        )

    def visible(self, entity: str) -> list[Row]:
        """Return what a reader of the destination sees."""
        return _lines(self.directory / "destination" / f"{entity}.jsonl")

    def append(self, entity: str, rows: Iterable[Row]) -> None:
        """Show more rows."""
        self._append(self.directory / "destination" / f"{entity}.jsonl", rows)

    def replace(self, entity: str, rows: Iterable[Row]) -> None:
        """Show these rows instead of what is there."""
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        write_atomically(self.directory / "destination" / f"{entity}.jsonl", content, durable=False)

    def merge(self, entity: str, rows: Iterable[Row], keys: Sequence[str]) -> None:
        """Put each row in place of the one with its keys."""
        with self._alone():
            kept = {tuple(row[key] for key in keys): row for row in self.visible(entity)}
            kept.update({tuple(row[key] for key in keys): row for row in rows})
            self.replace(entity, kept.values())

    def note(self, operation: str, **details: Any) -> None:
        """Remember an operation."""
        self._append(self.directory / "log.jsonl", [{"op": operation, **details}])

    def log(self) -> list[dict[str, Any]]:
        """Return every operation, oldest first."""
        return _lines(self.directory / "log.jsonl")

    def plan_faults(self, faults: Sequence[Fault] = (), *, seed: int | None = None, rate: float = 0.0) -> None:
        """Say what is to go wrong from now on, in place of what was left.

        Args:
            faults: each acts once, the first that fits first.
            seed: draws further faults, the same ones for the same operations; a hang or a kill only by script.
            rate: their share of all operations.
        """
        drawn = {"seed": seed, "rate": rate, "drawn": 0} if seed is not None else None
        self._write_plan({"script": [asdict(fault) for fault in faults], "random": drawn})

    def remaining(self) -> list[Fault]:
        """Return scripted faults that have not acted."""
        return [Fault(**fault) for fault in self._plan()["script"]]

    def next_fault(self, point: str, entity: str) -> str | None:
        """Strike off and return what goes wrong here, if anything."""
        path = self.directory / "faults.json"
        if not path.exists():
            return None
        with self._alone():
            plan = self._plan()
            action = _scripted(plan["script"], point, entity) or _drawn(plan["random"], point)
            self._write_plan(plan)
        if action is not None:
            self.note("fault", point=point, entity=entity, action=action)
        return action

    def _plan(self) -> dict[str, Any]:
        path = self.directory / "faults.json"
        plan: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {"script": [], "random": None}
        return plan

    def _write_plan(self, plan: Mapping[str, Any]) -> None:
        path = self.directory / "faults.json"
        if not plan["script"] and plan["random"] is None:
            path.unlink(missing_ok=True)
        else:
            write_atomically(path, json.dumps(plan).encode(), durable=False)

    def _append(self, path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads and other processes out."""
        with _guard, (self.directory / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_bytes().splitlines()]
    except FileNotFoundError:
        return []


def _scripted(script: list[dict[str, Any]], point: str, entity: str) -> str | None:
    for fault in script:
        if fault["point"] == point and fault["entity"] in (None, entity):
            if fault["skip"]:
                fault["skip"] -= 1
                continue
            script.remove(fault)
            return str(fault["action"])
    return None


def _drawn(drawing: dict[str, Any] | None, point: str) -> str | None:
    if drawing is None:
        return None
    drawing["drawn"] += 1
    generator = random.Random(f"{drawing['seed']}/{drawing['drawn']}")  # noqa: S311 - repeatable on purpose
    if generator.random() >= drawing["rate"]:
        return None
    harmless: Callable[[str], bool] = lambda action: action != "hang" and not action.startswith("kill")  # noqa: E731
    return generator.choice([action for action in POINTS[point] if harmless(action)])
