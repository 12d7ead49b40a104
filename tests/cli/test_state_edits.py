"""`pz state rollback|set|clear`: every refusal, what is asked, what is written."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest
from command_calls import Call

from pz_engine.base.file_locks import FileLock
from pz_engine.model.run import NodeKind, NodeResult, NodeStatus, RunStatus, WatermarkCandidate
from pz_engine.state.local.keyed_file import KeyedFile
from pz_engine.state.run_results import RunResultsFile
from pz_engine.state.scopes import SYNC_TOKENS, WATERMARKS
from pz_engine.state.store import SyncTokenEntry, WatermarkEntry
from pz_engine.testing.state_server import StateServer

NOW = datetime(2026, 11, 3, 6, 15, tzinfo=timezone.utc)
KEY = "shop.tickets"
RUN = "20261103T061500250Z-9e07"
OLDER = "20261102T061500250Z-9e07"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that does not compile, with one stored watermark and two runs that captured values."""
    (tmp_path / "project.yml").write_text("name: shop\nversion: 1\n", encoding="utf-8")
    (tmp_path / "connections.yml").write_text("not: [closed", encoding="utf-8")
    store(tmp_path, WatermarkEntry("id", "bigint", "100", RUN))
    add_run(tmp_path, OLDER, WatermarkCandidate("id", "bigint", "40"))
    add_run(tmp_path, RUN, WatermarkCandidate("id", "bigint", "100"))
    return tmp_path


def store(project: Path, entry: WatermarkEntry, key: str = KEY) -> None:
    KeyedFile(project / ".pz/state/watermarks.json", WATERMARKS, pytest.fail).set(key, entry)


def stored(project: Path, key: str = KEY) -> dict[str, str] | None:
    entries = json.loads((project / ".pz/state/watermarks.json").read_text())["watermarks"]
    return entries.get(key)  # type: ignore[no-any-return]


def audit(project: Path) -> list[dict[str, str]]:
    path = project / ".pz/state/audit.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def add_run(
    project: Path,
    run_id: str,
    *captured: WatermarkCandidate,
    status: RunStatus = RunStatus.SUCCESS,
    names: tuple[str, ...] = ("src_shop__tickets",),
) -> None:
    results = [
        NodeResult(name, NodeKind.SOURCE_LOAD, name, NodeStatus.SUCCESS, 1, 1, watermark=candidate)
        for name in names
        for candidate in captured
    ]
    file = RunResultsFile(project / ".pz/runs" / run_id / "run_results.json", run_id, NOW)
    file.write(status, results, NOW)
    (project / ".pz/runs" / run_id / ".lock").touch()


def test_set_writes_state_then_the_log(pz: Call, project: Path) -> None:
    """The value is stored canonically with the word manual; the log line has its fields in order."""
    called = pz("state", "set", KEY, "--value", "+020", "--reason", "replay", "--yes", "--project", project)
    assert called.code == 0
    assert called.out.splitlines() == [
        f"{KEY}: set id",
        f"  from 100 (run {RUN})",
        "  to   20",
        "the next run reads everything after the new value again; outputs that append would hold rows twice",
        "done",
    ]
    assert stored(project) == {"cursor": "id", "type": "bigint", "value": "20", "runId": "manual"}
    (line,) = audit(project)
    assert list(line) == ["ts", "action", "key", "cursor", "type", "from", "fromRunId", "to", "target", "reason"]
    assert {key: line[key] for key in line if key != "ts"} == {
        "action": "set", "key": KEY, "cursor": "id", "type": "bigint", "from": "100", "fromRunId": RUN, "to": "20",
        "target": "value", "reason": "replay",
    }  # fmt: skip


def test_rollback_goes_back_to_what_a_run_captured(pz: Call, project: Path) -> None:
    """The log names the run."""
    assert pz("state", "rollback", KEY, "--to-run", OLDER, "--yes", "--project", project).code == 0
    assert (stored(project) or {})["value"] == "40"
    assert audit(project)[0]["target"] == f"run:{OLDER}"


