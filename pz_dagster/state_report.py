"""The state of a project beside its copy, as lines that a person reads; a token is never shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from pz_dagster.doctor import Finding
from pz_dagster.project import PzProject
from pz_dagster.reconciliation import TOKENS
from pz_dagster.state_records import CopyUnavailableError
from pz_dagster.state_restore import Comparison, Reconciliation, compare
from pz_engine import PzError

_ACTIONS = {"none": "in step", "copy": "copy it", "restore": "restore it"}


def state_lines(found: Sequence[Comparison]) -> Iterator[str]:
    """Yield a table: what is stored, what is copied, and what reconciling would do."""
    if not found:
        yield "nothing is stored or copied"
        return
    rows = [("position", "stored", "copied", "reconcile")]
    rows += [
        (each.name, _shown(each.name, each.local), _copied(each), _ACTIONS[each.decision.action]) for each in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def outcome_lines(done: Reconciliation) -> Iterator[str]:
    """Yield what reconciling did."""
    for problem in done.problems:
        yield str(problem)
    for name in done.restored:
        yield f"restored {name}"
    for record in done.to_copy:
        yield f"copied {record.name}"
    if not (done.restored or done.to_copy):
        yield "nothing to do"


def state_findings(instance: dg.DagsterInstance, project: PzProject, prefix: Sequence[str]) -> Iterator[Finding]:
    """Tell whether the copy in an instance is in step with the project's own state."""
    try:
        found = compare(instance, project, prefix=prefix)
    except CopyUnavailableError as error:
        yield Finding("problem", "state copy", str(error.diagnostic))
        return
    except PzError as error:
        yield Finding("problem", "state", str(error))
        return
    behind = [each.name for each in found if each.decision.action != "none"]
    if behind:
        yield Finding("advice", "state copy", f"differs for {', '.join(behind)}", "run: pz-dagster state")
    else:
        yield Finding("ok", "state copy", f"in step, {len(found)} position(s)")


def _copied(each: Comparison) -> str:
    if not each.records:
        return "-"
    return _shown(each.name, each.records[0].entry)


def _shown(name: str, entry: Mapping[str, Any] | None) -> str:
    if entry is None:
        return "-"
    what = "a token" if name.partition("/")[0] == TOKENS else str(entry.get("value"))
    return f"{what} of run {entry.get('runId')}"
