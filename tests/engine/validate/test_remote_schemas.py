"""Tier 5 against real files and real databases."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from pz_engine.app.validate import ValidateReport, validate_project
from pz_engine.model.run import ColumnType
from pz_engine.validate.schema_cache import cache_path, read_schema_cache, write_schema_cache


def connect(project) -> ValidateReport:
    return validate_project(project.directory, connect=True)


def found(project) -> list[tuple[str, str, str | None]]:
    return [(problem.code, problem.message, problem.hint) for problem in connect(project).problems]


def database(path: Path, *statements: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path


def write_parquet(path: Path, query: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    duckdb.execute(f"copy ({query}) to '{path}' (format parquet)")


def listing(directory: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }


@pytest.fixture
def locked(project) -> Iterator[Path]:
    """A database that another process has open for writing."""
    path = database(project.directory / "held.duckdb", "create table t (id bigint)")
    code = f"import duckdb, sys; c = duckdb.connect({str(path)!r}); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        yield path
        holder.communicate()


def test_undeclared_entities_are_stored_as_they_would_land(project):
    """Types of text come from DuckDB's look at the file; every format and an attached table give a schema."""
    data = project.directory / "data"
    project.write("data/sales.csv", "id,Sold At,price\n1,2026-01-02,1.50\n2,2026-01-03,2\n")
    project.write("data/events.json", '{"a": 1}\n{"a": 2, "late": "x"}\n')
    write_parquet(data / "facts.parquet", "select 1::bigint as k, [1] as l, {'x': 1.5::decimal(4,1)} as s")
    database(project.directory / "mart.duckdb", "create schema b", "create table b.t (id integer, seen timestamptz)")
    project.write(
        "connections.yml",
        "f:\n  connector: localfiles\n  root: data\n  entities:\n    sales: {read: }\n"
        "    events: {read: {format: json}}\n    facts: {read: {format: parquet}}\n"
        "d:\n  connector: duckdb\n  path: mart.duckdb\n  entities: {b.t: {read: }}\n",
    )
    assert connect(project).problems == ()
    assert read_schema_cache(project.directory / ".pz") == {
        "d.b.t": (ColumnType("id", "INTEGER"), ColumnType("seen", "TIMESTAMP WITH TIME ZONE")),
        "f.events": (ColumnType("a", "BIGINT"), ColumnType("late", "VARCHAR")),
        "f.facts": (ColumnType("k", "BIGINT"), ColumnType("l", "INTEGER[]"), ColumnType("s", "STRUCT(x DECIMAL(4,1))")),
        "f.sales": (ColumnType("id", "BIGINT"), ColumnType("Sold At", "DATE"), ColumnType("price", "DOUBLE")),
    }


def test_the_cache_is_the_only_file_written_and_byte_stable(project):
    """Probing a destination leaves neither files nor folders, and the same sources give the same bytes."""
    project.write("data/x.csv", "id\n1\n")
    database(project.directory / "mart.duckdb", "create table t (id bigint)", "insert into t values (1)")
    project.write(
        "connections.yml",
        "f: {connector: localfiles, root: data, entities: {x: {read: }}}\nnew: {connector: localfiles, root: a/b}\n"
        "d: {connector: duckdb, path: mart.duckdb}\ne: {connector: duckdb, path: later.duckdb}\n",
    )
    sinks = ", ".join(f"{{{{ sink('{name}', 't', strategy: 'replace') }}}}" for name in ("f", "new", "d", "e"))
    project.sql("p", f"insert into [{sinks}] select * from {{{{ source('f', 'x') }}}}")
    before = listing(project.directory)
    assert connect(project).problems == ()
    after = listing(project.directory)
    text = after.pop(".pz/target/schemas.json")
    assert text == (
        b'{\n  "version": 1,\n  "schemas": {\n    "f.x": [\n      {\n        "name": "id",\n'
        b'        "type": "BIGINT"\n      }\n    ]\n  }\n}\n'
    )
    assert {path for path in after if path not in before} == {".pz", ".pz/target"}
    assert {path: content for path, content in after.items() if path in before} == before
    assert connect(project).problems == ()
    assert cache_path(project.directory / ".pz").read_bytes() == text


def test_declared_columns_of_typed_sources_are_compared(project):
    """One error a column, by name, at the declaration; other letters and further columns are no drift."""
    write_parquet(
        project.directory / "data/facts.parquet",
        "select 1::bigint as ID, 1.5::double as price, 'x' as extra, now()::timestamp_ns as at, 1::utinyint as tiny, "
        "[1] as tags, null as nothing",
    )
    columns = (
        "{zz: int, price: 'decimal(10,2)', id: bigint, at: timestamp, tiny: int, tags: varchar, extra: varchar, "
        "nothing: date}"
    )
    project.write(
        "connections.yml",
        f"f:\n  connector: localfiles\n  root: data\n  entities:\n    facts:\n      read: {{format: parquet, columns: {columns}}}\n",
    )
    report = connect(project)
    assert [(p.code, p.message, p.place, p.hint) for p in report.problems] == [
        ("PZ0331", "'f.facts': column 'nothing' is declared as date, the source has INTEGER", "connections.yml:6",
         "declare 'nothing' as int, or correct the source"),
        ("PZ0331", "'f.facts': column 'price' is declared as decimal(10,2), the source has DOUBLE", "connections.yml:6",
         "declare 'price' as double, or correct the source"),
        ("PZ0331", "'f.facts': the source has no column 'zz'", "connections.yml:6",
         "its columns are: ID, price, extra, at, tiny, tags, nothing"),
    ]  # fmt: skip


