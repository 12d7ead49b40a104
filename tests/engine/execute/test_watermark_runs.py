"""Watermarks through whole runs: every cursor type, sources that give too much, empty slices, rows without a value."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from pz_engine import NodeStatus, Selection
from pz_engine.connectors import Capability
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall, ScriptedConnector
from pz_engine.testing.state_server import StateServer

UTC = timezone.utc
DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = "api.things"

CURSORS: dict[str, tuple[pa.DataType, list[Any], str, Any]] = {
    "int": (pa.int32(), [1, 2], "2", 3),
    "bigint": (pa.int64(), [-(2**62), 2**62], str(2**62), 2**62 + 1),
    "decimal(20,4)": (pa.decimal128(20, 4), [Decimal("1.5000"), Decimal("12.5000")], "12.5000", Decimal("12.5001")),
    "date": (pa.date32(), [date(2026, 2, 27), date(2026, 2, 28)], "2026-02-28", date(2026, 3, 1)),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [DAY, DAY + timedelta(microseconds=1)],
        "2026-03-01T12:00:00.000001",
        DAY + timedelta(microseconds=2),
    ),
}
"""Contract type: Arrow type, values of the first load, the stored text, a later value."""


@pytest.fixture
def source() -> Iterator[ScriptedConnector]:
    """A connector that can be asked for windows, and ignores every bound."""
    connector = ScriptedConnector()
    connector.capabilities |= Capability.BOUNDED_WINDOW
    with connector.installed():
        yield connector


def give(source: ScriptedConnector, kind: pa.DataType, values: list[Any]) -> None:
    """Give rows with these cursor values in every read, whatever the bounds."""
    source.schema = pa.schema([("id", pa.int64()), ("seen", kind)])
    rows = [{"id": number, "seen": value} for number, value in enumerate(values)]
    source.on_read = lambda call: [pa.RecordBatch.from_pylist(rows, schema=source.schema)]


def build(factory: ProjectFactory, sync: str, contract: str = "", *, strategy: str = "merge") -> ProjectFactory:
    columns = f"columns: {{ id: bigint, seen: '{contract}' }}, " if contract else ""
    factory.connections(
        f"api: {{ connector: scripted, entities: {{ things: {{ read: {{ {columns}sync: {{ mode: incremental, cursor: seen{sync} }} }} }} }} }}\n"
        "store: { connector: scripted }\n"
    )
    factory.pipeline(
        "copy",
        f"INSERT INTO {{{{ sink('store', 'copy', strategy: '{strategy}', keys: ['id']) }}}}\nSELECT * FROM {{{{ source('api', 'things') }}}}",
    )
    return factory


def stored(project: ProjectFactory, key: str = KEY) -> str | None:
    path = project.directory / ".pz" / "state" / "watermarks.json"
    if not path.exists():
        return None
    entry = json.loads(path.read_text())["watermarks"].get(key)
    return None if entry is None else str(entry["value"])


def load_rows(outcome: Any) -> int:
    return int(next(result.rows for result in outcome.results if result.name == "src_api__things"))


@pytest.mark.parametrize("with_contract", [True, False])
@pytest.mark.parametrize("kind", list(CURSORS))
def test_every_cursor_type_goes_round(
    factory: ProjectFactory, source: ScriptedConnector, kind: str, with_contract: bool
) -> None:
    """Stored canonically, handed to the connector, and used to trim what it gives again."""
    arrow, first, text, later = CURSORS[kind]
    project = build(factory, "", kind if with_contract else "")
    give(source, arrow, first)
    assert load_rows(project.run()) == 2
    assert stored(project) == text
    give(source, arrow, [*first, later])
    assert load_rows(project.run()) == 1
    assert source.reads[-1].watermark == text
    assert load_rows(project.run()) == 0
    assert load_rows(project.run(full_refresh=True)) == 3


def test_type_that_cannot_be_a_cursor_fails_its_load(factory: ProjectFactory, source: ScriptedConnector) -> None:
    """Texts, doubles and booleans have no order that state can keep."""
    project = build(factory, "")
    for kind, values in ((pa.string(), ["a"]), (pa.float64(), [1.5]), (pa.bool_(), [True])):
        give(source, kind, values)
        failed = next(result for result in project.run().results if result.status is NodeStatus.FAILED)
        assert failed.error is not None
        assert failed.error.code == "PZ0505"
    assert stored(project) is None


def test_windows_are_exact_with_a_source_that_gives_everything(
    factory: ProjectFactory, source: ScriptedConnector
) -> None:
    """Rows outside the slice never land and never move the watermark; an empty slice moves it to its end; caught up captures nothing."""
    project = build(factory, ", max_window: 10, initial: 0, until: 40", "bigint")
    give(source, pa.int64(), [5, 10, 11, 35, 50, None])
    outcomes = [project.run() for _ in range(7)]
    assert [load_rows(outcome) for outcome in outcomes] == [3, 1, 0, 0, 1, 0, 0]
    caught_up = [outcome.results[0].caught_up for outcome in outcomes]
    assert caught_up == [False, False, False, False, True, True, True]
    assert stored(project) == "40"
    captured = [outcome.results[0].watermark for outcome in outcomes]
    assert [candidate and candidate.value for candidate in captured] == ["10", "11", "21", "31", "35", "40", None]
    assert [(spec.watermark, spec.upper_bound, spec.null_cursor) for spec in source.reads] == [
        ("0", "10", True), ("10", "20", False), ("11", "21", False), ("21", "31", False), ("31", "40", False),
        ("35", "40", False), ("40", "40", False),
    ]  # fmt: skip
    assert any("is caught up" in note for note in outcomes[-1].notes)


def test_rows_without_a_value_are_read_once_on_both_tiers(factory: ProjectFactory, source: ScriptedConnector) -> None:
    """They belong to the first load and to a full refresh; a note counts them; a delta of nothing else keeps the value."""
    project = build(factory, "", "bigint")
    give(source, pa.int64(), [1, None])
    first = project.run()
    assert load_rows(first) == 2
    assert any("1 row(s) without a value" in note for note in first.notes)
    give(source, pa.int64(), [None, None])
    second = project.run()
    assert (second.exit_code, load_rows(second), stored(project)) == (0, 0, "1")
    assert load_rows(project.run(full_refresh=True)) == 2

    native = ProjectFactory(factory.directory.parent / "native")
    native.write("in/a.csv", "id,seen\n1,1\n2,\n")
    native.connections(
        """
        files:
          connector: localfiles
          root: in
          entities: { a: { read: { path: a.csv, columns: { id: int, seen: bigint }, sync: { mode: incremental, cursor: seen } } } }
        """
    )
    native.pipeline("p", "SELECT * FROM {{ source('files', 'a') }}")
    assert [native.run().results[0].rows for _ in range(2)] == [2, 0]


def test_selection_that_omits_a_sink_holds_the_watermark(factory: ProjectFactory, source: ScriptedConnector) -> None:
    """Only a run in which every sink below committed moves it; `pz test` never does."""
    project = build(factory, "", "bigint")
    project.pipeline(
        "second",
        "INSERT INTO {{ sink('store', 'second', strategy: 'merge', keys: ['id']) }}\nSELECT * FROM {{ ref('copy') }}",
    )
    project.sidecar("copy", "checks:\n  - not_null: [id]\n")
    give(source, pa.int64(), [1])
    outcome = project.run(selection=Selection(expression="store.copy"))
    assert outcome.exit_code == 0
    assert stored(project) is None
    assert outcome.watermarks_held == {KEY: "sink 'store.second' was not part of this run"}
    assert project.run(mode="test").exit_code == 0
    assert stored(project) is None
    assert project.run().exit_code == 0
    assert stored(project) == "1"


@pytest.mark.parametrize("backend", ["local", "http"])
def test_full_refresh_over_an_existing_entry(factory: ProjectFactory, source: ScriptedConnector, backend: str) -> None:
    """The entry's version is known although its value is not used, so the new value replaces it, a smaller one too."""
    project = build(factory, "", "bigint")
    with StateServer() as server:
        options = {"state_url": server.url} if backend == "http" else {}
        give(source, pa.int64(), [1, 9])
        assert project.run(**options).exit_code == 0
        give(source, pa.int64(), [1, 4])
        held = project.run(**options)
        assert load_rows(held) == 0
        outcome = project.run(full_refresh=True, **options)
        assert not any("PZ05" in note for note in outcome.notes), outcome.notes
        kept = stored(project) if backend == "local" else json.loads(server.payload("watermarks", KEY) or "{}")["value"]
    assert kept == "4"


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_zoned_cursor_is_the_same_instant_on_every_host(factory: ProjectFactory, zone: str) -> None:
    """A zoned column of a DuckDB file is stored in UTC whatever the host's zone, and no row is read twice or lost."""
    with duckdb.connect(str(factory.directory / "in.duckdb")) as connection:
        connection.execute("create table t as select 1 as id, timestamptz '2026-03-29 02:30:00.000001+02' as seen")
    factory.connections(
        """
        db: { connector: duckdb, path: in.duckdb, entities: { t: { read: { sync: { mode: incremental, cursor: seen } } } } }
        out: { connector: localfiles, root: out }
        """
    )
    factory.pipeline("p", "SELECT id, seen FROM {{ source('db', 't') }}")
    command = [sys.executable, "-m", "pz_engine", "run", "--all", "--project", str(factory.directory)]
    environment = {**os.environ, "TZ": zone}
    counts = []
    for addition in (None, "2026-03-29 02:30:00.000002+02"):
        if addition is not None:
            with duckdb.connect(str(factory.directory / "in.duckdb")) as connection:
                connection.execute(f"insert into t values (2, timestamptz '{addition}')")
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)
        assert done.returncode == 0, done.stderr
        counts.append(next(line.split()[2] for line in done.stdout.splitlines() if line.startswith("ok src_db__t ")))
    assert counts == ["1", "1"]
    assert stored(factory, "db.t") == "2026-03-29T00:30:00.000002"


