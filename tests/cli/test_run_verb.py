"""`pz run` and `pz test` from the outside: lines, JSON, exit codes, signals and broken terminals."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_calls import Call

GOLDEN = [
    "ok check_trips_enriched_not_null_trip_id_start_name_end_name 0 rows <ms>",
    "ok check_trips_enriched_unique_trip_id 0 rows <ms>",
    "ok district_totals 9 rows <ms>",
    "ok out.district_totals 9 rows <ms>",
    "ok out.trips 30 rows <ms>",
    "ok out.weather_daily 5 rows <ms>",
    "ok src_city__trips 40 rows <ms>",
    "ok src_city__weather 15 rows <ms>",
    "ok src_city__zones 6 rows <ms>",
    "ok trips_clean - rows <ms>",
    "ok trips_enriched 30 rows <ms>",
    "ok weather_daily 5 rows <ms>",
    "run <id>: 12 succeeded, 0 failed, 0 skipped (.pz/runs/<id>/run_results.json)",
]


def masked(text: str) -> str:
    text = re.sub(r"[0-9]{8}T[0-9]{9}Z-[0-9a-f]{4}", "<id>", text)
    return re.sub(r"\b[0-9]+ms\b", "<ms>", text)


def start(project: Path, *arguments: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pz_engine", "run", "--all", "--project", str(project), *arguments],
        text=True,
        **options,  # type: ignore[call-overload]
    )


def break_check(project: Path) -> None:
    config = project / "pipelines/configs/trips_enriched.yml"
    config.write_text(config.read_text(encoding="utf-8").replace("unique: [trip_id]", "unique: [start_district]"))


def test_sample_output_is_golden(pz: Call, sample: Path) -> None:
    """One line per node in any order of completion, the summary last, nothing on standard error."""
    called = pz("run", "--all", "--project", sample)
    assert (called.code, called.err) == (0, "")
    lines = masked(called.out).splitlines()
    assert sorted(lines[:-1]) == GOLDEN[:-1]
    assert lines[-1] == GOLDEN[-1]
    assert {path.name for path in (sample / "output").rglob("*.*")} >= {"trips.csv", "weather_daily.csv"}


def test_bare_run_of_two_flows_is_refused(pz: Call, sample: Path) -> None:
    """Several flows need a choice; the refusal names them and leaves no run behind."""
    called = pz("run", "--project", sample)
    assert called.code == 2
    assert called.err.startswith("error PZ0215: ")
    assert "out.weather_daily" in called.err
    assert not (sample / ".pz/runs").exists()


def test_two_ways_to_select_conflict(pz: Call, sample: Path) -> None:
    """Names, --select and --all exclude each other, for run and plan."""
    for verb in ("run", "plan"):
        called = pz(verb, "trips_clean", "--all", "--project", sample)
        assert called.code == 2
        assert "PZ0216" in called.err
    assert "PZ0210" in pz("run", "no_such_node", "--project", sample).err


def test_json_puts_nothing_but_events_on_standard_output(
    pz: Call, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every line of standard output parses, with failures, warnings, notes, summary and retention elsewhere."""
    monkeypatch.setenv("PZ_STATE_BACKEND", "local")
    break_check(sample)
    (sample / "pipelines/scratch.sql").write_text("SELECT 1 AS one\n", encoding="utf-8")
    project = sample / "project.yml"
    project.write_text(project.read_text(encoding="utf-8").replace("keep_last: 10", "keep_last: 1"), encoding="utf-8")
    assert pz("run", "--all", "--project", sample).code == 1
    called = pz("run", "--all", "--project", sample, "--log-format", "JSON")
    assert called.code == 1
    events = [json.loads(line) for line in called.out.splitlines()]
    assert events[0]["event"] == "run_started"
    assert events[-1]["event"] == "retention_swept"
    assert events[-2]["event"] == "run_completed"
    assert len({event["runId"] for event in events}) == 1
    shown = masked(called.err)
    assert "warning: PZ0223" in shown
    assert "note: state backend: local (from PZ_STATE_BACKEND)" in shown
    assert "run <id>: " in shown
    assert "cleaned 1 staging database, freed" in shown


def test_failing_check_is_an_alarm_and_exits_one(pz: Call, sample: Path) -> None:
    """A failed check shows its code indented, its sinks still write, and the exit code is 1."""
    break_check(sample)
    called = pz("run", "--all", "--project", sample)
    assert called.code == 1
    lines = called.out.splitlines()
    failed = next(index for index, line in enumerate(lines) if line.startswith("FAIL check_"))
    assert lines[failed + 1].startswith("  PZ0510: ")
    assert any(line.startswith("ok out.trips 30 rows") for line in lines)
    assert ": 11 succeeded, 1 failed, 0 skipped (" in lines[-1]


def test_failing_source_skips_what_needs_it(pz: Call, sample: Path) -> None:
    """A missing file fails its load, skips its descendants and leaves the other flow alone."""
    (sample / "data/trips.csv").unlink()
    called = pz("run", "--all", "--project", sample)
    assert called.code == 1
    assert re.search(r"^FAIL src_city__trips 0 rows ", called.out, re.MULTILINE)
    assert re.search(r"^skip out.trips 0 rows 0ms$", called.out, re.MULTILINE)
    assert re.search(r"^ok out.weather_daily 5 rows ", called.out, re.MULTILINE)


