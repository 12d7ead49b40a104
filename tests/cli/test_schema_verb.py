"""`pz schema json`: what an editor is given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_calls import Call


@pytest.mark.parametrize("kind", ["project", "connections", "sidecar"])
def test_each_kind_is_printed_without_a_project(
    pz: Call, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schema is one JSON document on standard output, the same bytes that --path leads to."""
    monkeypatch.chdir(tmp_path)
    called = pz("schema", "json", kind)
    assert (called.code, called.err) == (0, "")
    assert json.loads(called.out)["$schema"].endswith("2020-12/schema")
    located = pz("schema", "json", kind, "--path")
    assert Path(located.out.removesuffix("\n")).read_text(encoding="utf-8") == called.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["schema", "json"], ["schema", "json", "pipeline"], ["schema", "yaml", "project"]]
)
def test_a_wrong_call_is_refused_with_the_kinds(pz: Call, arguments: list[str]) -> None:
    """A missing or unknown kind, and an unknown action, exit 2."""
    called = pz(*arguments)
    assert (called.code, called.out) == (2, "")
    assert "error:" in called.err


def test_the_verb_starts_without_heavy_libraries(pz_process: Call) -> None:
    """Printing a file imports neither a parser nor a database."""
    called = pz_process("schema", "json", "sidecar", PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rpartition("|")[2].strip() for line in called.err.splitlines()}
    assert called.code == 0
    assert not loaded & {"duckdb", "pyarrow", "yaml", "jinja2", "jsonschema", "sqlglot", "dagster"}
