"""Connectors whose far side is a folder, and goes wrong when told to.

They work from any process: within a block of the test's own process and its forks, or as an installed package of a real
`pz`. What they do wrong is theirs alone; they never retry, sleep or hide anything.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors import registry
from pz_engine.connectors.api import (
    BatchOptions,
    CommitResult,
    ConnectionUse,
    ConnectorInfo,
    Finding,
    ProbeResult,
    ReadHints,
    ReadSpec,
    WriteSpec,
)
from pz_engine.connectors.capabilities import Capability
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Strategy
from pz_engine.testing.fault_world import Row, World

SCHEMA: Final = pa.schema([("id", pa.string()), ("seq", pa.int64()), ("v", pa.int64())])
"""What every source yields; `seq` is the cursor, and a row's `id` keeps it in one partition."""

_STATE = Capability.SYNC_STATE | Capability.PUBLIC_TOKENS
_WRITES = _STATE | Capability.MERGE | Capability.REPLACE_WRITES | Capability.CHECKPOINTABLE_WRITES
_FAR_BEYOND_ANY_TEST: Final = 600.0


@dataclass
class FaultyConnector:
    """One of `CONNECTORS`."""

    name: str
    capabilities: Capability
    info: ConnectorInfo = field(init=False)
    native_only_reads: bool = False
    native_only_writes: bool = False
    connection_schema: Mapping[str, Any] = field(
        default_factory=lambda: {
            "type": "object",
            "additionalProperties": False,
            "required": ["world"],
            "properties": {
                "world": {"type": "string"},
                "sink": {"enum": ["transactional", "confirming"]},
                "request_rows": {"type": "integer", "minimum": 1},
            },
        }
    )
    read_schema: Mapping[str, Any] = field(
        default_factory=lambda: {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "feed": {"type": "boolean"},
                "partitions": {"type": "integer", "minimum": 1},
                "checkpoints": {"type": "boolean"},
                "page_rows": {"type": "integer", "minimum": 1},
                "ignores_bounds": {"type": "boolean"},
            },
        }
    )
    write_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "additionalProperties": False})

    def __post_init__(self) -> None:
        self.info = ConnectorInfo(self.name, "1.0.0", "pz-faulty")

    def validate(self, use: ConnectionUse) -> list[Finding]:
        """Accept what the schemas accept."""
        return []

    def check_connection(self, config: Mapping[str, Any], cancel: CancelToken) -> ProbeResult:
        """Answer at once."""
        return ProbeResult(True, "a folder")

    def open_source(self, config: Mapping[str, Any]) -> _Source:
        """Open the read side."""
        return _Source(_world(config))

    def open_sink(self, config: Mapping[str, Any]) -> _Sink:
        """Open the write side."""
        return _Sink(_world(config), config)


CONNECTORS: Final = {
    "faulty": FaultyConnector("faulty", _WRITES),
    "faulty_feed": FaultyConnector(
        "faulty_feed", _WRITES | Capability.STABLE_PARTITION_IDS | Capability.CHECKPOINTABLE_READS
    ),
    "faulty_parts": FaultyConnector(
        "faulty_parts",
        _WRITES
        | Capability.PARTITIONED_READ
        | Capability.STABLE_PARTITION_IDS
        | Capability.CHECKPOINTABLE_READS
        | Capability.BOUNDED_WINDOW,
    ),
}
"""By name: one that reads in one piece, in full or as a feed; one whose one piece has an identity and checkpoints; one
that reads several such pieces and no feeds."""


def faulty() -> FaultyConnector:
    """Return what the entry point `faulty` names."""
    return CONNECTORS["faulty"]


def faulty_feed() -> FaultyConnector:
    """Return what the entry point `faulty_feed` names."""
    return CONNECTORS["faulty_feed"]


def faulty_parts() -> FaultyConnector:
    """Return what the entry point `faulty_parts` names."""
    return CONNECTORS["faulty_parts"]


@contextmanager
def installed() -> Iterator[None]:
    """Make the connectors known for the length of a block, in this process and in its forks."""
    for name, connector in CONNECTORS.items():
        registry._loaded[name] = connector
    try:
        yield
    finally:
        for name in CONNECTORS:
            del registry._loaded[name]