def test_quiet_keeps_failures_and_summary(pz: Call, sample: Path) -> None:
    """Quiet shows nothing of a good run but its summary."""
    assert len(pz("run", "--all", "--project", sample, "-q").out.splitlines()) == 1
    break_check(sample)
    lines = pz("run", "--all", "--project", sample, "-q").out.splitlines()
    assert lines[0].startswith("FAIL check_")
    assert lines[-1].startswith("run ")


def test_verbose_shows_starts(pz: Call, sample: Path) -> None:
    """-v adds a line when a node starts."""
    lines = pz("run", "weather_daily", "--project", sample, "-v").out.splitlines()
    assert "start weather_daily" in lines


def test_test_runs_checks_and_no_sink(pz: Call, sample: Path) -> None:
    """`pz test` runs checks and their ancestors, writes nothing out, and fails with them."""
    called = pz("test", "--project", sample)
    assert called.code == 0
    assert "ok check_trips_enriched_unique_trip_id 0 rows" in called.out
    assert "out." not in called.out
    assert not (sample / "output").exists()
    break_check(sample)
    assert pz("test", "--project", sample).code == 1


def test_test_without_checks_says_so(pz: Call, sample: Path) -> None:
    """Nothing to check is one line and exit code 0."""
    called = pz("test", "--project", sample, "--select", "weather_daily")
    assert (called.code, called.out) == (0, "no checks to run\n")


def test_three_mistakes_in_three_files_come_together(pz: Call, sample: Path) -> None:
    """Every verb reports all problems at once, each with file, line and step, and makes no run."""
    (sample / "project.yml").write_text("name: s\nversion: 1\nengine:\n  threads: none\n", encoding="utf-8")
    config = sample / "pipelines/configs/trips_enriched.yml"
    config.write_text("pipeline: trips_enrichd\n", encoding="utf-8")
    connections = sample / "connections.yml"
    connections.write_text(connections.read_text(encoding="utf-8") + "    colour: red\n    entities: []\n")
    for verb in ("validate", "run", "plan", "compile", "ls", "test"):
        arguments = ("--all",) if verb == "run" else ()
        called = pz(verb, "--project", sample, *arguments)
        assert called.code == 2
        files = {match[1] for match in re.finditer(r"\(([\w./]+):\d+\)", called.err)}
        assert files >= {"project.yml", "pipelines/configs/trips_enriched.yml"}, called.err
        assert called.out == ""
    assert not (sample / ".pz").exists()


def test_live_tree_on_a_terminal(sample: Path) -> None:
    """On a terminal the run is a tree that ends complete, followed by the summary; under CI it is plain lines."""
    for environment, is_live in (({}, True), ({"CI": "1"}, False)):
        master, slave = pty.openpty()
        process = start(
            sample, stdout=slave, stderr=subprocess.PIPE, env={**os.environ, "TERM": "xterm", **environment}
        )
        os.close(slave)
        shown = b""
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
        os.close(master)
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
        process.stderr.close()
        text = shown.decode()
        assert ("├── sources" in text) is is_live
        assert "out.weather_daily 5 rows" in text
        assert "12 succeeded" in text.splitlines()[-1]


def test_reader_that_goes_away_is_survived(sample: Path) -> None:
    """A closed pipe neither fails the run nor leaves a trace on standard error."""
    process = start(sample, "--log-format", "json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0
    assert len(errors.splitlines()) == 1
    assert "12 succeeded" in errors


def test_reader_that_hangs_costs_the_bound(sample: Path) -> None:
    """A full pipe nobody reads delays the end by the drain bound, with one warning; the run is complete."""
    code = (
        "import sys; import pz_engine.cli.run_view as view; view.DRAIN_SECONDS = 0.3; "
        "sys.argv = ['pz', 'run', '--all', '--project', sys.argv[1], '--log-format', 'json']; "
        "from pz_engine.cli.main import main; sys.exit(main())"
    )
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(sample)], stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert process.stderr is not None
    errors = process.stderr.read()
    assert process.wait(30) == 0
    process.stderr.close()
    os.close(reader)
    assert errors == "warning: the terminal did not take all output in time; the rest was dropped\n"
    (results,) = (sample / ".pz/runs").glob("*/run_results.json")
    assert json.loads(results.read_text(encoding="utf-8"))["status"] == "success"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_first_signal_before_any_node_cancels(sample: Path, number: signal.Signals) -> None:
    """A stop signal before dispatch ends with one line on standard error and exit code 3."""
    process = _stopped_at_staging(sample, 1500)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert err == "cancelled: the run was stopped before any node started\n"
    assert "succeeded" not in out


def test_second_signal_ends_the_process(sample: Path) -> None:
    """The second signal is not absorbed."""
    process = _stopped_at_staging(sample, 20_000)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    assert process.returncode == -signal.SIGTERM


def _stopped_at_staging(project: Path, milliseconds: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PZ_FAULT": f"after_staging_opened=sleep:{milliseconds}"}
    process = start(project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    deadline = time.monotonic() + 30
    while not list(project.glob(".pz/runs/*/staging.duckdb")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    return process
