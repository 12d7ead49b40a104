"""`run_results.json`: what a run did, rewritten after every node.

The file never claims more than is true: it says `running` until state has advanced, and a snapshot with fewer nodes
never replaces one with more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from pz_engine.base.atomic_files import write_atomically
from pz_engine.base.clock import format_instant
from pz_engine.base.stable_json import compact_json, parse_json
from pz_engine.model.run import (
    ChannelTimings,
    ColumnType,
    DeliveryReport,
    NodeError,
    NodeKind,
    NodeResult,
    NodeStatus,
    ObservedSchema,
    OperationCounts,
    PartitionCounts,
    RunStatus,
    WatermarkCandidate,
)

VERSION: Final = 1
FILE_NAME: Final = "run_results.json"
_PARTITION_COUNTS: Final = ("total", "completed", "reused", "resumed")


class RunResults(Struct, frozen=True):
    """A past or present run's results."""

    run_id: str
    status: RunStatus
    started_at: datetime
    finished_at: datetime | None
    """None while running, or when the run died."""

    results: tuple[NodeResult, ...]

    continues: str | None = None
    """The run that this one went on from, whether or not there was anything to take from it."""


class RunResultsFile:
    """Writes one run's results; safe from any thread.

    Args:
        path: the file.
        run_id: the run.
        started_at: the run's start in UTC.
        continues: the run this one goes on from.
        on_warning: receives one sentence the first time a write fails.
    """

    def __init__(
        self,
        path: Path,
        run_id: str,
        started_at: datetime,
        continues: str | None = None,
        *,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self.path = path
        self._run_id = run_id
        self._started_at = started_at
        self._on_warning = on_warning
        self._continues = continues
        self._write_lock = threading.Lock()
        self._most_nodes = 0
        self._is_final = False
        self._has_warned = False
        self._encoded: list[tuple[NodeResult, str]] = []

    def write(self, status: RunStatus, results: Sequence[NodeResult], finished_at: datetime | None = None) -> None:
        """Replace the file by a snapshot.

        A `running` snapshot that comes late, after a fuller or a final one, is passed over. A failure to write warns
        once and is otherwise survived.
        """
        is_final = status is not RunStatus.RUNNING
        with self._write_lock:
            if not is_final and (self._is_final or len(results) < self._most_nodes):
                return
            self._is_final = is_final
            self._most_nodes = len(results)
            nodes = self._encode(results)
            content = _document(self._run_id, status, self._started_at, nodes, finished_at, continues=self._continues)
            try:
                write_atomically(self.path, content, durable=is_final)
            except OSError as error:
                self._warn(error)

    def _encode(self, results: Sequence[NodeResult]) -> list[str]:
        """Return each result as JSON; a run of many nodes writes its first ones as often as it has nodes."""
        for index, result in enumerate(results):
            if index == len(self._encoded):
                self._encoded.append((result, compact_json(_encode(result))))
            elif self._encoded[index][0] is not result:
                self._encoded[index] = (result, compact_json(_encode(result)))
        return [text for _, text in self._encoded[: len(results)]]

    def _warn(self, error: OSError) -> None:
        if not self._has_warned and self._on_warning is not None:
            self._on_warning(f"{FILE_NAME} of {self._run_id} cannot be written: {error.strerror or 'unknown cause'}")
        self._has_warned = True


def _document(
    run_id: str,
    status: RunStatus,
    started_at: datetime,
    nodes: Sequence[str],
    finished_at: datetime | None,
    *,
    continues: str | None,
) -> bytes:
    """Return the file's bytes: compact JSON in contract order with a final newline."""
    header: dict[str, Any] = {
        "version": VERSION,
        "runId": run_id,
        "status": status.value,
        "startedAt": format_instant(started_at),
    }
    if finished_at is not None and status is not RunStatus.RUNNING:
        header["finishedAt"] = format_instant(finished_at)
    if continues is not None:
        header["continues"] = continues
    opened = compact_json(header).removesuffix("}")
    return f'{opened},"nodes":[{",".join(nodes)}]}}\n'.encode("utf-8", "backslashreplace")


def read_results(path: Path) -> RunResults | None:
    """Read a results file; None when it is missing, does not parse or has another shape.

    Unknown fields are passed over, and of two nodes with one id the first counts.
    """
    try:
        document = parse_json(path.read_bytes())
        if document["version"] != VERSION or isinstance(document["version"], bool):
            return None
        finished = document.get("finishedAt")
        nodes: dict[str, NodeResult] = {}
        for node in document["nodes"]:
            nodes.setdefault(_required_text(node, "id"), _decode(node))
        return RunResults(
            _required_text(document, "runId"),
            RunStatus(document["status"]),
            _instant(document["startedAt"]),
            _instant(finished) if finished is not None else None,
            tuple(nodes.values()),
            _required_text(document, "continues") if "continues" in document else None,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _encode(result: NodeResult) -> dict[str, Any]:
    node: dict[str, Any] = {
        "id": result.id,
        "kind": result.kind.value,
        "name": result.name,
        "status": result.status.value,
    }
    if result.provenance is not None:
        node["provenance"] = result.provenance
    if result.rows is not None:
        node["rows"] = result.rows
    node["durationMs"] = result.duration_ms
    error = result.error
    node["error"] = {"code": error.code, "message": error.message} if error is not None else None
    if result.timings is not None:
        timings = result.timings
        node["timings"] = {"producerStallMs": timings.producer_stall_ms, "consumerStallMs": timings.consumer_stall_ms}
    if result.ops is not None:
        ops = result.ops
        node["ops"] = {"executed": ops.executed, "retried": ops.retried, "throttle_wait_ms": ops.throttle_wait_ms}
    if result.partitions is not None:
        counts = result.partitions
        node["partitions"] = {key: getattr(counts, key) for key in _PARTITION_COUNTS}
    if result.delivery is not None:
        delivery = result.delivery
        node["delivery"] = {
            "abort_semantics": delivery.abort_semantics,
            "rows_visible": delivery.rows_visible,
            "resumed_rows": delivery.resumed_rows,
        }
    if result.observed_schema is not None:
        schema = result.observed_schema
        columns = [{"name": column.name, "type": column.type} for column in schema.columns]
        node["observed_schema"] = {"columns": columns, "hintsHash": schema.hints_hash}
    if result.watermark is not None:
        watermark = result.watermark
        node["watermark"] = {"cursor": watermark.cursor, "type": watermark.type, "value": watermark.value}
    if result.caught_up is not None:
        node["caughtUp"] = result.caught_up
    if result.rejected is not None:
        node["rejected"] = result.rejected
    return node


def _decode(node: Mapping[str, Any]) -> NodeResult:
    error, timings, delivery, watermark = (node.get(key) for key in ("error", "timings", "delivery", "watermark"))
    ops, schema, partitions = node.get("ops"), node.get("observed_schema"), node.get("partitions")
    return NodeResult(
        id=_required_text(node, "id"),
        kind=NodeKind(node["kind"]),
        name=_required_text(node, "name"),
        status=NodeStatus(node["status"]),
        rows=_optional_count(node, "rows"),
        duration_ms=_count(node["durationMs"]),
        error=NodeError(_required_text(error, "code"), _required_text(error, "message")) if error else None,
        provenance=node.get("provenance"),
        timings=ChannelTimings(_count(timings["producerStallMs"]), _count(timings["consumerStallMs"]))
        if timings
        else None,
        ops=OperationCounts(*(_count(ops[key]) for key in ("executed", "retried", "throttle_wait_ms")))
        if ops
        else None,
        partitions=PartitionCounts(*(_count(partitions[key]) for key in _PARTITION_COUNTS)) if partitions else None,
        delivery=DeliveryReport(
            _required_text(delivery, "abort_semantics"),
            _count(delivery["rows_visible"]),
            _count(delivery["resumed_rows"]),
        )
        if delivery
        else None,
        observed_schema=ObservedSchema(
            tuple(
                ColumnType(_required_text(column, "name"), _required_text(column, "type"))
                for column in schema["columns"]
            ),
            _required_text(schema, "hintsHash"),
        )
        if schema
        else None,
        watermark=WatermarkCandidate(*(_required_text(watermark, key) for key in ("cursor", "type", "value")))
        if watermark
        else None,
        caught_up=node.get("caughtUp"),
        rejected=_optional_count(node, "rejected"),
    )


def _required_text(node: Mapping[str, Any], key: str) -> str:
    value = node[key]
    if not isinstance(value, str):
        raise TypeError(key)
    return value


def _optional_count(node: Mapping[str, Any], key: str) -> int | None:
    return _count(node[key]) if key in node else None


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("count")
    return value


def _instant(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