def test_clear_forgets_and_leaves_absent_fields_out(pz: Call, project: Path) -> None:
    """After it nothing is stored, and the log line has no new value."""
    called = pz("state", "clear", KEY, "--yes", "--project", project)
    assert called.code == 0
    assert "reads the entity in full" in called.out
    assert stored(project) is None
    assert list(audit(project)[0]) == ["ts", "action", "key", "cursor", "type", "from", "fromRunId"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("set",), "PZ0516"),
        (("set", KEY), "PZ0516"),
        (("rollback", KEY), "PZ0516"),
        (("clear",), "PZ0516"),
        (("set", KEY, "--value", "20"), "PZ0516"),
        (("set", "shop.nothing", "--value", "20", "--yes"), "PZ0513"),
        (("set", "crm.feed", "--value", "20", "--yes"), "PZ0513"),
        (("clear", "shop.nothing", "--yes"), "PZ0513"),
        (("set", KEY, "--value", "twenty", "--yes"), "PZ0515"),
        (("set", KEY, "--value", "", "--yes"), "PZ0515"),
        (("rollback", KEY, "--to-run", "20250101T000000000Z-0000", "--yes"), "PZ0514"),
        (("rollback", KEY, "--to-run", RUN, "--yes"), "PZ0515"),
    ],
)
def test_refusals_change_nothing(pz: Call, project: Path, arguments: tuple[str, ...], code: str) -> None:
    """Each has its code, a next step and exit 2."""
    KeyedFile(project / ".pz/state/sync-state.json", SYNC_TOKENS, pytest.fail).set(
        "crm.feed", SyncTokenEntry("t0k3n", RUN)
    )
    before = (project / ".pz/state/watermarks.json").read_bytes()
    called = pz("state", *arguments, "--project", project)
    assert called.code == 2
    assert code in called.err
    assert "hint:" in called.err
    assert "t0k3n" not in called.err
    assert (project / ".pz/state/watermarks.json").read_bytes() == before
    assert audit(project) == []


@pytest.mark.parametrize(
    ("kind", "value", "limits"),
    [
        ("int", "2147483648", "from -2147483648 to 2147483647"),
        ("bigint", "-9223372036854775809", "from -9223372036854775808 to 9223372036854775807"),
        ("decimal", "9" * 39, "of at most 38 digits"),
    ],
)
def test_a_number_that_no_column_of_the_type_can_hold_is_refused(
    pz: Call, project: Path, kind: str, value: str, limits: str
) -> None:
    """The next run could compare no row with it; what a run captured is refused alike."""
    store(project, WatermarkEntry("id", kind, "9" * 39, RUN))
    called = pz("state", "set", KEY, "--value", value, "--yes", "--project", project)
    assert (called.code, f"PZ0515: the value is no {kind} " in called.err, limits in called.err) == (2, True, True)
    add_run(project, "20261101T061500250Z-0004", WatermarkCandidate("id", kind, value))
    called = pz("state", "rollback", KEY, "--to-run", "20261101T061500250Z-0004", "--yes", "--project", project)
    assert (called.code, "PZ0515" in called.err) == (2, True)


@pytest.mark.parametrize("surface", ["connections.yml", "call site"])
def test_a_contract_says_how_many_digits_a_decimal_has(pz: Call, tmp_path: Path, surface: str) -> None:
    """Wherever it is declared; zeros at the end do not count."""
    (tmp_path / "project.yml").write_text("name: shop\nversion: 1\n", encoding="utf-8")
    columns, entities, options = "{ at: 'decimal(12,2)' }", "", ""
    if surface == "call site":
        options = f", format: 'csv', columns: {columns}"
    else:
        entities = f", entities: {{ t: {{ read: {{ format: csv, columns: {columns} }} }} }}"
    (tmp_path / "connections.yml").write_text(f"shop: {{ connector: localfiles{entities} }}\n", encoding="utf-8")
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines/p.sql").write_text(f"select * from {{{{ source('shop', 't'{options}) }}}}", encoding="utf-8")
    store(tmp_path, WatermarkEntry("at", "decimal", "1.00", RUN), "shop.t")
    for value, code in (("12345678901", 2), ("1.001", 2), ("1234567890.1200", 0)):
        called = pz("state", "set", "shop.t", "--value", value, "--yes", "--project", tmp_path)
        assert (called.code, "is no decimal(12,2)" in called.err) == (code, code == 2), called.err


