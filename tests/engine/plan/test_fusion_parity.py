"""With and without fusion a run tells the same: rows, counts, order per node, exit code; and what still has to be staged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from pz_engine import NodeCompleted, NodeStarted
from pz_engine.app.plan import plan_project
from pz_engine.connectors import Capability
from pz_engine.connectors.registry import find_connector
from pz_engine.events.types import RunEvent
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ScriptedConnector

CONNECTIONS = """
files:
  connector: localfiles
  root: in
  entities:
    a: {{ read: {{ path: a.csv, columns: {{ id: int, amount: int }}{extra} }} }}
    p: {{ read: {{ path: p.parquet, format: parquet, columns: {{ id: int, amount: int }} }} }}
db: {{ connector: duckdb, path: in.duckdb, entities: {{ t: {{ read: {{ columns: {{ id: int, amount: int }} }} }} }} }}
out: {{ connector: localfiles, root: out }}
api: {{ connector: scripted, entities: {{ things: {{ read: {{ columns: {{ id: bigint, name: varchar }} }} }} }} }}
"""
SINK = "INSERT INTO {{ sink('out', 'result', format: 'parquet', strategy: 'replace') }}\n"
PROJECT = 'name: demo\nversion: "1"\nengine: {{ fusion: {fusion} }}\n{rest}'
SOURCES = {"csv": ("files", "a"), "parquet": ("files", "p"), "duckdb": ("db", "t")}


@pytest.fixture(autouse=True)
def scripted() -> Iterator[ScriptedConnector]:
    """An installed connector of the universal tier."""
    with ScriptedConnector().installed() as connector:
        yield connector


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """The same three rows as a csv, a parquet file and a DuckDB table."""
    factory.write("in/a.csv", "id,amount\n1,10\n2,20\n3,30\n")
    query = "select id::int as id, amount::int as amount from (values (1, 10), (2, 20), (3, 30)) t(id, amount)"
    with duckdb.connect(str(factory.directory / "in.duckdb")) as connection:
        connection.execute(f"create table t as {query}")
        connection.execute(f"copy ({query}) to '{factory.directory}/in/p.parquet'")
    factory.connections(CONNECTIONS.format(extra=""))
    return factory


def set_fusion(project: ProjectFactory, fusion: str, rest: str = "") -> None:
    project.write("project.yml", PROJECT.format(fusion=fusion, rest=rest))


def fused(project: ProjectFactory) -> set[str]:
    report = plan_project(project.directory)
    assert not report.problems, report.problems
    assert report.plan is not None
    return {str(node["name"]) for node in report.plan["nodes"] if node.get("fused")}


def told(project: ProjectFactory) -> tuple[int, dict[str, Any], dict[str, list[str]]]:
    """Return the exit code, status and rows by node, and the event names of each node in order."""
    events: list[RunEvent] = []
    outcome = project.run(events=events)
    order: dict[str, list[str]] = {}
    for event in events:
        if isinstance(event, (NodeStarted, NodeCompleted)):
            name = event.node_name if isinstance(event, NodeStarted) else event.result.name
            order.setdefault(name, []).append(event.name)
    results = {result.name: (result.status.value, result.rows) for result in outcome.results}
    return outcome.exit_code, results, order


@pytest.mark.parametrize("kind", SOURCES)
def test_fused_source_counts_what_its_scan_delivered(project: ProjectFactory, kind: str) -> None:
    """The count of a fused csv, parquet or DuckDB source is the one it has when it is staged."""
    connection, entity = SOURCES[kind]
    project.pipeline(
        "p", SINK + f"SELECT count(*) AS n, sum(amount) AS total FROM {{{{ source('{connection}', '{entity}') }}}}"
    )
    found = []
    for fusion in ("on", "off"):
        set_fusion(project, fusion)
        assert (f"src_{connection}__{entity}" in fused(project)) is (fusion == "on")
        found.append(told(project))
    assert found[0] == found[1]
    assert found[0][1] == {
        f"src_{connection}__{entity}": ("success", 3),
        "p": ("success", 1),
        "out.result": ("success", 1),
    }


def test_only_a_middle_pipeline_and_a_view_have_no_count(project: ProjectFactory) -> None:
    """A fused pipeline that another one reads, and a view with or without fusion; every other node has one."""
    project.pipeline("middle", "SELECT id FROM {{ source('files', 'a') }} WHERE amount > 10")
    project.pipeline("seen", "SELECT id FROM {{ source('files', 'p') }}")
    project.sidecar("seen", "materialization: view\n")
    project.pipeline("p", SINK + "SELECT id FROM {{ ref('middle') }} UNION ALL SELECT id FROM {{ ref('seen') }}")
    uncounted = {}
    for fusion in ("on", "off"):
        set_fusion(project, fusion)
        code, results, _ = told(project)
        assert code == 0
        uncounted[fusion] = {name for name, (_, rows) in results.items() if rows is None}
        assert results["out.result"] == ("success", 5)
    assert uncounted == {"on": {"middle", "seen"}, "off": {"seen"}}


STAGED: dict[str, tuple[str, str, str, str, set[str]]] = {
    "watermark": ("files", "a", ", sync: { mode: incremental, cursor: id }", "", {"p", "out.result"}),
    "window": ("files", "a", ", sync: { mode: incremental, cursor: id, max_window: 10, initial: 0 }", "", {"p", "out.result"}),
    "drift": ("files", "a", "", "on_source_drift: warn\n", {"p", "out.result"}),
    "partitions": ("files", "a", ", files_per_partition: 1", "", {"p", "out.result"}),
    "rejects": ("files", "a", ", ragged: reject", "", {"p", "out.result"}),
    "universal source": ("api", "things", "", "", {"p", "out.result"}),
}  # fmt: skip
"""What needs the rows: connection, entity, read options, project keys, what stays fused."""


@pytest.mark.parametrize("reason", STAGED)
def test_what_needs_the_rows_of_a_source_stages_it(project: ProjectFactory, reason: str) -> None:
    """Capture, windows, drift, partitions, rejects and the universal tier; the pipeline behind it still streams."""
    connection, entity, extra, rest, expected = STAGED[reason]
    set_fusion(project, "on", rest)
    project.connections(CONNECTIONS.format(extra=extra))
    append = "INSERT INTO {{ sink('out', 'result', format: 'parquet', strategy: 'append', duplicates: 'accept') }}\n"
    project.pipeline("p", append + f"SELECT id FROM {{{{ source('{connection}', '{entity}') }}}}")
    assert fused(project) == expected
    code, results, _ = told(project)
    assert code == 0
    assert {rows for _, rows in results.values()} == ({2} if connection == "api" else {3})


def test_universal_destination_needs_its_relation_staged(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """The source still streams into the table that is then read batch by batch."""
    project.pipeline(
        "p", "INSERT INTO {{ sink('api', 'copy', strategy: 'replace') }}\nSELECT id FROM {{ source('files', 'a') }}"
    )
    assert fused(project) == {"src_files__a"}
    assert project.run().exit_code == 0
    assert [row["id"] for row in scripted.written["copy"]] == [1, 2, 3]


def test_files_that_need_several_readers_are_staged(project: ProjectFactory) -> None:
    """Files whose columns stand in another order are read one after the other; their rows are counted together."""
    project.write("in/b.csv", "amount,id\n40,4\n")
    project.connections(CONNECTIONS.format(extra="").replace("path: a.csv", 'path: "*.csv"'))
    project.pipeline("p", SINK + "SELECT id FROM {{ source('files', 'a') }} WHERE amount > 20")
    assert fused(project) == {"p", "out.result"}
    assert told(project)[1] == {"src_files__a": ("success", 4), "p": ("success", 2), "out.result": ("success", 2)}


def test_source_that_is_no_cheap_or_stable_scan_is_staged(
    project: ProjectFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a connector does not promise about its scans is not assumed."""
    files = find_connector("localfiles")
    monkeypatch.setattr(type(files), "capabilities", files.capabilities & ~Capability.REPEATABLE_SCAN)
    project.pipeline("p", SINK + "SELECT id FROM {{ source('files', 'a') }}")
    assert fused(project) == {"p", "out.result"}
    assert project.run().exit_code == 0


