"""Text that nothing can carry, and failures that nobody anticipated, are problems with a code in either format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_calls import Call

FILES = {
    "project.yml": "name: odd\nversion: 1\nvars: {good: é}\n",
    "connections.yml": "f: {connector: localfiles, root: data}\n",
}
BYTES = "\udcff\udcfe"  # what Python makes of bytes that are no UTF-8


def project(directory: Path, sql: str) -> Path:
    """Write a project of one pipeline."""
    (directory / "pipelines").mkdir(parents=True)
    (directory / "data").mkdir()
    for name, text in FILES.items():
        (directory / name).write_text(text)
    (directory / "pipelines" / "p.sql").write_text(f"-- first\n{sql}\n")
    return directory


@pytest.mark.parametrize("verb", ["validate", "compile", "plan", "ls"])
@pytest.mark.parametrize(
    "sql",
    [
        r"SELECT '{{ '\ud800' }}' AS x",
        r"SELECT '{{ 'a\0b' }}' AS x",
        r"SELECT '{{ '\ud83d' ~ '\ude00' }}' AS x",
        r"SELECT {{ if var('good') == '\ud800' }}1{{ else }}2{{ end }} AS x",
        r"SELECT * FROM {{ source('f', '\ud800') }}",
        r"SELECT * FROM {{ source('f', 'e', path: '\ud800.csv') }}",
        r"SELECT * FROM {{ source('f', 'e', columns: {'\ud800': 'int'}) }}",
        r"SELECT * FROM {{ ref('\udfff') }}",
        r"SELECT '{{ env('\udfff') }}' AS x",
        r"SELECT '{{ env('BADENV') }}' AS x",
        r"SELECT '{{ env('BADENV') | upper }}' AS x",
        r"SELECT * FROM {{ source('f', 'e', path: env('BADENV')) }}",
    ],
)
def test_text_that_is_none_is_a_problem_of_the_template(
    pz: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, sql: str
) -> None:
    """NUL and halves of surrogate pairs never reach SQL, an id or an option; JSON is one object."""
    monkeypatch.setenv("BADENV", BYTES)
    directory = project(tmp_path / "p", sql)
    called = pz(verb, "--project", directory, "--log-format", "json")
    assert (called.code, called.out.count("\n")) == (2, 1)
    (error,) = json.loads(called.out)["errors"]
    assert (error["code"], error["file"], error["line"]) == ("PZ0104", "pipelines/p.sql", 2)
    assert pz(verb, "--project", directory).code == 2


@pytest.mark.parametrize("options", ["path: '\\ud800'", "'path': '\\0'", "keys: ['\\ud800']"])
def test_sinks_take_no_such_text(pz: Call, tmp_path: Path, options: str) -> None:
    """Names and options of a sink are refused alike."""
    sql = f"INSERT INTO {{{{ sink('f', 'x', {options}) }}}} SELECT 1 AS a"
    called = pz("validate", "--project", project(tmp_path / "p", sql))
    assert called.code == 2
    assert "error PZ0104" in called.err
    assert "(pipelines/p.sql:2)" in called.err


def test_configuration_takes_no_such_text(pz: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of other bytes is named with the line that uses it."""
    monkeypatch.setenv("BADENV", BYTES)
    directory = project(tmp_path / "p", "SELECT 1 AS a")
    (directory / "connections.yml").write_text("f:\n  connector: localfiles\n  root: ${BADENV}\n")
    called = pz("validate", "--project", directory)
    assert (called.code, called.err.count("\n")) == (2, 1)
    assert called.err.startswith("error PZ0101: environment variable BADENV is not UTF-8 text (connections.yml:3)")


@pytest.mark.parametrize(
    ("verb", "target"),
    [
        ("validate", "pz_engine.app.validate.validate_project"),
        ("compile", "pz_engine.app.compile.compile_project"),
        ("plan", "pz_engine.app.plan.plan_project"),
        ("ls", "pz_engine.app.listing.list_nodes"),
    ],
)
def test_an_unanticipated_failure_is_one_object(
    pz: Call, monkeypatch: pytest.MonkeyPatch, verb: str, target: str
) -> None:
    """Who reads JSON reads JSON whatever happens; the exit code stays 3 and the trace stays out."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("half \ud800 of a pair")

    monkeypatch.setattr(target, fail)
    called = pz(verb, "--log-format", "json")
    found = json.loads(called.out)
    assert (called.code, called.out.count("\n"), found["ok"]) == (3, 1, False)
    assert [error["code"] for error in found["errors"]] == ["PZ0500"]
    assert "Traceback" not in called.err
    monkeypatch.setenv("PZ_DEBUG", "1")
    assert "Traceback" in pz(verb, "--log-format", "json").err
