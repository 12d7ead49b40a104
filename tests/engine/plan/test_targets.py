"""Two outputs or connections that are one thing are refused before anything runs."""

from __future__ import annotations

import pytest

from pz_engine import PzValidationError, Selection
from pz_engine.app.plan import plan_project
from pz_engine.testing.project_factory import ProjectFactory

CONNECTIONS = """
out: { connector: localfiles, root: output }
same: { connector: localfiles, root: ./output }
wh: { connector: duckdb, path: wh.duckdb }
wh2: { connector: duckdb, path: ./wh.duckdb }
"""


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ("sink('wh', 'o', strategy: 'replace')", "sink('wh', 'O', strategy: 'replace')", "PZ0206"),
        ("sink('wh', 'o', strategy: 'replace')", "sink('wh', 'main.o')", "PZ0206"),
        (
            "sink('out', 'a/b', path: 's', strategy: 'replace')",
            "sink('out', 'a_b', path: 's', strategy: 'replace')",
            "PZ0206",
        ),
        ("sink('out', 'o', strategy: 'replace')", "sink('same', 'o', strategy: 'replace')", "PZ0206"),
        ("sink('wh', 'o', strategy: 'replace')", "sink('wh2', 'p', strategy: 'replace')", "PZ0301"),
        ("sink('out', 'o', path: 's')", "sink('same', 'o', path: 's')", None),
        ("sink('out', 'o', strategy: 'replace')", "sink('out', 'p', strategy: 'replace')", None),
    ],
    ids=["case", "default schema", "folded names", "same root", "same database", "appends", "different"],
)
def test_clashing_outputs(factory: ProjectFactory, first: str, second: str, code: str | None) -> None:
    """One error names both; appends to one folder and different names are fine."""
    factory.connections(CONNECTIONS)
    factory.pipeline("p", "INSERT INTO {{ " + first + " }} SELECT 1 AS one")
    factory.pipeline("q", "INSERT INTO {{ " + second + " }} SELECT 2 AS one")
    report = plan_project(factory.directory)
    assert [problem.code for problem in report.problems] == ([code] if code else [])


def test_a_clash_is_refused_whichever_of_the_two_runs(factory: ProjectFactory) -> None:
    """The other output may be there from an earlier run; a part of the project that has nothing to do with them runs."""
    factory.connections(CONNECTIONS)
    for name, table in (("p", "o"), ("q", "O"), ("other", "other")):
        factory.pipeline(name, f"INSERT INTO {{{{ sink('wh', '{table}', strategy: 'replace') }}}} SELECT 1 AS one")
    for name in ("p", "q"):
        with pytest.raises(PzValidationError) as caught:
            factory.run(selection=Selection(node_names=frozenset({f"wh.{'o' if name == 'p' else 'O'}"})))
        assert [problem.code for problem in caught.value.errors] == ["PZ0206"]
    assert not (factory.directory / "wh.duckdb").exists()
    assert factory.run(selection=Selection(node_names=frozenset({"wh.other"}))).exit_code == 0
