"""The run journal: one summarised event per line, flushed as it happens.

A journal is evidence and never state. It holds error summaries only, and a failure to write it warns once while the
run goes on.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pz_engine.base.redact import ErrorSummary
from pz_engine.base.stable_json import compact_json
from pz_engine.events.types import ConnectorLog, NodeCompleted, RetryScheduled, RunEvent, RunStarted
from pz_engine.model.run import NodeKind, NodeStatus

SCHEMA_VERSION: Final = "1.0"
"""Version of a journal line; readers refuse another major version."""

RESULTS_FILE: Final = "run_results.json"
JOURNALS_KEPT: Final = 50
SUFFIX: Final = ".jsonl"

_LEGAL_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_CHECK_FAILED = "PZ0510"
_SAMPLES = re.compile(r"[{\n]|\bsamples?\b", re.IGNORECASE)


def is_legal_run_id(run_id: str) -> bool:
    """Tell whether a run id may name a journal: 1 to 128 plain ASCII characters, no leading dot."""
    return _LEGAL_NAME.fullmatch(run_id) is not None


def journal_record(event: RunEvent) -> dict[str, Any]:
    """Return the journal form of an event: summaries in place of messages, and what only the journal knows."""
    wire = event.to_json()
    record = {key: wire.pop(key) for key in ("event", "at", "runId")}
    record["schemaVersion"] = SCHEMA_VERSION
    if isinstance(event, NodeCompleted):
        record.update(_completed(event, wire))
    elif isinstance(event, RetryScheduled):
        summary = ErrorSummary.from_message(event.reason)
        wire["reason"] = summary.message
        record.update(wire, **_kinds(summary))
    elif isinstance(event, ConnectorLog):
        record.update(wire, message=ErrorSummary.from_message(event.message).message)
    elif isinstance(event, RunStarted):
        nodes = [{"nodeId": node.node_id, "kind": node.kind.value, "name": node.name} for node in event.nodes]
        record.update(wire, mode=event.mode, live=True, nodes=nodes)
    else:
        record.update(wire)
    return record


class RunJournal:
    """Appends a run's events to its journal; a consumer of the event bus.

    Args:
        directory: the project's journal directory.
        run_id: names the file; an existing file is never overwritten.
        on_warning: receives one sentence when the journal cannot be written.
    """

    def __init__(self, directory: Path, run_id: str, *, on_warning: Callable[[str], None]) -> None:
        self.path = directory / f"{run_id}{SUFFIX}"
        self._run_id = run_id
        self._on_warning = on_warning
        self._descriptor: int | None = None
        self._has_failed = False

    def __call__(self, event: RunEvent) -> None:
        """Append one event; when the run starts, the file is made and old journals are swept."""
        if self._has_failed:
            return
        try:
            if self._descriptor is None:
                if not isinstance(event, RunStarted):
                    return
                self._descriptor = self._create()
            line = (compact_json(journal_record(event)) + "\n").encode("utf-8", "backslashreplace")
            _write_all(self._descriptor, line)
        except (OSError, ValueError) as error:
            self._fail(error)

    def close(self) -> None:
        """Close the file; later events are dropped."""
        self._has_failed = True
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _create(self) -> int:
        if not is_legal_run_id(self._run_id):
            raise ValueError("the run id cannot name a file")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        sweep_journals(self.path.parent, current=self._run_id)
        return descriptor

    def _fail(self, error: OSError | ValueError) -> None:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        self.close()
        self._on_warning(f"the run journal of {self._run_id} is not written: {reason}")


def sweep_journals(directory: Path, keep: int = JOURNALS_KEPT, current: str | None = None) -> int:
    """Delete all but the newest journals, by modification time.

    Args:
        directory: the project's journal directory; may be missing.
        keep: how many stay, the starting run's included whether its file exists yet or not.
        current: id of the starting run, which is never deleted.

    Returns:
        The number of files deleted; a file that cannot be deleted stays without a word.
    """
    found: list[tuple[float, str, Path]] = []
    with contextlib.suppress(OSError):
        for path in directory.iterdir():
            if path.suffix == SUFFIX and path.stem != current and not path.is_symlink() and path.is_file():
                with contextlib.suppress(OSError):
                    found.append((path.stat().st_mtime, path.name, path))
    found.sort(reverse=True)
    deleted = 0
    for _, _, path in found[max(keep - (current is not None), 0) :]:
        with contextlib.suppress(OSError):
            path.unlink()
            deleted += 1
    return deleted


def _completed(event: NodeCompleted, wire: dict[str, Any]) -> dict[str, Any]:
    result = event.result
    if event.blocked_by:
        wire["blockedBy"] = list(event.blocked_by)
    if result.status is not NodeStatus.FAILED or result.error is None:
        return wire
    message = result.error.message
    if result.error.code == _CHECK_FAILED:
        message = _SAMPLES.split(message, maxsplit=1)[0]
    summary = ErrorSummary.from_message(message, RESULTS_FILE)
    record: dict[str, Any] = {}
    for key, value in wire.items():
        record[key] = value
        if key == "errorMessage":
            record[key] = summary.message
            record.update(_kinds(summary), detailsAt=summary.details_at)
    if result.kind is NodeKind.CHECK and result.rows:
        record["failures"] = result.rows
    return record


def _kinds(summary: ErrorSummary) -> dict[str, str]:
    kinds = {"errorKind": summary.kind, "errorOuterKind": summary.outer_kind}
    return {key: kind for key, kind in kinds.items() if kind is not None}


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
