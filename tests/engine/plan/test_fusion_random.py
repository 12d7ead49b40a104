"""Random projects over random data land the same with `engine.fusion` on and off."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pz_engine.testing.project_factory import ProjectFactory

Project = dict[str, Any]

COLUMNS = {"id": "bigint", "amount": "'decimal(9,2)'", "day": "date", "word": "varchar"}
_CELLS = {
    "id": st.integers(0, 6).map(str),
    "amount": st.decimals(-99, 99, places=2).map(str),
    "day": st.dates().map(lambda day: day.isoformat()),
    "word": st.sampled_from(["a", "b", "ä", "x y", "0", "null", "'", '"', ",", "1.0", "  "]),
}
_DAMAGED = {"id": "1.5", "amount": "1.005", "day": "2024-02-30"}
"""A cell that does not fit its column."""

_REPAIRED = {"1.5": "1", "1.005": "1.00", "2024-02-30": "2024-02-28"}

cells = st.tuples(*(st.one_of(st.just(""), each) for each in _CELLS.values()))
tables = st.lists(cells, max_size=12)
FORMATS = ("csv", "parquet", "duckdb")

STEPS = (
    "select * from {0} where amount > 0 or amount is null",
    "select word, count(*) as n, sum(amount) as amount, min(day) as day from {0} group by all",
    "select id, amount, day, word from {0} union all select id, amount, day, word from {1}",
    "select a.id, b.word, a.amount + b.amount as amount from {0} a join {1} b using (id)",
    "select distinct word, day from {0}",
    "select id, row_number() over (partition by id order by amount, day, word) as position from {0}",
    "select count(*) as n from {0} where exists (select 1 from {1} b where b.word = '0')",
)
NEEDS = {0: "amount", 1: "amount day word", 2: "id amount day word", 3: "id amount word", 4: "word day",
         5: "id amount day word", 6: ""}  # fmt: skip
GIVES = {0: None, 1: "word n amount day", 2: "id amount day word", 3: "id word amount", 4: "word day", 5: "id position",
         6: "n"}  # fmt: skip
SECOND = {2: "id amount day word", 3: "id amount word", 6: "word"}


@st.composite
def projects(draw: st.DrawFn) -> Project:
    """Draw two tables, up to four pipelines over them and each other, and what is asked of each."""
    sources = {name: {"format": draw(st.sampled_from(FORMATS)), "rows": draw(tables)} for name in ("first", "second")}
    for name, source in sources.items():
        if source["format"] == "csv" and source["rows"] and draw(st.integers(0, 9)) == 0:
            column = draw(st.sampled_from(sorted(_DAMAGED)))
            row = list(source["rows"][-1])
            row[list(COLUMNS).index(column)] = _DAMAGED[column]
            sources[name]["rows"] = [*source["rows"][:-1], tuple(row)]
    known: dict[str, set[str]] = {name: set(COLUMNS) for name in sources}
    pipelines = []
    for number in range(draw(st.integers(1, 4))):
        choices = [
            (step, first, second)
            for step, (first, second) in itertools.product(NEEDS, itertools.product(known, known))
            if set(NEEDS[step].split()) <= known[first] and set(SECOND.get(step, "").split()) <= known[second]
        ]
        step, first, second = draw(st.sampled_from(choices))
        name = f"p{number}"
        given_columns = GIVES[step]
        known[name] = set(known[first]) if given_columns is None else set(given_columns.split())
        pipelines.append(
            {
                "name": name,
                "step": step,
                "inputs": (first, second),
                "view": draw(st.integers(0, 4)) == 0,
                "check": draw(st.integers(0, 3)) == 0,
                "sink": draw(st.sampled_from((None, "parquet", "csv", "json", "table", "merge"))),
            }
        )
    if all(each["sink"] is None for each in pipelines):
        pipelines[-1]["sink"] = "parquet"
    return {"sources": sources, "pipelines": pipelines, "columns": known}


def write(project: Project, directory: Path, fusion: str) -> ProjectFactory:
    """Write a drawn project."""
    factory = ProjectFactory(
        directory, f'name: demo\nversion: "1"\nengine: {{ fusion: "{fusion}", threads: 2, duckdb: {{ threads: 1 }} }}\n'
    )
    contract = ", ".join(f"{name}: {kind}" for name, kind in COLUMNS.items())
    types = {name: kind.strip("'").upper() for name, kind in COLUMNS.items()}
    entities = {"files": "", "db": ""}
    with duckdb.connect(str(directory / "in.duckdb")) as connection:
        for name, source in project["sources"].items():
            values = [[cell or None for cell in row] for row in source["rows"]]
            connection.execute(f"create table t ({', '.join(f'{each} varchar' for each in types)})")
            if values:
                connection.executemany("insert into t values (?, ?, ?, ?)", values)
            typed = ", ".join(f"cast({each} as {kind}) as {each}" for each, kind in types.items())
            options = ""
            if source["format"] == "csv":
                connection.execute(f"copy t to '{directory / name}.csv' (header, force_quote (word))")
                options = f"path: {name}.csv"
            elif source["format"] == "parquet":
                connection.execute(f"copy (select {typed} from t) to '{directory / name}.parquet'")
                options = f"path: {name}.parquet, format: parquet"
            else:
                connection.execute(f"create table {name} as select {typed} from t")
            connection.execute("drop table t")
            where = "db" if source["format"] == "duckdb" else "files"
            columns = f"{', ' if options else ''}columns: {{ {contract} }}"
            entities[where] += f"    {name}: {{ read: {{ {options}{columns} }} }}\n"
    blocks = {where: f"  entities:\n{text}" if text else "" for where, text in entities.items()}
    factory.connections(
        f"files:\n  connector: localfiles\n{blocks['files']}db:\n  connector: duckdb\n  path: in.duckdb\n{blocks['db']}"
        "out: { connector: localfiles, root: out }\nstore: { connector: duckdb, path: store.duckdb }\n"
    )
    for pipeline in project["pipelines"]:
        relations = [
            f"{{{{ source('{'db' if project['sources'][each]['format'] == 'duckdb' else 'files'}', '{each}') }}}}"
            if each in project["sources"]
            else f"{{{{ ref('{each}') }}}}"
            for each in pipeline["inputs"]
        ]
        factory.pipeline(pipeline["name"], _target(pipeline) + STEPS[pipeline["step"]].format(*relations) + "\n")
        sidecar = "materialization: view\n" if pipeline["view"] and pipeline["sink"] is None else ""
        sidecar += "checks:\n  - row_count: { min: 1 }\n" if pipeline["check"] else ""
        if sidecar:
            factory.sidecar(pipeline["name"], sidecar)
    return factory


def _target(pipeline: dict[str, Any]) -> str:
    name, kind = pipeline["name"], pipeline["sink"]
    if kind is None:
        return ""
    if kind == "table":
        return f"insert into {{{{ sink('store', '{name}', strategy: 'replace') }}}}\n"
    if kind == "merge":
        keys = {1: "word", 4: "word", 6: "n"}.get(pipeline["step"], "id")
        return f"insert into {{{{ sink('store', '{name}', strategy: 'merge', keys: ['{keys}']) }}}}\n"
    return f"insert into {{{{ sink('out', '{name}', format: '{kind}', strategy: 'replace') }}}}\n"


def landed(project: Project, directory: Path) -> dict[str, Any]:
    """Return the rows of every destination, in no order."""
    found: dict[str, Any] = {}
    files = [pipeline for pipeline in project["pipelines"] if pipeline["sink"] in ("parquet", "csv", "json")]
    for pipeline in files:
        path = directory / "out" / pipeline["name"] / f"{pipeline['name']}.{pipeline['sink']}"
        if not path.exists():
            found[pipeline["name"]] = None
        elif pipeline["sink"] == "parquet":
            relation = duckdb.sql(f"select * from '{path}'")
            found[pipeline["name"]] = (list(map(str, relation.types)), sorted(map(repr, relation.fetchall())))
        else:
            found[pipeline["name"]] = sorted(path.read_bytes().splitlines())
    store = directory / "store.duckdb"
    if store.exists():
        with duckdb.connect(str(store), read_only=True) as connection:
            for (name,) in connection.execute("select table_name from duckdb_tables() order by 1").fetchall():
                relation = connection.sql(f"select * from {name}")
                found[name] = (list(map(str, relation.types)), sorted(map(repr, relation.fetchall())))
    return found


def told(factory: ProjectFactory) -> tuple[int, dict[str, Any]]:
    """Return the exit code and, per node, status, rows and message."""
    outcome = factory.run()
    return outcome.exit_code, {
        result.name: (result.status.value, result.rows, result.error.message if result.error else None)
        for result in outcome.results
    }


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New directories, one after the other."""
    base = tmp_path_factory.mktemp("fusion")
    return (base / str(number) for number in itertools.count())


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(project=projects())
def test_fusion_changes_nothing_that_lands(project: Project, places: Iterator[Path]) -> None:
    """Destinations, exit code and every node's status, count and message are those of `fusion: off`.

    A fused relation's count may be missing, that of a fused source may be lower. What a statement does not read is not
    looked at: a cell that does not fit fails every staged load, and a fused one unless nothing depends on it.
    """
    found = {fusion: _ran(project, next(places), fusion) for fusion in ("on", "off")}
    (code, fused, rows), (other_code, staged, other_rows) = found["on"], found["off"]
    repaired = _repaired(project)
    if repaired == project:
        assert (code, rows) == (other_code, other_rows)
        for name, (status, count, message) in staged.items():
            assert (fused[name][0], fused[name][2]) == (status, message), name
            assert fused[name][1] in (None, count) or name.startswith("src_"), name
        return
    _, _, expected = _ran(repaired, next(places), "off")
    for name, landing in expected.items():
        assert rows.get(name) in (None, landing), name
        assert other_rows.get(name) in (None, landing, rows.get(name)), name
    said = {message for _, _, message in staged.values()}
    assert {message for _, _, message in fused.values()} <= said


def _ran(project: Project, directory: Path, fusion: str) -> tuple[int, dict[str, Any], dict[str, Any]]:
    factory = write(project, directory, fusion)
    code, nodes = told(factory)
    rows = landed(project, directory)
    shutil.rmtree(directory)
    return code, nodes, rows


def _repaired(project: Project) -> Project:
    sources = {
        name: source | {"rows": [tuple(_REPAIRED.get(cell, cell) for cell in row) for row in source["rows"]]}
        for name, source in project["sources"].items()
    }
    return project | {"sources": sources}