def test_scans_that_a_profile_cannot_tell_apart_are_staged(project: ProjectFactory) -> None:
    """Two entities over one file in one statement: each has its own count."""
    text = CONNECTIONS.replace(
        "    p: {{", "    again: {{ read: {{ path: a.csv, columns: {{ id: int }} }} }}\n    p: {{"
    )
    project.connections(text.format(extra=""))
    project.pipeline(
        "p", SINK + "SELECT a.id FROM {{ source('files', 'a') }} a JOIN {{ source('files', 'again') }} b ON a.id > b.id"
    )
    assert fused(project) == {"p", "out.result"}
    assert told(project)[1]["src_files__again"] == ("success", 3)


@pytest.mark.parametrize(
    ("sidecar", "expected"),
    [("checks:\n  - not_null: [id]\n", {"p", "out.result"}), ("", {"src_files__a", "p", "out.result"})],
)
def test_check_on_a_view_counts_as_a_check_on_what_it_reads(
    project: ProjectFactory, sidecar: str, expected: set[str]
) -> None:
    """A view has no rows of its own, so its check reads the source a second time."""
    project.pipeline("seen", "SELECT id FROM {{ source('files', 'a') }}")
    project.sidecar("seen", "materialization: view\n" + sidecar)
    project.pipeline("p", SINK + "SELECT id FROM {{ ref('seen') }}")
    assert fused(project) == expected
    assert project.run().exit_code == 0


BREAK = {
    "nothing": ("id,amount\n1,10\n2,20\n3,30\n", "amount"),
    "scan": ("id,amount\n1,10\n2.5,20\n", "amount"),
    "sql": ("id,amount\n1,10\n", "CAST(amount || 'x' AS INTEGER) AS amount"),
}


@pytest.mark.parametrize("broken", BREAK)
def test_same_exit_code_and_order_per_node_with_and_without(project: ProjectFactory, broken: str) -> None:
    """Of each node: started, then completed; after a failure the code is 1 and the same node is the failed one."""
    content, expression = BREAK[broken]
    project.write("in/a.csv", content)
    project.pipeline("p", SINK + f"SELECT id, {expression} FROM {{{{ source('files', 'a') }}}}")
    found = {}
    for fusion in ("on", "off"):
        set_fusion(project, fusion)
        found[fusion] = told(project)
    assert found["on"][0] == found["off"][0] == (0 if broken == "nothing" else 1)
    failed = [{name for name, (status, _) in each[1].items() if status == "failed"} for each in found.values()]
    assert failed[0] == failed[1] == {"nothing": set(), "scan": {"src_files__a"}, "sql": {"p"}}[broken]
    for each in found.values():
        assert all(order in (["node_started", "node_completed"], ["node_completed"]) for order in each[2].values())
    if broken == "nothing":
        assert found["on"] == found["off"]