def test_declared_columns_of_a_table_are_compared(project):
    """An attached table has types of its own."""
    database(project.directory / "mart.duckdb", "create table t (id integer, seen timestamp, note varchar)")
    project.write(
        "connections.yml",
        "d: {connector: duckdb, path: mart.duckdb, entities: {t: {read: {columns: {id: bigint, seen: timestamp, nota: varchar}}}}}\n",
    )
    assert found(project) == [
        ("PZ0331", "'d.t': column 'id' is declared as bigint, the source has INTEGER",
         "declare 'id' as int, or correct the source"),
        ("PZ0331", "'d.t': the source has no column 'nota'", "did you mean 'note'?"),
    ]  # fmt: skip


@pytest.mark.parametrize("is_compressed", [False, True])
def test_csv_under_a_contract_is_compared_by_name_only(project, is_compressed):
    """Its text has no type before it is cast; every missing column is named, also when files differ."""
    ending = "csv.gz" if is_compressed else "csv"
    for name, text in (("a", "id,x\n1,2\n"), ("b", "ID,y\nnot-a-number,2\n")):
        path = project.directory / f"data/{name}.{ending}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if is_compressed else text.encode())
    project.write(
        "connections.yml",
        f"f:\n  connector: localfiles\n  root: data\n  entities:\n    good: {{read: {{path: '*.{ending}', columns: {{id: int}}}}}}\n"
        f"    bad: {{read: {{path: '*.{ending}', columns: {{z: date, x: int, id: int}}}}}}\n"
        f"    none: {{read: {{path: a.{ending}, columns: {{p: int, q: int}}}}}}\n",
    )
    assert [(code, message) for code, message, _ in found(project)] == [
        ("PZ0331", "'f.bad': the source has no column 'x'"),
        ("PZ0331", "'f.bad': the source has no column 'z'"),
        ("PZ0331", "'f.none': the source has no column 'p'"),
        ("PZ0331", "'f.none': the source has no column 'q'"),
    ]
    assert found(project)[0][2] == "the columns are: ID, y"


def test_json_under_a_contract_may_lack_any_key(project):
    """An object without a key is no drift, and no value is looked at."""
    project.write("data/e.json", '{"a": "text"}\n')
    project.write(
        "connections.yml",
        "f: {connector: localfiles, root: data, entities: {e: {read: {format: json, columns: {a: int, b: int}}}}}\n",
    )
    assert found(project) == []


def test_what_is_not_there_is_one_error_an_entity(project):
    """A missing folder, file, database and table, and a file that is none of its format."""
    project.write("data/broken.parquet", "not parquet")
    database(project.directory / "mart.duckdb", "create table t (id integer)")
    project.write(
        "connections.yml",
        "a: {connector: localfiles, root: nowhere, entities: {x: {read: }, y: {read: {columns: {id: int}}}}}\n"
        "b: {connector: localfiles, root: data, entities: {broken: {read: {format: parquet}}}}\n"
        "c: {connector: duckdb, path: absent.duckdb, entities: {t: {read: }, u: {read: {columns: {id: int}}}}}\n"
        "d: {connector: duckdb, path: mart.duckdb, entities: {u: {read: }, t: {read: }}}\n"
        "e: {connector: duckdb, path: data/broken.parquet, entities: {u: {read: }}}\n"
        "g: {connector: localfiles, root: data/broken.parquet}\n",
    )
    codes = {}
    for code, message, hint in found(project):
        assert hint
        codes[message.split(":")[0]] = (code, message.partition(": ")[2])
    assert {code for code, _ in codes.values()} == {"PZ0330"}
    assert list(codes) == [
        "'a.x', read", "'a.y', read", "'b.broken', read", "'c.t', read", "'c.u', read", "'d.u', read", "connection 'e'",
        "connection 'g'",
    ]  # fmt: skip
    assert codes["'a.x', read"][1] == "connection 'a': path 'x.csv' matches no file"
    assert codes["'c.u', read"][1] == "database 'absent.duckdb' does not exist"
    assert codes["connection 'e'"][1] == "'data/broken.parquet' is not a DuckDB database"
    assert list(read_schema_cache(project.directory / ".pz")) == ["d.t"]