def test_rollback_refuses_what_a_run_cannot_give(pz: Call, project: Path) -> None:
    """Another cursor column, an ambiguous key, a newer value and a value of another type, each with its code."""

    def refused(run: str, code: str) -> None:
        called = pz("state", "rollback", KEY, "--to-run", run, "--yes", "--project", project)
        assert (called.code, code in called.err) == (2, True), called.err

    add_run(project, "20261101T061500250Z-0001", WatermarkCandidate("other", "bigint", "5"))
    refused("20261101T061500250Z-0001", "PZ0514")
    add_run(project, "20261104T061500250Z-0001", WatermarkCandidate("id", "bigint", "900"))
    refused("20261104T061500250Z-0001", "PZ0515")
    add_run(project, "20261101T061500250Z-0002", WatermarkCandidate("id", "date", "2026-01-01"))
    refused("20261101T061500250Z-0002", "PZ0515")
    store(project, WatermarkEntry("id", "bigint", "100", RUN), "a.b.c")
    add_run(
        project,
        "20261105T061500250Z-0001",
        WatermarkCandidate("id", "bigint", "50"),
        names=("src_a__b_c", "src_a.b__c"),
    )
    called = pz("state", "rollback", "a.b.c", "--to-run", "20261105T061500250Z-0001", "--yes", "--project", project)
    assert "PZ0514" in called.err
    assert stored(project, "a.b.c") == {"cursor": "id", "type": "bigint", "value": "100", "runId": RUN}


def test_rollback_says_what_it_could_not_check(pz: Call, project: Path) -> None:
    """A run that failed may never have stored its value; an odd stored value has no direction."""
    add_run(project, "20261101T061500250Z-0003", WatermarkCandidate("id", "bigint", "7"), status=RunStatus.FATAL)
    store(project, WatermarkEntry("id", "bigint", "0100", RUN))
    called = pz("state", "rollback", KEY, "--to-run", "20261101T061500250Z-0003", "--yes", "--project", project)
    assert called.code == 0
    assert "note: the stored value is not in its one spelling" in called.out
    assert "note: that run ended as fatal" in called.out
    assert (stored(project) or {})["value"] == "7"


def test_unknown_type_can_only_be_cleared(pz: Call, project: Path) -> None:
    """No arithmetic is done on it."""
    store(project, WatermarkEntry("id", "hugeint", "1e5", RUN))
    for arguments in (("set", KEY, "--value", "5"), ("rollback", KEY, "--to-run", OLDER)):
        called = pz("state", *arguments, "--yes", "--project", project)
        assert (called.code, "PZ0515" in called.err) == (2, True)
        assert f"pz state clear {KEY}" in called.err
    assert pz("state", "clear", KEY, "--yes", "--project", project).code == 0


def test_dry_run_shows_and_changes_nothing(pz: Call, project: Path) -> None:
    """Exit 0, no question, no log."""
    called = pz("state", "set", KEY, "--value", "300", "--dry-run", "--project", project)
    assert called.code == 0
    assert called.out.splitlines()[-2:] == [
        "the next run skips everything between the two values",
        "nothing was changed",
    ]
    assert (stored(project) or {})["value"] == "100"
    assert audit(project) == []


def test_live_run_blocks_every_change(pz: Call, project: Path) -> None:
    """A held run lock is a run in flight."""
    with FileLock(project / ".pz/runs" / RUN / ".lock"):
        for arguments in (("clear", KEY), ("set", KEY, "--value", "1"), ("rollback", KEY, "--to-run", OLDER)):
            called = pz("state", *arguments, "--yes", "--project", project)
            assert (called.code, "PZ0517" in called.err) == (2, True)
    assert (stored(project) or {})["value"] == "100"