def test_bound_is_pushed_only_where_the_connector_honours_it(
    factory: ProjectFactory, source: ScriptedConnector
) -> None:
    """An inclusive floor is not narrowed for a connector that only knows exclusive ones; the rows are the same."""
    factory.connections(
        "api: { connector: scripted, entities: { things: { read: { columns: { id: bigint, seen: bigint } } } } }\nstore: { connector: scripted }\n"
    )
    factory.pipeline(
        "copy",
        "INSERT INTO {{ sink('store', 'copy', strategy: 'merge', keys: ['id']) }}\n"
        "SELECT * FROM {{ source('api', 'things') }} WHERE seen >= {{ watermark('api', 'things') }} - 1",
    )
    seen: list[ReadCall] = []
    give(source, pa.int64(), [1, 2, 3])
    inner = source.on_read

    def remember(call: ReadCall) -> Any:
        seen.append(call)
        return inner(call)

    source.on_read = remember
    assert factory.run().exit_code == 0
    outcome = factory.run()
    assert next(result.rows for result in outcome.results if result.name == "copy") == 2
    assert [(call.spec.watermark, call.spec.lower_inclusive) for call in seen] == [(None, False), (None, False)]
    assert any("inclusive" in note for note in outcome.notes)
    source.capabilities |= Capability.INCLUSIVE_BOUND
    assert factory.run().exit_code == 0
    assert (seen[-1].spec.watermark, seen[-1].spec.lower_inclusive) == ("2", True)
