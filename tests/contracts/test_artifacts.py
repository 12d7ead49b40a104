"""Golden bytes of what a compile, a plan and a run leave on disk."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from pz_engine import RunRequest, Selection, run_project
from pz_engine.app.compile import compile_project, write_compile_artifacts, write_lineage
from pz_engine.app.plan import plan_project
from pz_engine.app.selecting import select_nodes
from pz_engine.cli.render.console import event_lines
from pz_engine.events.types import RunEvent

SMALL = Path(__file__).parents[1] / "golden" / "small"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A fresh copy of the small project."""
    target = tmp_path / "small"
    shutil.copytree(SMALL / "project", target)
    return target


def compare(name: str, text: str, *, update: bool) -> None:
    expected = SMALL / "expected" / name
    if update:
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8"), f"{name} moved; --golden-update rewrites it"


def masked(text: str) -> str:
    text = re.sub(r"\d{8}T\d{9}Z-[0-9a-f]{4}", "<run>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "<time>", text)
    text = re.sub(r"\b\d+ms\b", "<ms>ms", text)
    return re.sub(r'"durationMs":\d+', '"durationMs":0', text)


def test_compile_artifacts(project: Path, *, golden_update: bool) -> None:
    """`manifest.json` and every compiled query."""
    compiled = compile_project(project)
    assert not compiled.problems
    for _ in range(2):
        target = write_compile_artifacts(compiled, select_nodes(compiled, None))
    compare("manifest.json", (target / "manifest.json").read_text(), update=golden_update)
    for name in ("big_orders", "new_events"):
        compare(f"{name}.sql", (target / "compiled" / f"{name}.sql").read_text(), update=golden_update)
    assert not (target / "compiled" / "clean.sql").exists()


def test_lineage_artifact(project: Path, *, golden_update: bool) -> None:
    """`lineage.json`, and the same bytes again."""
    compiled = compile_project(project)
    path = project / ".pz" / "target" / "lineage.json"
    texts = []
    for _ in range(2):
        write_lineage(compiled, select_nodes(compiled, None))
        texts.append(path.read_text())
    assert texts[0] == texts[1]
    compare("lineage.json", texts[0], update=golden_update)


def test_plan_artifact(project: Path, *, golden_update: bool) -> None:
    """`plan.json`, the table's policies, and the same bytes again."""
    report = plan_project(project)
    text = (project / ".pz" / "target" / "plan.json").read_text()
    plan_project(project)
    assert (project / ".pz" / "target" / "plan.json").read_text() == text
    compare("plan.json", text, update=golden_update)
    compare("policies.txt", "\n".join((*report.budget_lines, *report.policy_lines)) + "\n", update=golden_update)


def test_run_artifacts(project: Path, *, golden_update: bool) -> None:
    """Results, state, journal and console lines of two runs, with ids and times masked."""
    project.joinpath("project.yml").write_text(
        project.joinpath("project.yml").read_text().replace("threads: 2\n  duckdb", "threads: 1\n  duckdb")
    )
    lines: list[str] = []

    def receive(event: RunEvent) -> None:
        lines.extend(event_lines(event))

    for number in (1, 2):
        outcome = run_project(RunRequest(project, selection=Selection(everything=True), event_sink=receive))
        assert outcome.exit_code == 0, [r.error for r in outcome.results]
        assert outcome.results_path is not None
        assert outcome.journal_path is not None
        text = (project / outcome.results_path).read_text()
        assert json.loads(text)["status"] == "success"
        compare(f"run_results_{number}.json", masked(text) + "\n", update=golden_update)
        journal = masked((project / outcome.journal_path).read_text())
        compare(f"journal_{number}.jsonl", journal, update=golden_update)
    compare(
        "watermarks.json", masked((project / ".pz" / "state" / "watermarks.json").read_text()), update=golden_update
    )
    compare("console.txt", masked("\n".join(lines) + "\n"), update=golden_update)