def announce(directory: Path) -> None:
    """Write an installed distribution that provides the connectors; put the folder on `PYTHONPATH` of a `pz`."""
    distribution = directory / "pz_faulty-1.0.0.dist-info"
    distribution.mkdir(parents=True, exist_ok=True)
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: pz-faulty\nVersion: 1.0.0\n")
    lines = [f"{name} = {__name__}:{name}\n" for name in CONNECTORS]
    (distribution / "entry_points.txt").write_text("[pz.connectors]\n" + "".join(lines))


def _world(config: Mapping[str, Any]) -> World:
    return World(Path(str(config.get("base_dir", "."))) / str(config["world"]))


def _act(world: World, point: str, entity: str, cancel: CancelToken | None) -> str | None:
    """Let go wrong what is due; returns what the caller itself has to do wrong."""
    action = world.next_fault(point, entity)
    if action == "kill":
        die()
    if action == "hang":
        (cancel or CancelToken()).wait(_FAR_BEYOND_ANY_TEST)
        if cancel is not None:
            cancel.raise_if_set()
    if action in ("fail", "fail_transient"):
        raise PzConnectorError(f"{point} went wrong", is_transient=action == "fail_transient")
    return action


def die() -> None:
    """End this process as nothing can prevent."""
    os.kill(os.getpid(), signal.SIGKILL)


class _Source:
    def __init__(self, world: World) -> None:
        self._world = world

    def get_schema(self, spec: ReadSpec, cancel: CancelToken) -> pa.Schema:
        return SCHEMA

    def native_scan(self, spec: ReadSpec) -> None:
        return None

    def natural_read_shape(self, spec: ReadSpec) -> str:
        return "feed" if spec.options.get("feed") else "full"

    def plan_read(self, spec: ReadSpec, hints: ReadHints, cancel: CancelToken) -> Sequence[_Partition]:
        _act(self._world, "plan", spec.entity, cancel)
        rows = self._world.current(spec.entity, self._floor(spec))
        if spec.upper_bound is not None:
            rows = [row for row in rows if row["seq"] <= int(spec.upper_bound)]
        history = self._world.history(spec.entity)
        token = str(history[-1]["seq"]) if history else None
        count = int(spec.options.get("partitions", 1))
        kind = _CheckpointingPartition if spec.options.get("checkpoints") else _Partition
        mine: list[list[Row]] = [[] for _ in range(count)]
        for row in rows:
            mine[sum(row["id"].encode()) % count].append(row)
        return [kind(self._world, spec, f"part-{each}", mine[each], token) for each in range(count)]

    def close(self) -> None:
        pass

    def _floor(self, spec: ReadSpec) -> int | None:
        bound = spec.prior_token if spec.options.get("feed") else spec.watermark
        if bound is None or (spec.options.get("ignores_bounds") and not spec.options.get("feed")):
            return None
        return int(bound)


class _Partition(Struct):
    world: World
    spec: ReadSpec
    partition_id: str
    rows: list[Row]
    token: str | None
    after: int | None = None

    def read(self, options: BatchOptions, cancel: CancelToken) -> Iterator[pa.RecordBatch]:
        _act(self.world, "partition", self.spec.entity, cancel)
        self.world.note("read", entity=self.spec.entity, partition=self.partition_id, after=self.after)
        size = int(self.spec.options.get("page_rows", 2))
        waiting = [row for row in self.rows if self.after is None or row["seq"] > self.after]
        for start in range(0, len(waiting), size):
            cancel.raise_if_set()
            _act(self.world, "page", self.spec.entity, cancel)
            page = waiting[start : start + size]
            self.after = page[-1]["seq"]
            yield pa.RecordBatch.from_pylist(page, schema=SCHEMA)
        _act(self.world, "read_end", self.spec.entity, cancel)

    def sync_state_candidate(self) -> str | None:
        _act(self.world, "token", self.spec.entity, None)
        return self.token if self.spec.options.get("feed") else None


class _CheckpointingPartition(_Partition):
    """A token is the `seq` of the last row yielded."""

    offered: int | None = None

    def try_resume_from(self, token: str) -> bool:
        if not token.isdigit():
            return False
        self.after = self.offered = int(token)
        return True

    def checkpoint(self) -> str | None:
        if self.after == self.offered:
            return None
        _act(self.world, "checkpoint", self.spec.entity, None)
        self.offered = self.after
        return str(self.after)


