"""Which relations are fused, why others are staged, and that it never shows in what lands."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pz_engine import NodeStatus
from pz_engine.app.plan import plan_project
from pz_engine.testing.project_factory import ProjectFactory

CONNECTIONS = """
files:
  connector: localfiles
  root: in
  entities:
    a: { read: { path: a.csv, columns: { id: int, amount: int } } }
    b: { read: { path: b.csv, columns: { id: int, city: varchar } } }
    free: { read: { path: a.csv } }
    ragged: { read: { path: a.csv, ragged: reject, columns: { id: int, amount: int } } }
out:
  connector: localfiles
  root: out
mart:
  connector: duckdb
  path: mart.duckdb
"""
SINK = "INSERT INTO {{ sink('out', 'result', format: 'parquet', strategy: 'replace') }}\n"


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """Two small files and three connections."""
    factory.write("in/a.csv", "id,amount\n1,10\n2,20\n3,30\n")
    factory.write("in/b.csv", "id,city\n1,Rome\n3,Oslo\n")
    factory.connections(CONNECTIONS)
    return factory


def fused(project: ProjectFactory) -> set[str]:
    report = plan_project(project.directory)
    assert not report.problems, report.problems
    assert report.plan is not None
    return {node["name"] for node in report.plan["nodes"] if node.get("fused")}


def test_a_chain_from_file_to_file_is_one_statement(project: ProjectFactory) -> None:
    """Source, pipeline and sink are marked and say what they are fused into."""
    project.pipeline("p", SINK + "SELECT * FROM {{ source('files', 'a') }}")
    report = plan_project(project.directory)
    assert {row.node: row.reason for row in report.rows} == {
        "src_files__a": "native scan: localfiles read_csv, fused into p (read=full)",
        "p": "duckdb sql: table in staging, fused into out.result",
        "out.result": "native copy: localfiles copy to parquet, replace, fused, streams p",
    }


MERGE = "INSERT INTO {{ sink('mart', 't', strategy: 'merge', keys: ['id']) }}\n"
READ_A = "SELECT * FROM {{ source('files', 'a') }}"


@pytest.mark.parametrize(
    ("pipelines", "files", "node", "why"),
    [
        ({"p": SINK + READ_A}, {"pipelines/configs/p.yml": "pipeline: p\nchecks:\n  - not_null: [id]\n"}, "p", "a check reads it"),
        ({"p": SINK + READ_A}, {"pipelines/configs/p.yml": "pipeline: p\nmaterialization: table\n"}, "p", "materialization: table"),
        ({"p": SINK + READ_A + " x JOIN {{ source('files', 'a') }} y USING (id)"}, {}, "src_files__a",
         "p names it more than once"),
        ({"p": SINK + "SELECT * FROM {{ source('files', 'free') }}"}, {}, "src_files__free", "its types are inferred"),
        ({"p": READ_A}, {}, "p", "no consumer"),
        ({"p": READ_A, "x": "SELECT * FROM {{ ref('p') }}", "y": "SELECT * FROM {{ ref('p') }}"}, {}, "p", "2 consumers"),
        ({"p": MERGE + READ_A}, {}, "p", "a merge looks at its rows first"),
        ({"p": MERGE + "SELECT * FROM {{ source('mart', 'o') }}"}, {}, "src_mart__o", "connection 'mart' is written by the same project"),
        ({"p": SINK + READ_A}, {"project.yml": 'name: demo\nversion: "1"\nengine: { fusion: off }\n'}, "p",
         "engine.fusion is off"),
        ({"p": SINK + READ_A}, {"project.yml": 'name: demo\nversion: "1"\nengine: { force_universal: true }\n'},
         "src_files__a", "read in batches"),
        ({"p": SINK + READ_A}, {"project.yml": 'name: demo\nversion: "1"\nengine: { force_universal: true }\n'},
         "p", "out.result is written in batches"),
        ({"p": SINK + READ_A}, {"project.yml": 'name: demo\nversion: "1"\non_source_drift: warn\n'}, "src_files__a",
         "drift detection"),
        ({"p": MERGE + READ_A + " WHERE amount >= {{ watermark('files', 'a') }}"}, {}, "src_files__a",
         "its watermark is taken from its rows"),
        ({"p": SINK + "SELECT * FROM {{ source('files', 'ragged') }}"}, {}, "src_files__ragged", "ragged rows are collected"),
    ],
)  # fmt: skip
def test_a_staged_relation_says_why(
    project: ProjectFactory, pipelines: dict[str, str], files: dict[str, str], node: str, why: str
) -> None:
    """Whoever wonders why a relation was staged reads it in the plan."""
    duckdb.connect(str(project.directory / "mart.duckdb")).execute("create table o (id int)").close()
    for name, sql in pipelines.items():
        project.pipeline(name, sql)
    for name, text in files.items():
        project.write(name, text)
    report = plan_project(project.directory)
    assert not report.problems, report.problems
    (reason,) = [row.reason for row in report.rows if row.node == node]
    assert f", staged: {why}" in reason


def test_views_and_fused_relations_give_no_reason(project: ProjectFactory) -> None:
    """A view has no rows to stage."""
    project.pipeline("p", SINK + READ_A)
    project.sidecar("p", "materialization: view\n")
    report = plan_project(project.directory)
    assert not [row for row in report.rows if "staged:" in row.reason and row.node == "p"]


@pytest.mark.parametrize(
    ("sql", "sidecar", "expected"),
    [
        ("SELECT * FROM {{ source('files', 'a') }}", "checks:\n  - not_null: [id]\n", {"src_files__a"}),
        ("SELECT * FROM {{ source('files', 'a') }}", "materialization: table\n", {"src_files__a"}),
        ("SELECT x.id FROM {{ source('files', 'a') }} x JOIN {{ source('files', 'a') }} y USING (id)", None, {"p", "out.result"}),
        ("SELECT * FROM {{ source('files', 'free') }}", None, {"p", "out.result"}),
        ("SELECT * FROM {{ source('files', 'a') }} JOIN {{ source('files', 'b') }} USING (id)", None,
         {"src_files__a", "src_files__b", "p", "out.result"}),
        ("SELECT * FROM {{ source('files', 'a') }}", "materialization: view\n", {"src_files__a"}),
    ],
    ids=["check", "explicit table", "named twice", "inferred types", "join", "view"],
)  # fmt: skip
def test_what_keeps_a_relation_staged(
    project: ProjectFactory, sql: str, sidecar: str | None, expected: set[str]
) -> None:
    """Checks, an explicit table, a second mention and inferred types need the rows; a view is looked through."""
    project.pipeline("p", SINK + sql)
    if sidecar is not None:
        project.sidecar("p", sidecar)
    assert fused(project) == expected
    assert project.run().exit_code == 0


def test_a_second_consumer_stages(project: ProjectFactory) -> None:
    """A relation that two nodes read is scanned once."""
    project.pipeline("p", "SELECT * FROM {{ source('files', 'a') }}")
    for name in ("x", "y"):
        project.pipeline(
            name,
            f"INSERT INTO {{{{ sink('out', '{name}', format: 'csv', strategy: 'replace') }}}}\nSELECT * FROM {{{{ ref('p') }}}}",
        )
    assert fused(project) == {"src_files__a", "x", "y", "out.x", "out.y"}
    assert project.run().exit_code == 0


def test_merges_and_written_connections_stage(project: ProjectFactory) -> None:
    """A merge needs its input staged, and a DuckDB file that the run writes is not scanned in place."""
    project.pipeline(
        "p",
        "INSERT INTO {{ sink('mart', 't', strategy: 'merge', keys: ['id']) }}\nSELECT * FROM {{ source('files', 'a') }}",
    )
    assert fused(project) == {"src_files__a"}
    assert project.run().exit_code == 0
    project.pipeline("q", SINK + "SELECT * FROM {{ source('mart', 't') }}")
    assert fused(project) == {"src_files__a", "q", "out.result"}


def test_the_switch_stages_everything(project: ProjectFactory) -> None:
    """`engine.fusion: off` fuses nothing, and neither does the universal tier."""
    project.pipeline("p", SINK + "SELECT * FROM {{ source('files', 'a') }}")
    for key in ("fusion: off", "force_universal: true"):
        project.write("project.yml", f'name: demo\nversion: "1"\nengine: {{ {key} }}\n')
        assert fused(project) == set()
        assert project.run().exit_code == 0


def test_a_middle_pipeline_has_no_count(project: ProjectFactory) -> None:
    """The middle of a statement cannot be counted, everything else is."""
    project.pipeline("middle", "SELECT id, amount FROM {{ source('files', 'a') }} WHERE amount > 10")
    project.pipeline("p", SINK + "SELECT * FROM {{ ref('middle') }} WHERE amount > 20")
    rows = {result.name: result.rows for result in project.run().results}
    assert rows == {"src_files__a": 3, "middle": None, "p": 1, "out.result": 1}


def test_a_consumer_outside_the_run_leaves_the_relation_staged(project: ProjectFactory) -> None:
    """Running a pipeline without its sink materializes it."""
    from pz_engine import Selection

    project.pipeline("p", SINK + "SELECT * FROM {{ source('files', 'a') }}")
    outcome = project.run(selection=Selection(expression="p"))
    assert {result.name: result.rows for result in outcome.results} == {"src_files__a": 3, "p": 3}
    staging = project.directory / ".pz" / "runs" / outcome.run_id / "staging.duckdb"
    with duckdb.connect(str(staging), read_only=True) as connection:
        assert connection.execute("select count(*) from staging.staging.p").fetchone() == (3,)


@pytest.mark.parametrize(
    ("fault", "culprit"),
    [("scan", "src_files__a"), ("sql", "p"), ("copy", "out.result")],
)
def test_a_fault_ends_on_the_member_it_belongs_to(project: ProjectFactory, fault: str, culprit: str) -> None:
    """The member at fault is failed, the others of the statement are skipped, nothing is half-written."""
    sql = "SELECT * FROM {{ source('files', 'a') }}"
    if fault == "scan":
        project.write("in/a.csv", "id,amount\n1,10\n2.5,20\n")
    elif fault == "sql":
        sql = "SELECT CAST(CAST(amount AS VARCHAR) || 'x' AS INTEGER) AS n FROM {{ source('files', 'a') }}"
    else:
        project.write("out", "not a folder")
    project.pipeline("p", SINK + sql)
    outcome = project.run()
    statuses = {result.name: result.status for result in outcome.results}
    assert statuses == {
        name: NodeStatus.FAILED if name == culprit else NodeStatus.SKIPPED
        for name in ("src_files__a", "p", "out.result")
    }
    assert not [path for path in project.directory.glob("out/**/*") if path.is_file()]


SHAPES = (
    "SELECT id, amount FROM {{ source('files', 'a') }} WHERE amount % 3 <> 0",
    "SELECT a.id, city, amount FROM {{ source('files', 'a') }} a LEFT JOIN {{ source('files', 'b') }} b USING (id)",
    "SELECT city, count(*) AS n, sum(amount) AS total FROM {{ source('files', 'a') }} a FULL JOIN {{ source('files', 'b') }} b USING (id) GROUP BY ALL",
    "SELECT id, row_number() OVER (ORDER BY id, amount) AS n FROM {{ source('files', 'a') }} ORDER BY n LIMIT 5",
    "SELECT id FROM {{ source('files', 'a') }} UNION ALL SELECT id FROM {{ source('files', 'b') }}",
)
CELLS = st.one_of(st.none(), st.integers(-5, 5))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    left=st.lists(st.tuples(CELLS, CELLS), max_size=8),
    right=st.lists(st.tuples(CELLS, st.sampled_from(["Rome", "Oslo", "Łódź, 'PL'"])), max_size=5),
    shape=st.sampled_from(SHAPES),
    middle=st.booleans(),
)
def test_fused_and_staged_runs_land_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory,
    left: list[tuple[int | None, int | None]],
    right: list[tuple[int | None, str]],
    shape: str,
    *,
    middle: bool,
) -> None:
    """Random data through every shape, with and without a relation in between."""
    landed = []
    for fusion in ("on", "off"):
        project = ProjectFactory(
            tmp_path_factory.mktemp("p"), f'name: demo\nversion: "1"\nengine: {{ fusion: {fusion} }}\n'
        )
        project.connections(CONNECTIONS)
        project.write("in/a.csv", "id,amount\n" + "".join(f"{_text(i)},{_text(n)}\n" for i, n in left))
        project.write("in/b.csv", "id,city\n" + "".join(f'{_text(i)},"{city}"\n' for i, city in right))
        if middle:
            project.pipeline("m", shape)
            project.pipeline("p", SINK + "SELECT * FROM {{ ref('m') }}")
        else:
            project.pipeline("p", SINK + shape)
        outcome = project.run()
        assert outcome.exit_code == 0, [r.error for r in outcome.results]
        landed.append(_rows(project.directory / "out" / "result" / "result.parquet"))
    assert landed[0] == landed[1]


def _text(value: int | None) -> str:
    return "" if value is None else str(value)


def _rows(path: Path) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(f"from '{path}' order by all").fetchall()
