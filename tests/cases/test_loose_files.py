"""Files that do not keep to their first rows: values, keys and line ends arrive unchanged at the destination, or the load fails."""

from __future__ import annotations

import json

import duckdb
import pytest

from pz_engine import NodeStatus, RunOutcome
from pz_engine.testing.project_factory import ProjectFactory

ROWS, BAD_ROW = 20_600, 20_550
PROJECT = 'name: demo\nversion: "1"\nengine: {{ fusion: {fusion}, force_universal: {universal} }}\n'


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """One entity replaced into a parquet file."""
    factory.pipeline(
        "p",
        "INSERT INTO {{ sink('out', 'p', format: 'parquet', strategy: 'replace') }}\nSELECT * FROM {{ source('files', 'e') }}",
    )
    return factory


def declare(project: ProjectFactory, read: str) -> None:
    project.connections(
        f"files: {{ connector: localfiles, root: in, entities: {{ e: {{ read: {{ {read} }} }} }} }}\n"
        "out: { connector: localfiles, root: out }\n"
    )


def landed(project: ProjectFactory, query: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.execute(f"create view p as from '{project.directory}/out/p/p.parquet'")
        return connection.execute(query).fetchall()


def orders(loose: str) -> str:
    """One row far behind any sample holds another spelling of its column."""
    lines = [f"{n},{loose if n == BAD_ROW else n % 9 + 1}" for n in range(1, ROWS + 1)]
    return "order_id,qty\n" + "\n".join(lines) + "\n"


def failure(outcome: RunOutcome) -> str:
    (failed,) = [result for result in outcome.results if result.status is NodeStatus.FAILED]
    assert failed.name == "src_files__e"
    assert failed.error is not None
    return failed.error.message


@pytest.mark.parametrize(("fusion", "universal"), [("on", "false"), ("off", "false"), ("off", "true")])
@pytest.mark.parametrize("loose", ["2.5", "007"])
def test_declared_value_that_only_loosely_fits_fails_the_load(
    project: ProjectFactory, loose: str, fusion: str, universal: str
) -> None:
    """File, line, column and type are named, never the value; nothing is written, fused or not (C01)."""
    project.write("project.yml", PROJECT.format(fusion=fusion, universal=universal))
    project.write("in/orders.csv", orders(loose))
    declare(project, "path: orders.csv, columns: { order_id: int, qty: int }")
    outcome = project.run()
    assert outcome.exit_code == 1
    message = failure(outcome)
    for part in ("orders.csv", f"line {BAD_ROW + 1}", "'qty'", "INTEGER"):
        assert part in message
    assert loose not in message
    assert not list(project.directory.glob("out/**/*.parquet"))


@pytest.mark.parametrize("universal", ["false", "true"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("date", "2026-03-04 10:30:00"),
        ("decimal(5,2)", "1.005"),
        ("time", "2026-03-04 10:30:00"),
    ],
)
def test_no_other_type_changes_a_declared_value_either(
    project: ProjectFactory, kind: str, text: str, universal: str
) -> None:
    """A time of day, a third digit and a day each fail the load with file, line and column, on both tiers (C01)."""
    project.write("project.yml", PROJECT.format(fusion="on", universal=universal))
    project.write("in/t.csv", f"id,v\n1,\n2,{text}\n")
    declare(project, f"path: t.csv, columns: {{ id: int, v: '{kind}' }}")
    message = failure(project.run())
    for part in ("t.csv", "line 3", "'v'", kind.upper().partition("(")[0]):
        assert part in message
    assert text not in message


@pytest.mark.parametrize(("loose", "expected"), [("2.5", 2.5), ("007", "007")])
def test_undeclared_value_arrives_as_it_is_and_the_run_says_why(
    project: ProjectFactory, loose: str, expected: object
) -> None:
    """The load is repeated with types of the whole file; every row arrives once; a note names the column (C01)."""
    project.write("in/orders.csv", orders(loose))
    declare(project, "path: orders.csv")
    outcome = project.run()
    assert outcome.exit_code == 0
    assert landed(project, f"select qty from p where order_id = {BAD_ROW}") == [(expected,)]
    assert landed(project, "select count(*), count(distinct order_id) from p") == [(ROWS, ROWS)]
    assert [note for note in outcome.notes if "'qty'" in note]
    assert len([result for result in outcome.results if result.rows == ROWS]) == 3


@pytest.mark.parametrize("shape", ["lines", "array", "files"])
def test_key_that_first_appears_late_is_a_column(project: ProjectFactory, shape: str) -> None:
    """Its values are all there, in one file of lines, in one array, and where the last of many files has it (C05)."""
    records = [
        {"event_id": number, **({"refund_id": f"R{number}"} if number > 20_599 else {})} for number in range(1, 20_701)
    ]
    lines = [json.dumps(record) + "\n" for record in records]
    if shape == "array":
        project.write("in/events.json", f"[{','.join(lines)}]")
    elif shape == "lines":
        project.write("in/events.json", "".join(lines))
    else:
        for start in range(0, len(lines), 600):
            project.write(f"in/events{start:05}.json", "".join(lines[start : start + 600]))
    declare(project, f'path: "events*.json", format: json{", layout: array" if shape == "array" else ""}')
    assert project.run().exit_code == 0
    assert landed(project, "select count(*), count(refund_id), max(refund_id) from p") == [(20_700, 101, "R20700")]


@pytest.mark.parametrize("columns", ["", ", columns: { customer_id: int, name: varchar }"])
@pytest.mark.parametrize("universal", ["false", "true"])
def test_marks_and_mixed_line_ends_reach_no_name_and_no_value(
    project: ProjectFactory, columns: str, universal: str
) -> None:
    """Two exports in one pattern give four rows; a file that cannot be read is named, the good one is not (C06)."""
    if universal == "true" and not columns:
        pytest.skip("batches need a contract")
    project.write("project.yml", PROJECT.format(fusion="on", universal=universal))
    declare(project, f'path: "*.csv"{columns}')
    (project.directory / "in").mkdir()
    (project.directory / "in/a.csv").write_bytes(b"\xef\xbb\xbfcustomer_id,name\r\n1,Ann\r\n2,Bo\r\n")
    (project.directory / "in/b.csv").write_bytes(b"customer_id,name\n3,Cy\r\n4,Di\n")
    assert project.run().exit_code == 0
    assert landed(project, "select customer_id, name from p order by 1") == [
        (1, "Ann"),
        (2, "Bo"),
        (3, "Cy"),
        (4, "Di"),
    ]
    (project.directory / "in/b.csv").write_bytes(b"customer_id,name\n3,\xff\xfe\n")
    message = failure(project.run())
    assert "b.csv" in message
    assert "a.csv" not in message
