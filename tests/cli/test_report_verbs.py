"""validate, compile, plan and ls: what they print, in text and as one object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_calls import Call


def test_validate_counts_what_it_checked(pz: Call, sample: Path) -> None:
    """A clean project gives one line and leaves nothing behind."""
    called = pz("validate", "--project", sample)
    assert (called.code, called.out, called.err) == (
        0,
        "validation passed (4 pipelines, 2 connections checked)\n",
        "",
    )
    assert not (sample / ".pz").exists()


def test_compile_writes_and_says_where(pz: Call, sample: Path) -> None:
    """The closing line names the number of nodes and the folder."""
    called = pz("compile", "--project", sample)
    assert called.out == f"Compiled 12 nodes -> {sample / '.pz/target'}\n"
    assert (sample / ".pz/target/manifest.json").exists()
    assert (sample / ".pz/target/compiled/trips_enriched.sql").exists()
    assert pz("compile", "--project", sample, "--select", "weather_daily").out.startswith("Compiled 1 nodes")


def test_ls_is_a_table_in_order(pz: Call, sample: Path) -> None:
    """Kind, name and tags, at least two blanks apart, sources first."""
    called = pz("ls", "--project", sample, "--select", "+trips_enriched")
    assert called.out == (
        "kind         name             tags\n"
        "source_load  src_city__trips  -\n"
        "source_load  src_city__zones  -\n"
        "pipeline     trips_clean      -\n"
        "pipeline     trips_enriched   daily\n"
    )
    assert not (sample / ".pz").exists()


def test_plan_prints_table_budget_and_policies(pz: Call, sample: Path) -> None:
    """The table has a row per planned node, then the budget; plan.json covers the whole project."""
    connections = sample / "connections.yml"
    text = connections.read_text(encoding="utf-8").replace(
        "  root: data\n", "  root: data\n  max_concurrency: 2\n  retry: { max_attempts: 5 }\n"
    )
    connections.write_text(text, encoding="utf-8")
    called = pz("plan", "weather_daily", "--project", sample)
    assert (called.code, called.err) == (0, "")
    lines = called.out.splitlines()
    table = lines.index(next(line for line in lines if line.startswith("strategy")))
    assert [line.split()[:2] for line in lines[table + 1 : table + 4]] == [
        ["native_scan", "src_city__weather"],
        ["duck_sql", "weather_daily"],
        ["native_copy", "out.weather_daily"],
    ]
    assert any(line.startswith("note: ") and "plan.json" in line for line in lines[:table])
    assert any(line.startswith("memory budget: ") for line in lines)
    assert any(line.startswith("retry: ") for line in lines)
    assert any(line.startswith("max_concurrency: ") for line in lines)
    assert len(json.loads((sample / ".pz/target/plan.json").read_text(encoding="utf-8"))["nodes"]) == 10


@pytest.mark.parametrize(
    ("verb", "key", "count"),
    [("validate", None, 0), ("compile", "nodes", 12), ("ls", "nodes", 12), ("plan", "plan", 0)],
)
def test_json_is_one_object(pz: Call, sample: Path, verb: str, key: str | None, count: int) -> None:
    """Standard output holds exactly one compact object; everything else is on standard error."""
    (sample / "pipelines/scratch.sql").write_text("SELECT 1 AS one\n", encoding="utf-8")
    called = pz(verb, "--project", sample, "--log-format", "json")
    assert called.code == 0
    assert called.out.count("\n") == 1
    document = json.loads(called.out)
    assert list(document)[:3] == ["ok", "errors", "warnings"]
    assert document["ok"] is True
    (warning,) = document["warnings"]
    assert warning["code"] == "PZ0223"
    assert warning["file"] == "pipelines/scratch.sql"
    assert list(document)[3:] == ([key] if key else [])
    if key == "nodes":
        assert len(document["nodes"]) == count + 1
    if key == "plan":
        assert document["plan"] == json.loads((sample / ".pz/target/plan.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("verb", ["validate", "compile", "ls", "plan"])
def test_json_errors_have_place_and_step(pz: Call, sample: Path, verb: str) -> None:
    """An error is code, message, file, line and next step; the exit code is the same as in text."""
    pipeline = sample / "pipelines/district_totals.sql"
    text = pipeline.read_text(encoding="utf-8").replace("ref('trips_enriched')", "ref('trips_enrichd')")
    pipeline.write_text(text, encoding="utf-8")
    called = pz(verb, "--project", sample, "--log-format", "json")
    assert called.code == 2
    document = json.loads(called.out)
    assert document["ok"] is False
    (error,) = document["errors"]
    assert list(error) == ["code", "message", "file", "line", "next_step"]
    assert (error["code"], error["file"], error["line"]) == ("PZ0201", "pipelines/district_totals.sql", 8)
    assert "trips_enriched" in error["next_step"]
    assert "nodes" not in document
    assert json.loads(pz(verb, "--project", sample, "--log-format", "json", "--vars", "{").out)["errors"][0] == {
        "code": "PZ0102",
        "message": "--vars must be a JSON object",
        "next_step": """pass --vars '{"name": "value"}' with single quotes around it""",
    }


def test_warnings_go_to_standard_error_and_change_nothing(pz: Call, sample: Path) -> None:
    """Every verb that compiles shows warnings, none changes its exit code, quiet leaves them out."""
    (sample / "pipelines/scratch.sql").write_text("SELECT 1 AS one\n", encoding="utf-8")
    for verb in ("validate", "compile", "plan", "ls", "test"):
        called = pz(verb, "--project", sample)
        assert called.code == 0
        assert called.err.startswith("warning: PZ0223 "), verb
        assert pz(verb, "--project", sample, "-q").err == ""


def test_vars_reach_the_templates(pz: Call, sample: Path) -> None:
    """--vars overrides a variable of the project for one call."""
    called = pz("run", "--project", sample, "--select", "trips_clean", "--vars", '{"shortest_trip": 10000}')
    assert "ok trips_clean 0 rows" in called.out


def test_skipping_the_lock_check_is_said(pz: Call, sample: Path) -> None:
    """--no-lock-check is never silent."""
    assert "warning: " in pz("validate", "--project", sample, "--no-lock-check").err


def test_minimal_template_validates(pz: Call, tmp_path: Path) -> None:
    """A fresh minimal project has nothing wrong with it."""
    assert pz("init", tmp_path / "fresh").code == 0
    called = pz("validate", "--project", tmp_path / "fresh")
    assert (called.code, called.err) == (0, "")
