"""`pz state show` works from project.yml alone and admits what it cannot read."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest
from command_calls import Call

from pz_engine.model.run import NodeKind, NodeResult, NodeStatus, RunStatus, WatermarkCandidate
from pz_engine.state.local.keyed_file import KeyedFile
from pz_engine.state.run_results import RunResultsFile
from pz_engine.state.scopes import SYNC_TOKENS, WATERMARKS
from pz_engine.state.store import SyncTokenEntry, WatermarkEntry

NOW = datetime(2026, 11, 3, 6, 15, tzinfo=timezone.utc)
EMPTY = "state backend: local (from default)\nwatermarks: none\nsync tokens: none\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose pipelines and connections do not load."""
    (tmp_path / "project.yml").write_text("name: shop\nversion: 1\n", encoding="utf-8")
    (tmp_path / "connections.yml").write_text("not: [closed", encoding="utf-8")
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "broken.sql").write_text("{{ nonsense", encoding="utf-8")
    return tmp_path


def store(project: Path, key: str, entry: WatermarkEntry) -> None:
    KeyedFile(project / ".pz/state/watermarks.json", WATERMARKS, pytest.fail).set(key, entry)


def add_run(project: Path, run_id: str, *captures: tuple[str, str]) -> None:
    results = [
        NodeResult(
            str(number),
            NodeKind.SOURCE_LOAD,
            name,
            NodeStatus.SUCCESS,
            1,
            1,
            watermark=WatermarkCandidate("id", "bigint", value),
        )
        for number, (name, value) in enumerate(captures)
    ]
    file = RunResultsFile(project / ".pz/runs" / run_id / "run_results.json", run_id, NOW)
    file.write(RunStatus.SUCCESS, results, NOW)


def test_nothing_stored_is_said_and_fine(pz: Call, project: Path) -> None:
    """Without state the tables are empty, the exit code is 0 and nothing is made."""
    called = pz("state", "show", "--project", project)
    assert (called.code, called.out) == (0, EMPTY)
    assert not (project / ".pz").exists()


def test_tables_show_entries_verbatim_and_flag_odd_ones(pz: Call, project: Path) -> None:
    """Every entry is shown as stored; a value or type pz cannot work with is flagged."""
    store(project, "shop.orders", WatermarkEntry("id", "bigint", "42", "run-1"))
    store(project, "shop.people", WatermarkEntry("id", "bigint", "+42", "manual"))
    store(project, "shop.things", WatermarkEntry("at", "moment", "now", "run-2"))
    KeyedFile(project / ".pz/state/sync-state.json", SYNC_TOKENS, pytest.fail).set(
        "crm.feed", SyncTokenEntry("0/1A", "run-3")
    )
    called = pz("state", "show", "--project", project)
    assert called.code == 0
    assert called.out == (
        "state backend: local (from default)\n"
        "watermarks:\n"
        "  key          cursor  type    value                run\n"
        "  shop.orders  id      bigint  42                   run-1\n"
        "  shop.people  id      bigint  +42 [non-canonical]  manual\n"
        "  shop.things  at      moment  now [unknown type]   run-2\n"
        "sync tokens:\n"
        "  key       token  run\n"
        "  crm.feed  0/1A   run-3\n"
    )


def test_unreadable_file_exits_one(pz: Call, project: Path) -> None:
    """A state file that cannot be read is an error, and the other scope is still shown."""
    directory = project / ".pz/state"
    directory.mkdir(parents=True)
    (directory / "watermarks.json").write_text("{", encoding="utf-8")
    called = pz("state", "show", "--project", project)
    assert called.code == 1
    assert called.err.startswith(
        "error PZ0518: the stored watermarks cannot be read — hint: correct .pz/state/watermarks.json"
    )
    assert "sync tokens: none" in called.out
    assert pz("state", "show", "a.b", "--project", project).code == 1


def test_key_shows_history_and_manual_changes(pz: Call, project: Path) -> None:
    """With a key: its value, what each run captured newest first, and the last five changes made by hand."""
    store(project, "shop.dbo.orders", WatermarkEntry("id", "bigint", "42", "run-1"))
    add_run(project, "20260101T000000000Z-0001", ("src_shop__dbo_orders", "41"), ("src_shop__other", "9"))
    add_run(project, "20260102T000000000Z-0001", ("src_shop__dbo_orders", "42"))
    changes = [
        {"ts": f"2026-11-0{day}T00:00:00.000Z", "action": "set", "key": "shop.dbo.orders", "from": "1", "to": str(day)}
        for day in range(1, 8)
    ]
    lines = [json.dumps(change) for change in changes] + ["torn {", '{"ts": 5}', "[]"]
    (project / ".pz/state/audit.jsonl").write_text("\n".join(lines), encoding="utf-8")
    called = pz("state", "show", "shop.dbo.orders", "--project", project)
    assert called.code == 0
    shown = called.out.splitlines()
    assert shown[1] == "shop.dbo.orders: id bigint 42 (run run-1)"
    assert shown[2:6] == [
        "history:",
        "  run                       status   cursor  captured",
        "  20260102T000000000Z-0001  success  id      42",
        "  20260101T000000000Z-0001  success  id      41",
    ]
    assert [line.split()[0] for line in shown[8:]] == [f"2026-11-0{day}T00:00:00.000Z" for day in (7, 6, 5, 4, 3)]


def test_ambiguous_key_has_no_history(pz: Call, project: Path) -> None:
    """A key that two loads of one run could have is shown without a history."""
    store(project, "a.b.c", WatermarkEntry("id", "bigint", "1", "run-1"))
    add_run(project, "20260101T000000000Z-0001", ("src_a__b_c", "1"), ("src_a.b__c", "1"))
    assert "history: none, because" in pz("state", "show", "a.b.c", "--project", project).out


def test_unknown_key_is_refused(pz: Call, project: Path) -> None:
    """A key without a watermark is PZ0513, with a word about its token when it has one."""
    called = pz("state", "show", "a.b", "--project", project)
    assert called.code == 2
    assert "PZ0513" in called.err
    KeyedFile(project / ".pz/state/sync-state.json", SYNC_TOKENS, pytest.fail).set("a.b", SyncTokenEntry("t", "r"))
    assert "sync token" in pz("state", "show", "a.b", "--project", project).err


def test_backend_that_cannot_be_opened_is_refused(pz: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend this version lacks is named with where the setting came from, and no secret."""
    monkeypatch.setenv("PZ_STATE_BACKEND", "http")
    monkeypatch.setenv("PZ_STATE_URL", "http://127.0.0.1:1/runs/r1")
    monkeypatch.setenv("PZ_STATE_TOKEN", "hunter2")
    called = pz("state", "show", "--project", project)
    assert called.code == 2
    assert "PZ0518" in called.err
    assert "127.0.0.1" in called.err
    assert "hunter2" not in called.err + called.out
