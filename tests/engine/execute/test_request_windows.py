"""Slices that a request gives: exact on every path, blind for state, refused where they cannot be cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import duckdb
import pytest

from pz_engine import NodeStatus, PzValidationError, RunOutcome
from pz_engine.connectors import Capability
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall, ScriptedConnector

TIMES = {
    1: "2026-01-01 23:59:59.999998",
    2: "2026-01-01 23:59:59.999999",  # exactly on the lower end: belongs to the day before
    3: "2026-01-02 00:00:00",
    4: "2026-01-02 23:59:59.999999",  # exactly on the upper end
    5: "2026-01-03 00:00:00",
    6: "",
}
DAYS = {1: "2025-12-31", 2: "2026-01-01", 3: "2026-01-02", 4: "2026-01-03", 5: "2026-01-04", 6: ""}
WINDOW = ("2026-01-01T23:59:59.999999", "2026-01-02T23:59:59.999999")
KEY = "erp.things"
SYNC = {
    "unwindowed": ", sync: { mode: incremental, cursor: seen }",
    "windowed": ", sync: { mode: incremental, cursor: seen, max_window: 1d, initial: '2025-01-01', until: now }",
    "sql": "",
}


def build(factory: ProjectFactory, kind: str, rows: dict[int, str], sync: str, *, universal: bool = False) -> None:
    """Read a csv file incrementally and merge it into a DuckDB file, with a full read fused beside it."""
    split = ", files_per_partition: 1" if universal else ""
    factory.write("in/things.csv", "id,seen\n" + "".join(f"{number},{seen}\n" for number, seen in rows.items()))
    factory.write("in/names.csv", "id,name\n" + "".join(f"{number},n{number}\n" for number in rows))
    factory.connections(
        f"""
        erp:
          connector: localfiles
          root: in
          entities:
            things:
              read: {{ path: things.csv, columns: {{ id: bigint, seen: {kind} }}{split}{SYNC[sync]} }}
        mart: {{ connector: duckdb, path: mart.duckdb }}
        """
    )
    condition = "WHERE t.seen > {{ watermark('erp', 'things') }} - INTERVAL 1 DAY" if sync == "sql" else ""
    names = "{{ source('erp', 'names', path: 'names.csv', columns: { id: 'bigint', name: 'varchar' }) }}"
    factory.pipeline(
        "copy",
        "INSERT INTO {{ sink('mart', 'things', strategy: 'merge', keys: ['id']) }}\n"
        f"SELECT t.id, n.name FROM {{{{ source('erp', 'things') }}}} AS t JOIN {names} AS n USING (id) {condition}",
    )


def landed(factory: ProjectFactory) -> list[int]:
    with duckdb.connect(str(factory.directory / "mart.duckdb"), read_only=True) as connection:
        return [row[0] for row in connection.execute("select id from things order by id").fetchall()]


def load_of(outcome: RunOutcome) -> Any:
    return next(result for result in outcome.results if result.name == "src_erp__things")


def state(factory: ProjectFactory) -> dict[str, bytes]:
    folder = factory.directory / ".pz" / "state"
    return {path.name: path.read_bytes() for path in folder.glob("*.json")} if folder.exists() else {}


@pytest.mark.parametrize("universal", [False, True])
@pytest.mark.parametrize("sync", list(SYNC))
def test_rows_on_both_ends_and_without_a_cursor(factory: ProjectFactory, sync: str, universal: bool) -> None:
    """The lower end stays out, the upper end is in, nulls are counted and left out, and no state file changes a byte."""
    build(factory, "timestamp", TIMES, sync, universal=universal)
    if sync != "windowed":
        factory.run()
        (factory.directory / "mart.duckdb").unlink()
    before = state(factory)
    outcome = factory.run(windows={KEY: WINDOW}, state_mode="bypass")
    assert outcome.exit_code == 0, outcome.results
    assert landed(factory) == [3, 4]
    load = load_of(outcome)
    assert (load.rows, load.watermark, load.caught_up, load.stats.window) == (2, None, None, WINDOW)
    assert [note for note in outcome.notes if "1 row(s) without a value in cursor column 'seen' belong to no" in note]
    assert state(factory) == before
    assert bool(before) is (sync != "windowed")


@pytest.mark.parametrize("universal", [False, True])
def test_dates_have_the_same_ends(factory: ProjectFactory, universal: bool) -> None:
    """A slice of two days, its lower end exclusive; each part's rows are counted."""
    build(factory, "date", DAYS, "unwindowed", universal=universal)
    window = ("2026-01-01", "2026-01-03")
    outcome = factory.run(windows={KEY: window}, window_cuts={KEY: ("2026-01-02", "2026-01-03")}, state_mode="bypass")
    assert landed(factory) == [3, 4]
    assert load_of(outcome).stats.part_rows == (1, 1)


