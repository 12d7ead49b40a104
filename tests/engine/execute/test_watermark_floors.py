"""A bound taken from SQL never hides a row that the pipeline's own condition would take, however large the numbers are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pz_engine import NodeStatus
from pz_engine.testing.project_factory import ProjectFactory

EDGES = (0, 1, 2**31 - 1, 2**53 - 1, 2**53, 2**53 + 1, 1_999_999_999_999_999_999, 2**63 - 1)
whole = st.one_of(*(st.integers(max(edge - 4, -(2**63)), min(edge + 4, 2**63 - 1)) for edge in EDGES))
either = st.one_of(whole, whole.map(lambda number: -number))
scaled = st.one_of(st.integers(-(10**6), 10**6), st.integers(10**29 - 4, 10**29 + 4))
days = st.dates(min_value=date(1960, 1, 1), max_value=date(2060, 1, 1))
moments = st.integers(-(10**15), 3 * 10**15)
"""Microseconds since 1970."""


KINDS = {
    "bigint": either.map(str),
    "decimal(38,9)": scaled.map(lambda number: f"{number // 10**3}.{abs(number) % 10**3:03}000000"),
    "date": days.map(lambda day: f"date '{day}'"),
    "timestamp": moments.map(lambda moment: f"make_timestamp({moment})"),
}
BOUNDS = {
    "bigint": ("{w}", "{w} - 3", "{w} - 0.5", "cast({w} as double)", "cast({w} as hugeint) + 1", "{w} * 1.0"),
    "decimal(38,9)": ("{w}", "cast({w} as double)", "cast({w} as float)"),
    "date": ("{w}", "{w} - interval 36 hour", "cast({w} as timestamp_ns) + interval 1 second", "cast({w} as timestamptz)"),
    "timestamp": ("{w}", "{w} - interval 1 day", "cast({w} as date)", "cast({w} as timestamp_s)", "cast({w} as timestamptz)"),
}  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, list[str], list[str], str, str]:
    """Draw a cursor type, the values of two loads, and the condition between the second one and the watermark."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    first = draw(st.lists(KINDS[kind], min_size=1, max_size=4))
    second = draw(st.lists(KINDS[kind], min_size=1, max_size=6))
    return kind, first, second, draw(st.sampled_from((">", ">="))), draw(st.sampled_from(BOUNDS[kind]))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New directories, one after the other."""
    base = tmp_path_factory.mktemp("floors")
    return (base / str(number) for number in itertools.count())


def build(directory: Path, kind: str, condition: str) -> ProjectFactory:
    factory = ProjectFactory(directory)
    factory.connections("db: { connector: duckdb, path: in.duckdb }\nout: { connector: duckdb, path: out.duckdb }\n")
    factory.pipeline(
        "p",
        "insert into {{ sink('out', 't', strategy: 'merge', keys: ['id']) }}\n"
        f"select * from {{{{ source('db', 't', columns: {{ id: 'bigint', c: '{kind}' }}) }}}} where {condition}\n",
    )
    return factory


def insert(directory: Path, kind: str, first_id: int, values: list[str]) -> None:
    with duckdb.connect(str(directory / "in.duckdb")) as connection:
        connection.execute(f"create table if not exists t (id bigint, c {kind})")
        for number, value in enumerate(values):
            connection.execute(f"insert into t values ({first_id + number}, {value})")


def landed(directory: Path) -> set[int]:
    """Return what the last run delivered, and forget it."""
    with duckdb.connect(str(directory / "out.duckdb")) as connection:
        found = connection.execute("delete from t returning id").fetchall()
    return {row[0] for row in found}


def expected(directory: Path, highest: str, condition: str) -> set[int]:
    with duckdb.connect(str(directory / "in.duckdb")) as connection:
        connection.execute("set TimeZone = 'UTC'")
        return {
            row[0] for row in connection.execute(f"select id from t where {condition.format(w=highest)}").fetchall()
        }


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=histories())
def test_second_run_takes_what_its_condition_takes(
    history: tuple[str, list[str], list[str], str, str], places: Iterator[Path]
) -> None:
    """For every cursor type and for bounds of another type than the cursor's."""
    kind, first, second, comparison, bound = history
    condition = f"c {comparison} {bound}"
    directory = next(places)
    watermark = "{{ watermark('db', 't') }}"
    factory = build(directory, kind, condition.format(w=watermark))
    insert(directory, kind, 0, first)
    assert factory.run().exit_code == 0
    assert landed(directory) == set(range(len(first)))
    insert(directory, kind, 100, second)
    with duckdb.connect(str(directory / "in.duckdb")) as connection:
        connection.execute("create table w as select max(c) as w from t where id < 100")
    outcome = factory.run()
    try:
        wanted = expected(directory, "(select w from w)", condition)
    except duckdb.Error:
        assert outcome.exit_code == 1
        return
    assert outcome.exit_code == 0, [result.error for result in outcome.results]
    assert landed(directory) == wanted


@pytest.mark.parametrize(
    ("kind", "value"),
    [("date", "date '12000-01-01'"), ("date", "date '0044-03-15 (BC)'"), ("timestamp", "timestamp 'infinity'")],
)
def test_value_that_no_watermark_can_hold_is_announced(tmp_path: Path, kind: str, value: str) -> None:
    """Nothing is stored, everything is read again, and each run says so."""
    factory = build(tmp_path, kind, "c > {{ watermark('db', 't') }}")
    insert(tmp_path, kind, 0, [value])
    for _ in range(2):
        outcome = factory.run()
        assert all(result.status is NodeStatus.SUCCESS for result in outcome.results)
        assert any("db.t: the highest value of cursor column 'c' cannot be stored" in note for note in outcome.notes)
        assert landed(tmp_path) == {0}
