"""The flights example, end to end; every number was computed with plain DuckDB SQL over the CSV files."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

from pz_engine import RunOutcome, RunRequest, RunStatus, Selection, run_project

EXAMPLE = Path(__file__).parents[2] / "example_project"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A fresh copy of the example."""
    target = tmp_path / "flights"
    ignored = shutil.ignore_patterns(".pz", "output", "*.duckdb", "__pycache__")
    shutil.copytree(EXAMPLE, target, ignore=ignored)
    return target


def run(project: Path) -> RunOutcome:
    outcome = run_project(RunRequest(project, selection=Selection(everything=True)))
    assert outcome.status is RunStatus.SUCCESS, [r for r in outcome.results if r.error]
    return outcome


def rows(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(sql).fetchall()


def test_marts_hold_the_numbers_of_the_files(example: Path) -> None:
    """Counts, delays, weather, planes and summaries equal what plain SQL over the CSV files gives."""
    outcome = run(example)
    lake = example / "output"
    delays = f"'{lake / 'flight_delays' / 'flight_delays.parquet'}'"
    assert rows(
        "select count(*), count(*) filter (is_cancelled), count(*) filter (is_late), sum(dep_delay), sum(arr_delay), "
        f"sum(distance) from {delays}"
    ) == [(51955, 1782, 10052, 522052, 294348, 52164314)]
    assert rows(f"select count(seats), sum(seats) from {delays}") == [(43142, 5876592)]
    assert rows(
        f"select count(wind_mph), round(sum(wind_mph), 3), count(temp_f), count(destination) from {delays}"
    ) == [(51874, 624772.271, 51874, 50667)]
    assert rows(f"select max(time_hour) = timestamp '2013-03-01 04:00:00' from {delays}") == [(True,)]
    carriers = f"'{lake / 'carrier_months' / 'carrier_months.parquet'}'"
    assert rows(f"select count(*), sum(flights) from {carriers}") == [(31, 51955)]
    assert rows(
        "select month(flight_month), carrier, flights, cancelled, late, delay_minutes, avg_delay "
        f"from {carriers} where carrier in ('UA', 'OO') order by all"
    ) == [(1, "OO", 1, 0, 1, 67, 67.0), (1, "UA", 4637, 32, 770, 38342, 8.33), (2, "UA", 4346, 180, 705, 32125, 7.71)]
    csv = f"'{lake / 'carrier_months_csv' / 'carrier_months_csv.csv'}'"
    assert rows(f"select count(*) from (select * from {carriers} except select * from {csv})") == [(0,)]
    routes = f"'{lake / 'route_months' / 'route_months.parquet'}'"
    assert rows(f"select count(*) from {routes}") == [(371,)]
    assert rows(
        f"select origin, dest, flights, miles, avg_arrival_delay from {routes} where month(flight_month) = 1 "
        "order by flights desc limit 2"
    ) == [("JFK", "LAX", 937, 2319075, -6.4), ("LGA", "ATL", 878, 669036, 3.03)]
    checks = [result for result in outcome.results if result.kind.value == "Check"]
    assert len(checks) == 9
    assert {result.rows for result in checks} == {0}


def test_the_feed_lands_only_new_flights(example: Path, tmp_path: Path) -> None:
    """January first, then February arrives, then nothing: the warehouse holds every flight once."""
    february = example / "data" / "flights_2013_02.csv"
    held_back = shutil.move(february, tmp_path / "later.csv")
    loaded = []
    for arrival in (None, held_back, None):
        if arrival is not None:
            shutil.move(arrival, february)
        outcome = run_project(RunRequest(example, selection=Selection(names=("warehouse.flights",))))
        assert outcome.exit_code == 0, outcome.results
        results = {result.name: result for result in outcome.results}
        loaded.append((results["src_feed__flights"].rows, results["warehouse.flights"].rows))
    assert loaded == [(27004, 27004), (24951, 24951), (0, 0)]
    with duckdb.connect(str(example / "warehouse.duckdb"), read_only=True) as warehouse:
        found = warehouse.execute(
            "select count(*), count(distinct (time_hour, carrier, flight, origin)), sum(dep_delay) from flights"
        ).fetchall()
    assert found == [(51955, 51955, 522052)]


def test_the_history_is_read_window_by_window(example: Path) -> None:
    """Five windows of two weeks hold every hour of every airport once, no group cut in two."""
    passes = []
    while not passes or passes[-1][1] is not True:
        outcome = run_project(RunRequest(example, selection=Selection(names=("history.hourly_departures",))))
        assert outcome.exit_code == 0, outcome.results
        results = {result.name: result for result in outcome.results}
        load = results["src_feed__departures"]
        passes.append((load.rows, load.caught_up))
        assert len(passes) <= 5
    assert [caught_up for _, caught_up in passes] == [False, False, False, False, True]
    assert sum(moved for moved, _ in passes if moved is not None) == 51955
    with duckdb.connect(str(example / "history.duckdb"), read_only=True) as history:
        found = history.execute(
            "select count(*), count(distinct (time_hour, origin)), sum(flights), sum(cancelled) from hourly_departures"
        ).fetchall()
    assert found == [(3126, 3126, 51955, 1782)]


def test_a_lost_airline_fails_the_row_count_of_the_mart(example: Path) -> None:
    """One variable leaves an airline out; outside of Dagster the outputs are written all the same."""
    everything = Selection(everything=True)
    outcome = run_project(RunRequest(example, selection=everything, vars={"without_airline": "UA"}))
    failed = [result.name for result in outcome.results if result.error is not None]
    assert failed == ["check_flight_delays_row_count"]
    assert {result.name: result.rows for result in outcome.results}["lake.flight_delays"] == 42972


def test_a_second_run_changes_nothing_in_the_reports(example: Path) -> None:
    """Replacing outputs gives the same content again, and no file is added."""
    run(example)
    files = sorted(p.relative_to(example) for p in (example / "output").rglob("*"))
    run(example)
    assert sorted(p.relative_to(example) for p in (example / "output").rglob("*")) == files