def test_adjoining_slices_give_every_row_once(factory: ProjectFactory) -> None:
    """What one slice ends with the next one does not begin with; together they are the whole."""
    build(factory, "timestamp", TIMES, "unwindowed")
    ends = ["2025-12-31T23:59:59.999999", *WINDOW, "2026-01-03T23:59:59.999999"]
    counts = [load_of(factory.run(windows={KEY: pair}, state_mode="bypass")).rows for pair in pairwise(ends)]
    assert counts == [2, 2, 1]
    assert landed(factory) == [1, 2, 3, 4, 5]


def test_empty_parts_count_zero(factory: ProjectFactory) -> None:
    """A part without rows is measured, and is zero."""
    build(factory, "timestamp", TIMES, "unwindowed")
    cuts = ("2026-01-02T23:59:59.999999", "2026-01-03T23:59:59.999999", "2026-01-04T23:59:59.999999")
    outcome = factory.run(windows={KEY: (WINDOW[0], cuts[-1])}, window_cuts={KEY: cuts}, state_mode="bypass")
    assert load_of(outcome).stats.part_rows == (2, 1, 0)


def test_a_slice_that_uses_state_advances_only_where_it_joins(factory: ProjectFactory) -> None:
    """Storing the end of a later slice would skip what lies between; the next run still reads it."""
    build(factory, "timestamp", TIMES, "unwindowed")
    outcome = factory.run(windows={KEY: WINDOW})
    assert [note for note in outcome.notes if "does not begin at or below it" in note]
    assert state(factory) == {}
    factory.run()
    factory.write("in/things.csv", "id,seen\n7,2026-01-03 06:00:00\n8,2026-01-05 00:00:00\n9,2026-01-07 00:00:00\n")
    factory.run(windows={KEY: ("2026-01-04T00:00:00", "2026-01-06T00:00:00")})
    assert b"2026-01-03T00:00:00.000000" in state(factory)["watermarks.json"]
    factory.run(windows={KEY: ("2026-01-02T00:00:00", "2026-01-06T00:00:00")})
    assert b"2026-01-05T00:00:00.000000" in state(factory)["watermarks.json"]