class _Sink:
    def __init__(self, world: World, config: Mapping[str, Any]) -> None:
        self._world = world
        self._is_confirming = config.get("sink") == "confirming"
        self._request_rows = int(config.get("request_rows", 2))
        self.abort_semantics = "none" if self._is_confirming else "discards_all"

    def native_copy(self, spec: WriteSpec) -> None:
        return None

    def begin_write(self, spec: WriteSpec, schema: pa.Schema, cancel: CancelToken) -> _Session:
        _act(self._world, "begin", spec.entity, cancel)
        if self._is_confirming and spec.strategy is Strategy.REPLACE:
            raise PzConnectorError("rows that are visible one by one cannot replace", is_transient=False)
        kind = _ConfirmingSession if self._is_confirming else _Session
        return kind(self._world, spec, self._request_rows)

    def close(self) -> None:
        pass


class _Session:
    """Collects rows and shows them at the commit."""

    def __init__(self, world: World, spec: WriteSpec, request_rows: int) -> None:
        self._world = world
        self._spec = spec
        self._request_rows = request_rows
        self._rows: list[Row] = []
        self._requests = 0
        self._is_open = True
        self.location = f"{spec.connection}/{spec.entity}"
        attempt = spec.attempt
        self._identity = {"run": attempt.run, "ordinal": attempt.ordinal} if attempt is not None else {}
        self._note("begin")

    def write_batch(self, batch: pa.RecordBatch, cancel: CancelToken) -> None:
        rows = batch.to_pylist()
        for start in range(0, len(rows), self._request_rows):
            self._requests += 1
            self._send(rows[start : start + self._request_rows], _act(self._world, "batch", self._spec.entity, cancel))

    def commit(self, cancel: CancelToken) -> CommitResult:
        self._is_open = False
        action = _act(self._world, "commit", self._spec.entity, cancel)
        self._show_all()
        self._note("commit", rows=self._total())
        if action == "kill_landed":
            die()
        if action in ("landed", "unknown"):
            raise PzConnectorError("no answer to the commit", is_transient=action == "landed")
        return CommitResult(self._total() + (action == "wrong_count"), self._requests)

    def abort(self) -> None:
        self._is_open = False
        _act(self._world, "abort", self._spec.entity, None)
        self._rows.clear()
        self._note("abort")

    def close(self) -> None:
        if self._is_open:
            self.abort()

    def _note(self, operation: str, **details: Any) -> None:
        self._world.note(operation, entity=self._spec.entity, **self._identity, **details)

    def _send(self, rows: list[Row], action: str | None) -> None:
        """Take one request's rows; nothing is visible before the commit, so every fault is a plain failure."""
        if action == "kill_landed":
            die()
        if action in ("half", "landed"):
            raise PzConnectorError("the request failed", is_transient=action == "landed")
        self._rows.extend(rows)

    def _show_all(self) -> None:
        self._show(self._rows)

    def _show(self, rows: list[Row]) -> None:
        entity, strategy = self._spec.entity, self._spec.strategy
        if strategy is Strategy.MERGE:
            self._world.merge(entity, rows, self._spec.keys)
        elif strategy is Strategy.REPLACE:
            self._world.replace(entity, rows)
        else:
            self._world.append(entity, rows)

    def _total(self) -> int:
        return len(self._rows)


class _ConfirmingSession(_Session):
    """Shows every request at once and confirms it; nothing is ever undone."""

    def __init__(self, world: World, spec: WriteSpec, request_rows: int) -> None:
        super().__init__(world, spec, request_rows)
        self._confirmed = 0

    def try_resume_from(self, rows: int) -> bool:
        self._confirmed = rows
        self._note("resume", rows=rows)
        return True

    def acknowledged_rows(self) -> int:
        return self._confirmed

    def _send(self, rows: list[Row], action: str | None) -> None:
        if action == "half":
            rows = rows[: (len(rows) + 1) // 2]
        self._show(rows)
        self._note("batch", rows=[list(row.values()) for row in rows])
        if action == "kill_landed":
            die()
        if action == "landed":
            raise PzConnectorError("no answer to the request", is_transient=True)
        self._confirmed += len(rows) - (action == "wrong_count")
        self._note("confirmed", rows=self._confirmed)
        if action == "half":
            raise PzConnectorError("the request broke off", is_transient=True)

    def _show_all(self) -> None:
        """Everything is visible already."""

    def _total(self) -> int:
        return self._confirmed


__all__ = [
    "CONNECTORS",
    "SCHEMA",
    "FaultyConnector",
    "announce",
    "die",
    "faulty",
    "faulty_feed",
    "faulty_parts",
    "installed",
]