def test_unreadable_state_exits_1(pz: Call, project: Path) -> None:
    """Nothing is changed in a file that cannot be read."""
    (project / ".pz/state/watermarks.json").write_text("{ torn")
    called = pz("state", "set", KEY, "--value", "5", "--yes", "--project", project)
    assert called.code == 1
    assert "PZ0518" in called.err
    assert "correct .pz/state/watermarks.json, or delete it" in called.err
    assert (project / ".pz/state/watermarks.json").read_text() == "{ torn"


def test_unreadable_state_of_a_server_is_not_looked_for_in_files(
    pz: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next step names the place where the entry is, whichever command met it."""
    with StateServer() as server:
        monkeypatch.setenv("PZ_STATE_BACKEND", "http")
        monkeypatch.setenv("PZ_STATE_URL", server.url)
        server.put("watermarks", KEY, "{ torn")
        server.put("sync-state", KEY, "{ torn")
        for arguments in (("show",), ("show", KEY), ("set", KEY, "--value", "5", "--yes")):
            called = pz("state", *arguments, "--project", project)
            assert called.code == 1, called.err
            assert "correct the entry on the state server" in called.err
            assert ".pz/state" not in called.err


def test_failed_log_line_is_printed_and_exits_1(pz: Call, project: Path) -> None:
    """The change stands; the person gets the exact line."""
    (project / ".pz/state/audit.jsonl").mkdir()
    called = pz("state", "set", KEY, "--value", "5", "--yes", "--project", project)
    assert called.code == 1
    assert (stored(project) or {})["value"] == "5"
    line = called.err.split("append this line to .pz/state/audit.jsonl: ")[1]
    assert json.loads(line)["to"] == "5"


def test_log_goes_on_after_a_torn_line(pz: Call, project: Path) -> None:
    """A writer that died in the middle of a line costs that line only."""
    (project / ".pz/state/audit.jsonl").write_text('{"ts":"x","action":"se')
    pz("state", "set", KEY, "--value", "5", "--yes", "--project", project)
    pz("state", "set", KEY, "--value", "6", "--yes", "--project", project)
    lines = (project / ".pz/state/audit.jsonl").read_text().splitlines()
    assert len(lines) == 3
    assert [json.loads(line)["to"] for line in lines[1:]] == ["5", "6"]
    assert "from 5" not in pz("state", "show", KEY, "--project", project).err


class Prompt:
    """A state change on a real terminal, waiting for its answer."""

    def __init__(self, project: Path) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pz_engine", "state", "clear", KEY, "--project", str(project)],
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(slave)
        assert self.process.stdout is not None
        self.seen = ""
        deadline = time.monotonic() + 20
        while "proceed?" not in self.seen and time.monotonic() < deadline:
            self.seen += self.process.stdout.readline()

    def answer(self, text: str) -> tuple[int, str, str]:
        os.write(self.master, text.encode())
        out, err = self.process.communicate(timeout=20)
        os.close(self.master)
        return self.process.returncode, self.seen + out, err


@pytest.mark.parametrize(
    ("answer", "is_done"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("\x04", False)]
)
def test_question_takes_only_yes(project: Path, answer: str, is_done: bool) -> None:
    """Anything but yes, an end of input included, changes nothing and exits 0."""
    code, out, _ = Prompt(project).answer(answer)
    assert code == 0
    assert ("done" in out) == is_done
    assert (stored(project) is None) == is_done


def test_run_that_starts_during_the_question_is_noticed(project: Path) -> None:
    """The answer may take minutes, so live runs are looked for again."""
    prompt = Prompt(project)
    with FileLock(project / ".pz/runs" / RUN / ".lock"):
        code, _, err = prompt.answer("y\n")
    assert (code, "PZ0517" in err) == (2, True)
    assert (stored(project) or {})["value"] == "100"


def test_value_that_moves_during_the_question_is_noticed(project: Path) -> None:
    """The write is a compare-and-swap against what was shown."""
    prompt = Prompt(project)
    store(project, WatermarkEntry("id", "bigint", "200", "another"))
    code, _, err = prompt.answer("y\n")
    assert (code, "PZ0520" in err) == (2, True)
    assert (stored(project) or {})["value"] == "200"