def test_a_retry_reuses_the_same_slice_only(factory: ProjectFactory) -> None:
    """Rows of one slice never stand for another one that begins alike, nor for a read of everything."""
    build(factory, "timestamp", TIMES, "unwindowed")
    mart = factory.directory / "mart.duckdb"

    def fail() -> str:
        mart.write_text("this is no database")
        failed = factory.run(windows={KEY: WINDOW}, state_mode="bypass")
        assert failed.exit_code == 1
        mart.unlink()
        return failed.run_id

    same = factory.run(windows={KEY: WINDOW}, state_mode="bypass", retry_from=fail())
    assert (load_of(same).provenance, load_of(same).stats.window, landed(factory)) == ("reused", WINDOW, [3, 4])
    longer = (WINDOW[0], "2026-01-03T23:59:59.999999")
    again = factory.run(windows={KEY: longer}, state_mode="bypass", retry_from=fail())
    assert (load_of(again).provenance, landed(factory)) == (None, [3, 4, 5])
    everything = factory.run(retry_from=fail())
    assert (load_of(everything).provenance, landed(factory)) == (None, [1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize(
    ("windows", "code"),
    [
        ({"erp.thing": WINDOW}, "PZ0210"),
        ({"erp.names": WINDOW}, "PZ0212"),
        ({KEY: ("yesterday", WINDOW[1])}, "PZ0213"),
        ({KEY: (WINDOW[1], WINDOW[1])}, "PZ0213"),
        ({KEY: (WINDOW[1], WINDOW[0])}, "PZ0213"),
    ],
)
def test_windows_that_cannot_be_cut_leave_no_run(
    factory: ProjectFactory, windows: dict[str, tuple[str, str]], code: str
) -> None:
    """Refused before a run directory exists; the message says what to give and repeats no bound."""
    build(factory, "timestamp", TIMES, "unwindowed")
    with pytest.raises(PzValidationError) as caught:
        factory.run(windows=windows, state_mode="bypass")
    assert [problem.code for problem in caught.value.errors] == [code]
    assert all(problem.hint and "23:59:59.999999Z" not in problem.message for problem in caught.value.errors)
    assert not (factory.directory / ".pz" / "runs").exists()


@pytest.mark.parametrize(
    "cuts",
    [(WINDOW[0], WINDOW[1]), ("2026-01-02T00:00:00",), ("2026-01-02T05:00:00", "2026-01-02T04:00:00", WINDOW[1])],
)
def test_parts_must_ascend_to_the_end(factory: ProjectFactory, cuts: tuple[str, ...]) -> None:
    """Otherwise their counts would not add up to the slice."""
    build(factory, "timestamp", TIMES, "unwindowed")
    with pytest.raises(PzValidationError) as caught:
        factory.run(windows={KEY: WINDOW}, window_cuts={KEY: cuts}, state_mode="bypass")
    assert [problem.code for problem in caught.value.errors] == ["PZ0213"]


def test_a_source_that_gives_too_much_is_trimmed_and_one_without_windows_refused(factory: ProjectFactory) -> None:
    """The bounds are handed over exactly, and what the connector gives beyond them never lands."""
    source = ScriptedConnector()
    factory.connections(
        "api: { connector: scripted, entities: { things: { read: { columns: { id: bigint, name: varchar }, "
        "sync: { mode: incremental, cursor: id } } } } }\nstore: { connector: scripted }\n"
    )
    factory.pipeline(
        "copy",
        "INSERT INTO {{ sink('store', 'copy', strategy: 'merge', keys: ['id']) }}\nSELECT * FROM {{ source('api', 'things') }}",
    )
    seen: list[ReadCall] = []

    def read(call: ReadCall) -> Any:
        import pyarrow as pa

        seen.append(call)
        return [
            pa.RecordBatch.from_pylist(
                [{"id": n, "name": "x"} for n in (1, 10, 11, 20, 21, None)], schema=source.schema
            )
        ]

    source.on_read = read
    with source.installed():
        with pytest.raises(PzValidationError) as caught:
            factory.run(windows={"api.things": ("10", "20")}, state_mode="bypass")
        assert [problem.code for problem in caught.value.errors] == ["PZ0313"]
        source.capabilities |= Capability.BOUNDED_WINDOW
        outcome = factory.run(windows={"api.things": ("10", "20")}, state_mode="bypass")
    assert all(result.status is NodeStatus.SUCCESS for result in outcome.results)
    assert [row["id"] for row in source.written["copy"]] == [11, 20]
    assert (seen[0].spec.watermark, seen[0].spec.upper_bound) == ("10", "20")


def test_a_source_that_takes_the_bounds_itself_gives_the_same(factory: ProjectFactory) -> None:
    """A DuckDB table is cut inside DuckDB's own scan."""
    build(factory, "timestamp", TIMES, "unwindowed")
    with duckdb.connect(str(factory.directory / "erp.duckdb")) as connection:
        source = str(factory.directory / "in" / "things.csv")
        connection.execute("create table things as select id, seen::timestamp as seen from read_csv(?)", [source])
    factory.write(
        "connections.yml",
        "erp: { connector: duckdb, path: erp.duckdb, entities: { things: { read: { columns: { id: bigint, seen: timestamp }, "
        "sync: { mode: incremental, cursor: seen } } } } }\nmart: { connector: duckdb, path: mart.duckdb }\n",
    )
    factory.pipeline(
        "copy",
        "INSERT INTO {{ sink('mart', 'things', strategy: 'merge', keys: ['id']) }}\nSELECT id FROM {{ source('erp', 'things') }}",
    )
    outcome = factory.run(windows={KEY: WINDOW}, state_mode="bypass")
    assert (load_of(outcome).rows, landed(factory)) == (2, [3, 4])
    assert [note for note in outcome.notes if "1 row(s) without a value in cursor column 'seen'" in note]


def test_state_that_is_bypassed_is_not_even_asked(factory: ProjectFactory) -> None:
    """A stored position inside the slice would be moved by any other run; this one neither reads nor writes it."""
    rows = {number: TIMES[number] for number in (1, 2, 3)}
    build(factory, "timestamp", rows, "unwindowed")
    factory.run()
    before = state(factory)
    asked: list[str] = []

    class Watched:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            def call(*given: Any) -> Any:
                asked.append(name)
                return getattr(self._inner, name)(*given)

            return call

    factory.write("in/things.csv", "id,seen\n4,2026-01-02 12:00:00\n")
    outcome = factory.run(windows={KEY: WINDOW}, state_mode="bypass", wrap_state_store=Watched)
    assert load_of(outcome).rows == 1
    assert asked == []
    assert not [note for note in outcome.notes if "watermark" in note]
    assert state(factory) == before
    factory.run(windows={KEY: WINDOW}, wrap_state_store=Watched)
    assert {"get", "set"} <= set(asked)
    assert state(factory) != before


def test_a_filter_on_the_watermark_lets_the_whole_slice_pass(factory: ProjectFactory) -> None:
    """A stored position above the slice would filter it away in the pipeline; a given slice is filtered as on a first run."""
    build(factory, "timestamp", TIMES | {5: "2026-02-01 00:00:00"}, "sql")
    factory.run()
    (factory.directory / "mart.duckdb").unlink()
    factory.run(windows={KEY: WINDOW})
    assert landed(factory) == [3, 4]