def test_a_database_in_use_is_named_with_who_holds_it(project, locked):
    """Neither a read nor a write gets it; both say that trying again may help."""
    del locked
    project.write("connections.yml", "d: {connector: duckdb, path: held.duckdb, entities: {t: {read: }}}\n")
    project.sql("p", "insert into {{ sink('d', 'out', strategy: 'replace') }} select 1 as a")
    (read, write) = sorted(found(project), key=lambda problem: "write" in problem[1])
    assert read[0] == write[0] == "PZ0330"
    assert "held.duckdb" in read[1]
    assert "PID" in read[1]
    assert write[1] == "'d.out', write: 'held.duckdb' is in use by another process"
    assert read[2] == write[2] == "try again; if it stays, check the connection's settings and the network"


def test_a_destination_that_cannot_be_written_is_an_error(project):
    """A file stands where a folder is needed, and no file can be made in a folder of the system."""
    project.write("data/file", "x")
    project.write(
        "connections.yml",
        "a: {connector: localfiles, root: data}\nb: {connector: localfiles, root: /proc/self}\n"
        "c: {connector: duckdb, path: /proc/self/x.duckdb}\nd: {connector: duckdb, path: no/folder/x.duckdb}\n",
    )
    project.sql("p", "insert into {{ sink('a', 'out', path: 'file/below', strategy: 'replace') }} select 1 as a")
    for name in "bcd":
        project.sql(f"p{name}", f"insert into {{{{ sink('{name}', 'out', strategy: 'replace') }}}} select 1 as a")
    messages = [message for code, message, _ in found(project) if code == "PZ0330"]
    assert messages[0] == "connection 'd': the folder of database 'no/folder/x.duckdb' does not exist"
    assert messages[1] == ("'a.out', write: 'data/file/below' cannot be a folder, because a file is in its place")
    assert messages[2].startswith("'b.out', write: folder '/proc/self/out' cannot be written: ")
    assert messages[3].startswith("'c.out', write: folder '/proc/self/x.duckdb' cannot be written: ")
    assert len(messages) == 4


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_folder_without_permission_is_an_error(project):
    """The operating system's reason is shown."""
    project.write("connections.yml", "a: {connector: localfiles, root: out}\n")
    project.sql("p", "insert into {{ sink('a', 'x', strategy: 'replace') }} select 1 as a")
    (project.directory / "out").mkdir(mode=0o500)
    assert found(project)[0][1] == "'a.x', write: folder 'out/x' cannot be written: Permission denied"


def test_nothing_is_reached_while_another_tier_has_errors(project):
    """Tier 5 starts only after the others passed, and then writes nothing either."""
    project.write(
        "connections.yml", "a: {connector: localfiles, root: nowhere, entities: {x: {read: {columns: {id: int}}}}}\n"
    )
    project.sql("p", "select nope from {{ source('a', 'x') }}")
    assert [code for code, _, _ in found(project)] == ["PZ0401"]
    assert not (project.directory / ".pz").exists()


def test_what_does_not_answer_keeps_its_cached_schema(project):
    """An entity that is gone from the project, or has a contract now, is forgotten; one that is out of reach is not."""
    project.write("data/x.csv", "id\n1\n")
    old = (ColumnType("old", "DATE"),)
    write_schema_cache(
        project.directory / ".pz", {"f.x": old, "f.away": old, "f.declared": old, "f.removed": old, "g.y": old}
    )
    project.write(
        "connections.yml",
        "f: {connector: localfiles, root: data, entities: {x: {read: }, away: {read: }, declared: {read: {columns: {id: int}}}}}\n"
        "g: {connector: duckdb, path: no/folder/x.duckdb, entities: {y: {read: }}}\n",
    )
    assert len(connect(project).problems) == 3
    assert read_schema_cache(project.directory / ".pz") == {
        "f.away": old,
        "f.x": (ColumnType("id", "BIGINT"),),
        "g.y": old,
    }


def test_a_call_site_s_declaration_is_looked_at_too(project):
    """Effective entities are those of connections.yml and of pipelines; errors name the pipeline."""
    project.write("data/x.csv", "id\n1\n")
    project.write("connections.yml", "f: {connector: localfiles, root: data}\n")
    project.sql(
        "p", "-- reads\nselect * from {{ source('f', 'mine', path: 'x.csv', columns: {id: 'int', no: 'int'}) }}"
    )
    report = connect(project)
    assert [(p.code, p.place) for p in report.problems] == [("PZ0331", "pipelines/p.sql:2")]


def test_cache_text_is_what_it_was_given(tmp_path: Path):
    """Any name and type survives, keys are sorted, and the file is replaced as a whole."""
    schemas = {"b.ü": (ColumnType('a"b', "STRUCT(x INTEGER)"),), "a.x": ()}
    path = write_schema_cache(tmp_path, schemas)
    assert list(json.loads(path.read_text())["schemas"]) == ["a.x", "b.ü"]
    assert read_schema_cache(tmp_path) == schemas
    assert [each.name for each in path.parent.iterdir()] == ["schemas.json"]
