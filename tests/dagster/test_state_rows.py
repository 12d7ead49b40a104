"""Every row of the rules for a position and its copies, on every kind of storage, without any run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject
from pz_dagster.state_records import state_key, write_records
from pz_dagster.state_restore import read_copy, reconcile
from pz_engine.state.audit_log import AuditRecord, append_audit
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.storages import KINDS, storage
from tests.dagster.test_reconciliation import CLEARED, MANUAL, R1, R2, R3, SET, WATERMARK, Entry, mark, record, run_id


@pytest.fixture(scope="module", params=KINDS)
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    with storage(request.param, tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> ProjectFactory:
    """A project that is only ever looked at."""
    found = ProjectFactory(tmp_path_factory.mktemp("rows") / "shop", 'name: rows\nversion: "1"\n')
    found.connections("erp: { connector: localfiles, root: in }\n")
    found.pipeline("orders", "SELECT id FROM {{ source('erp', 'orders', path: 'orders.csv', columns: { id: 'int' }) }}")
    return found


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    before: Entry
    history: tuple[Entry, ...]
    """Copies, oldest first."""

    after: Entry
    copied: Entry
    code: str | None = None
    audit: tuple[Any, ...] = ()


FOREIGN_LOW, FOREIGN_HIGH = mark(15, run_id(1)), mark(99, run_id(1))
ROWS = {
    "equal": Row(R2, (R1, R2), R2, R2),
    "never copied": Row(R2, (), R2, R2),
    "nothing anywhere": Row(None, (), None, None),
    "new disk": Row(None, (R1, R2), R2, R2, "PZ0705"),
    "cleared by hand": Row(None, (R2,), None, None, audit=(CLEARED,)),
    "removed and copied": Row(None, (R2, None), None, None),
    "set by hand": Row(MANUAL, (R2,), MANUAL, MANUAL, audit=(SET,)),
    "old disk": Row(R1, (R1, R2, R3), R3, R3, "PZ0705"),
    "lost copy": Row(R3, (R1, R2), R3, R3),
    "two histories, stored is lower": Row(FOREIGN_LOW, (R2,), FOREIGN_LOW, FOREIGN_LOW, "PZ0706"),
    "two histories, copy is lower": Row(FOREIGN_HIGH, (R2,), R2, R2, "PZ0706"),
}


@pytest.mark.parametrize("name", ROWS)
def test_each_row(name: str, factory: ProjectFactory, stored: dg.DagsterInstance) -> None:
    """What is stored and what is copied afterwards, and which warning says so; a second look changes nothing."""
    row, key = ROWS[name], state_key("rows")
    shutil.rmtree(factory.directory / ".pz" / "state", ignore_errors=True)
    stored.wipe_assets([key])
    if row.before is not None:
        factory.write(
            ".pz/state/watermarks.json", json.dumps({"version": 1, "watermarks": {"erp.orders": dict(row.before)}})
        )
    for minute, entry in enumerate(row.history, start=1):
        write_records(stored, key, [record(entry, minute)])
    for change in row.audit:
        (factory.directory / ".pz" / "state").mkdir(parents=True, exist_ok=True)
        action = "clear" if change.is_clear else "set"
        append_audit(factory.directory / ".pz", AuditRecord(change.at, action, "erp.orders", after=change.after))
    project = PzProject(factory.directory)
    done = reconcile(stored, project)
    assert watermark(factory) == row.after
    newest = next(iter(read_copy(stored, project).get(WATERMARK, ())), None)
    assert (newest.entry if newest is not None else None) == row.copied
    assert [problem.code for problem in done.problems] == ([row.code] if row.code else [])
    again = reconcile(stored, project)
    assert (again.restored, again.to_copy, again.problems) == ((), (), ())


def watermark(factory: ProjectFactory) -> Entry:
    path: Path = factory.directory / ".pz" / "state" / "watermarks.json"
    found: Entry = json.loads(path.read_text())["watermarks"].get("erp.orders") if path.exists() else None
    return found
