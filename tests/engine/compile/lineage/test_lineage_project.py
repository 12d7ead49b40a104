"""Lineage through a whole project: contracts, cached schemas, ephemerals, watermarks, and pipelines that read pipelines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from lineage_projects import written

from pz_engine import PipelineLineage, column_lineage
from pz_engine.app.compile import compile_project, write_lineage
from pz_engine.app.selecting import select_nodes
from pz_engine.compile.lineage.parsing import parse_query
from pz_engine.model.run import ColumnType
from pz_engine.validate.schema_cache import write_schema_cache

CONNECTIONS = """c:
  connector: localfiles
  entities:
    orders: {read: {path: orders.csv, columns: {id: bigint, u: timestamp, amount: 'decimal(18,2)', note: varchar}}}
    raw.things: {read: {path: things.csv}}
"""


def lineage(project) -> dict[str, PipelineLineage]:
    return {found.name: found for found in column_lineage(project.compile())}


def lines(project, name: str) -> list[str]:
    return [line.strip() for line in written(lineage(project)[name])]


def test_stars_go_through_pipelines_that_are_known(project):
    """Each pipeline names the nodes it reads itself; a star expands over a contract and over a known pipeline."""
    project.write("connections.yml", CONNECTIONS)
    project.sql("a", "select *, amount * 2 as twice from {{ source('c', 'orders') }}")
    project.sql("b", "select * exclude (note), upper(note) as loud from {{ ref('a') }}")
    assert lines(project, "a")[-2:] == ["note: src_c__orders.note", "twice: src_c__orders.amount"]
    assert lines(project, "b") == ["id: a.id", "u: a.u", "amount: a.amount", "twice: a.twice", "loud: a.note"]


def test_ephemerals_are_looked_through_and_have_no_entry(project):
    """Edges of a consumer end at what the ephemeral reads."""
    project.write("connections.yml", CONNECTIONS)
    project.sql("e", "select id, trim(note) as text, extract(year from u) as y from {{ source('c', 'orders') }}")
    project.sidecar("e", "materialization: ephemeral\n")
    project.sql("z", "with k as (select * from {{ ref('e') }}) select y, k.text || 'x' as t from k")
    assert list(lineage(project)) == ["z"]
    assert lines(project, "z") == ["y: src_c__orders.u", "t: src_c__orders.note"]


def test_watermarks_do_not_hide_columns(project):
    """A sentinel is replaced by a NULL of its type before DuckDB is asked."""
    project.write("connections.yml", CONNECTIONS)
    project.sql(
        "a", "select * from {{ source('c', 'orders') }} where u >= {{ watermark('c', 'orders') }} - interval 2 hour"
    )
    assert lines(project, "a")[0] == "id: src_c__orders.id"


def test_without_a_contract_only_a_cached_schema_expands_a_star(project):
    """Columns that are named are certain without it; a cache that cannot be read is none."""
    project.write("connections.yml", CONNECTIONS)
    project.sql("a", "select * from {{ source('c', 'raw.things') }}")
    project.sql("b", "select id as key, count(*) as n from {{ source('c', 'raw.things') }} r group by all")
    project.sql("d", "select * from {{ ref('a') }}")
    project.sql("f", "select * from {{ ref('b') }}")
    project.sql("g", "select r.id from {{ source('c', 'raw.things') }} r")  # r may be a struct
    assert lines(project, "a") == lines(project, "d") == ["*: ?"]
    assert lines(project, "b") == ["key: src_c__raw_things.id", "n:"]
    assert lines(project, "g") == ["id: ?"]
    assert lines(project, "f") == ["key: b.key", "n: b.n"]
    path = write_schema_cache(
        project.directory / ".pz", {"c.raw.things": (ColumnType("id", "BIGINT"), ColumnType("Tags", "VARCHAR[]"))}
    )
    assert lines(project, "a") == ["id: src_c__raw_things.id", "Tags: src_c__raw_things.Tags"]
    assert lines(project, "d") == ["id: a.id", "Tags: a.Tags"]
    for broken in (b"", b"[]", b'{"version": 2, "schemas": {}}', b'{"version": 1, "schemas": {"c.raw.things": [3]}}'):
        path.write_bytes(broken)
        assert lines(project, "a") == ["*: ?"]


def test_a_cached_schema_that_does_not_fit_the_query_makes_nothing_certain(project):
    """The cache is older than the source: DuckDB refuses the query, so no edge is told."""
    project.write("connections.yml", CONNECTIONS)
    project.sql("a", "select id, fresh from {{ source('c', 'raw.things') }}")
    write_schema_cache(project.directory / ".pz", {"c.raw.things": (ColumnType("id", "BIGINT"),)})
    assert lines(project, "a") == ["*: ?"]


def test_the_artifact_holds_what_was_selected(project):
    """A pipeline outside the selection is computed, for its consumers, but not written."""
    project.write("connections.yml", CONNECTIONS)
    project.sql("a", "select * from {{ source('c', 'orders') }}")
    project.sql("b", "select id, 1 as one, random() as r from {{ ref('a') }}")
    compiled = compile_project(project.directory)
    write_lineage(compiled, select_nodes(compiled, "b"))
    content = json.loads((project.directory / ".pz/target/lineage.json").read_text())
    assert content == {
        "version": 1,
        "pipelines": [
            {
                "name": "b",
                "columns": [
                    {"name": "id", "from": [{"node": "a", "column": "id"}]},
                    {"name": "one", "from": []},
                    {"name": "r", "from": []},
                ],
            }
        ],
    }


def test_compiling_does_not_load_sqlglot(project):
    """Only who asks for lineage pays for it."""
    project.write("connections.yml", CONNECTIONS)
    project.sql("a", "select * from {{ source('c', 'orders') }}")
    code = (
        "import sys; from pathlib import Path; from pz_engine import compile_project; "
        "assert compile_project(Path(sys.argv[1])).nodes; print('sqlglot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(project.directory)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n"


def test_nothing_but_the_cache_is_read(project, tmp_path: Path, monkeypatch):
    """A file that a query names is not opened, though it is there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.csv").write_text("a,b\n1,2\n")
    project.write("connections.yml", CONNECTIONS)
    project.sql("a", "select *, (select max(b) from 'here.csv') as b from {{ source('c', 'orders') }}")
    project.sql("b", "select * from read_csv('here.csv')")
    assert lines(project, "a") == ["id: src_c__orders.id", "u: src_c__orders.u", "amount: src_c__orders.amount",
                                   "note: src_c__orders.note", "b: ?"]  # fmt: skip
    assert lines(project, "b") == ["*: ?"]


def test_very_deep_and_very_long_queries_end(project):
    """What a parser cannot hold is unknown, and a thousand columns are no problem."""
    assert parse_query("select " + "(" * 5000 + "1" + ")" * 5000) is None
    project.write("connections.yml", CONNECTIONS)
    wide = ", ".join(f"id + {n} as c{n}" for n in range(1000))
    project.sql("wide", f"select {wide} from {{{{ source('c', 'orders') }}}}")
    unions = " union all ".join(["select id from {{ source('c', 'orders') }}"] * 150)
    project.sql("long", unions)
    assert lines(project, "wide")[999] == "c999: src_c__orders.id"
    assert lines(project, "long") in (["id: src_c__orders.id"], ["id: ?"])
