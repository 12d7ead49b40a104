"""Every code that loading can give: one small project each that gives it, and nothing else."""

from __future__ import annotations

import pytest

from pz_engine.config.vars_option import parse_vars
from pz_engine.errors.codes import all_codes
from pz_engine.errors.exceptions import PzConfigError

P = "name: demo\nversion: '1'\n"
C = "c:\n  connector: localfiles\n"
READ = C + "  entities:\n    e:\n      read:\n        "
WRITE = C + "  entities:\n    e:\n      write:\n        "
S = "pipelines/configs/s.yml"
ONE = {"pipelines/one.sql": "select 1"}

ERRORS = {
    "PZ0101": ({"project.yml": P + "engin: {}\n"}, "project.yml:3"),
    "PZ0102": ({"project.yml": P + "vars: [a]\n"}, "project.yml:3"),
    "PZ0103": ({"connections.yml": C + "  root: ${NOWHERE}\n"}, "connections.yml:3"),
    "PZ0110": ({"pipelines/a/one.sql": "select 1", "pipelines/b/one.sql": "select 1"}, "pipelines/b/one.sql"),
    "PZ0111": ({**ONE, S: "pipeline: two\n"}, f"{S}:1"),
    "PZ0112": ({"connections.yml": WRITE + "input: one\n"}, "connections.yml:6"),
    "PZ0113": ({**ONE, S: "pipeline: one\nchecks:\n  - not_null: []\n"}, f"{S}:3"),
    "PZ0120": ({"project.yml": P + "engine:\n  threads: 0\n"}, "project.yml:4"),
    "PZ0121": ({"connections.yml": C + "  retry: {max_attempts: 101}\n"}, "connections.yml:3"),
    "PZ0122": ({"connections.yml": C + "  max_concurrency: 0\n"}, "connections.yml:3"),
    "PZ0123": ({"project.yml": P + "retention: {keep_last: 0}\n"}, "project.yml:3"),
    "PZ0124": ({"project.yml": P + "state: {backend: redis}\n"}, "project.yml:3"),
    "PZ0125": ({"project.yml": P + "state: {backend: http}\n"}, "project.yml:3"),
    "PZ0126": ({"project.yml": P + "on_source_drift: shout\n"}, "project.yml:3"),
    "PZ0134": ({**ONE, S: "pipeline: one\nmaterialization: cube\n"}, f"{S}:2"),
    "PZ0136": ({"pipelines/my-one.sql": "select 1"}, "pipelines/my-one.sql"),
    "PZ0228": ({"connections.yml": WRITE + "strategy: upsert\n"}, "connections.yml:6"),
    "PZ0318": ({"connections.yml": C + "  rate_limit: {}\n"}, "connections.yml:3"),
    "PZ0332": ({"connections.yml": READ + "incremental: {cursor: u}\n"}, "connections.yml:6"),
    "PZ0333": ({"connections.yml": WRITE + "mode: append\n"}, "connections.yml:6"),
    "PZ0334": ({"connections.yml": READ + "sync: {mode: full}\n"}, "connections.yml:6"),
    "PZ0344": ({"connections.yml": C + "  entities:\n    a..b: {read: }\n"}, "connections.yml:4"),
    "PZ0346": ({"sources/erp.yml": "x: 1\n"}, "sources/erp.yml"),
    "PZ0347": ({"connections.yml": "outputs: {}\n"}, "connections.yml:1"),
    "PZ0348": ({"connections.yml": READ + "table: orders\n"}, "connections.yml:6"),
    "PZ0352": ({"project.yml": P + "feeds: []\n"}, "project.yml:3"),
}
WARNINGS = {
    "PZ0133": ({"connections.yml": READ + "path: ${DAY}.csv\n"}, "connections.yml:6"),
    "PZ0135": ({"connections.yaml": C}, "connections.yaml"),
    "PZ0530": ({"project.yml": P + "state: {backend: http, url: 'http://h'}\n"}, "project.yml:3"),
}


def written(project, files):
    for path, text in files.items():
        project.write(path, text)
    return project


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_each_error_of_loading_is_given(project, code):
    """The project has exactly this problem, at this place, with a next step."""
    files, place = ERRORS[code]
    (problem,) = written(project, files).problems()
    assert (problem.code, problem.place) == (code, place)
    assert problem.hint


@pytest.mark.parametrize("code", sorted(WARNINGS))
def test_each_warning_of_loading_is_given(project, code):
    """The project loads with exactly this warning, at this place, with a next step."""
    files, place = WARNINGS[code]
    (warning,) = written(project, files).load({"PZ_STATE_TOKEN": "t"}).warnings
    assert (warning.code, warning.place) == (code, place)
    assert warning.hint


def test_the_option_gives_its_code_too():
    """`--vars` that is no object has the code of a malformed `vars:`."""
    with pytest.raises(PzConfigError) as caught:
        parse_vars("[1]")
    assert caught.value.diagnostic.code == "PZ0102"


def test_no_code_of_loading_is_missing_here():
    """A live code whose phase is load stands in one of the two tables."""
    live = {entry.code: entry.severity for entry in all_codes() if "load" in entry.phase and entry.life == "live"}
    assert {code for code, severity in live.items() if severity == "error"} == set(ERRORS)
    assert {code for code, severity in live.items() if severity == "warning"} == set(WARNINGS)
