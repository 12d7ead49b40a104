"""Merges meet NULL keys, several versions of a key, zero rows and a locked file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from pz_engine import MergeKeyDuplicatesDetected, NodeStatus, RetryScheduled
from pz_engine.events.types import RunEvent
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ScriptedConnector

HOLD = """
import sys, time, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("create table if not exists held (x integer)")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def stock(factory: ProjectFactory) -> ProjectFactory:
    """A csv merged into a DuckDB table by region and product."""
    factory.connections(
        """
        files:
          connector: localfiles
          root: in
          entities:
            stock:
              read: { path: stock.csv, columns: { region: varchar, product: varchar, amount: int } }
        mart:
          connector: duckdb
          path: mart.duckdb
          retry: { max_attempts: 2, base_delay: 100ms }
        """
    )
    factory.pipeline(
        "stock",
        "INSERT INTO {{ sink('mart', 'stock', strategy: 'merge', keys: ['region', 'product']) }}\n"
        "SELECT * FROM {{ source('files', 'stock') }}",
    )
    return factory


def table(project: ProjectFactory, name: str = "stock") -> list[tuple[object, ...]]:
    with duckdb.connect(str(project.directory / "mart.duckdb"), read_only=True) as connection:
        return connection.execute(f"from {name} order by all").fetchall()


def test_null_in_a_merge_key_is_refused_before_the_table_is_touched(stock: ProjectFactory) -> None:
    """`PZ0521` with key columns and count, no value; what was there stays."""
    stock.write("in/stock.csv", "region,product,amount\nnorth,onion,5\n")
    assert stock.run().exit_code == 0
    stock.write("in/stock.csv", "region,product,amount\nnorth,onion,6\n,onion,9\n")
    for _ in range(2):
        outcome = stock.run()
        failed = next(result for result in outcome.results if result.status is NodeStatus.FAILED)
        assert failed.error is not None
        assert (failed.name, failed.error.code) == ("mart.stock", "PZ0521")
        assert "region, product" in failed.error.message
        assert "1 row(s)" in failed.error.message
        assert table(stock) == [("north", "onion", 5)]


@pytest.mark.parametrize("row", [",onion,9", "north,,9", ",,9"])
def test_null_in_a_merge_key_reaches_no_destination_of_the_universal_tier(stock: ProjectFactory, row: str) -> None:
    """Whichever part of the key is missing, no session is opened and nothing is written."""
    declared = (stock.directory / "connections.yml").read_text()
    universal = declared.replace("connector: duckdb\n  path: mart.duckdb", "connector: scripted")
    assert universal != declared
    stock.connections(universal)
    stock.write("in/stock.csv", f"region,product,amount\nnorth,leek,6\n{row}\n")
    with ScriptedConnector().installed() as connector:
        for _ in range(2):
            failed = next(result for result in stock.run().results if result.status is NodeStatus.FAILED)
            assert failed.error is not None
            assert (failed.name, failed.error.code) == ("mart.stock", "PZ0521")
            assert "1 row(s)" in failed.error.message
    assert connector.written == {}


def test_the_last_of_several_versions_survives_and_is_announced(stock: ProjectFactory) -> None:
    """First load and later ones keep the last staged row and publish groups and extra rows once."""
    text = "region,product,amount\nnorth,leek,1\nnorth,leek,2\nsouth,leek,7\nnorth,leek,3\n"
    stock.write("in/stock.csv", text)
    for _ in range(2):
        events: list[RunEvent] = []
        outcome = stock.run(events=events)
        assert outcome.exit_code == 0
        (found,) = [event for event in events if isinstance(event, MergeKeyDuplicatesDetected)]
        assert (found.output, found.keys, found.duplicate_groups, found.extra_rows) == (
            "stock",
            ("region", "product"),
            1,
            2,
        )
        assert events.index(found) + 1 == next(
            i
            for i, e in enumerate(events)
            if e.name == "node_completed" and e.result.name == "mart.stock"  # type: ignore[attr-defined]
        )
        assert table(stock) == [("north", "leek", 3), ("south", "leek", 7)]


def test_merging_zero_rows_changes_nothing(stock: ProjectFactory) -> None:
    """An empty delta is a success with 0 rows."""
    stock.write("in/stock.csv", "region,product,amount\nnorth,onion,5\n")
    stock.run()
    stock.write("in/stock.csv", "region,product,amount\n")
    outcome = stock.run()
    assert outcome.exit_code == 0
    assert {result.rows for result in outcome.results} == {0}
    assert table(stock) == [("north", "onion", 5)]


def test_a_locked_file_is_tried_again_and_named_with_its_holder(stock: ProjectFactory, tmp_path: Path) -> None:
    """A lock that stays fails the sink after its retries, naming path and process; a lock that goes does not."""
    stock.write("in/stock.csv", "region,product,amount\nnorth,onion,5\n")
    script = tmp_path / "hold.py"
    script.write_text(HOLD)

    def hold(seconds: float) -> subprocess.Popen[str]:
        holder = subprocess.Popen(
            [sys.executable, str(script), str(stock.directory / "mart.duckdb"), str(seconds)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        return holder

    with hold(30) as holder:
        events: list[RunEvent] = []
        outcome = stock.run(events=events)
        failed = next(result for result in outcome.results if result.status is NodeStatus.FAILED)
        assert failed.error is not None
        assert "mart.duckdb" in failed.error.message
        assert str(holder.pid) in failed.error.message
        assert failed.stats.is_transient
        assert [event.attempt for event in events if isinstance(event, RetryScheduled)] == [2]
        holder.kill()
    stock.connections((stock.directory / "connections.yml").read_text().replace("max_attempts: 2", "max_attempts: 30"))
    with hold(0.5):
        assert stock.run().exit_code == 0
    assert table(stock) == [("north", "onion", 5)]


def test_every_handle_is_closed_when_a_run_ends(stock: ProjectFactory) -> None:
    """Another process can open the destination and the staging file right after success and after failure."""
    stock.write("in/stock.csv", "region,product,amount\nnorth,onion,5\n")
    for text in ("region,product,amount\nnorth,onion,5\n", "region,product,amount\n,onion,5\n"):
        stock.write("in/stock.csv", text)
        outcome = stock.run()
        staging = stock.directory / ".pz" / "runs" / outcome.run_id / "staging.duckdb"
        for path in (stock.directory / "mart.duckdb", staging):
            code = f"import duckdb; duckdb.connect({str(path)!r}).close()"
            assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("column", ["k", "a key"])
def test_key_that_the_table_compares_by_a_collation_is_refused(factory: ProjectFactory, column: str) -> None:
    """Staged keys are told apart byte by byte; a table that takes two of them for one would lose a row in silence."""
    with duckdb.connect(str(factory.directory / "wh.duckdb")) as connection:
        connection.execute(f'create table t ("{column}" varchar collate nocase, v int)')
        connection.execute("insert into t values ('a', 0)")
    factory.connections("wh: { connector: duckdb, path: wh.duckdb }\n")
    factory.pipeline(
        "p",
        f"INSERT INTO {{{{ sink('wh', 't', strategy: 'merge', keys: ['{column}']) }}}}\n"
        f"SELECT * FROM (VALUES ('a', 1), ('A', 2)) x(\"{column}\", v)",
    )
    outcome = factory.run()
    assert outcome.exit_code == 1
    (message,) = [result.error.message for result in outcome.results if result.error is not None]
    assert f"compares its key '{column}' by the collation nocase" in message
    with duckdb.connect(str(factory.directory / "wh.duckdb")) as connection:
        assert connection.execute("from t").fetchall() == [("a", 0)]
