"""One DuckDB serves the steps of an invocation one after the other, and no step sees anything of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from pz_engine.duck.instance import DuckInstance
from pz_engine.duck.session import DuckSession, DuckSettings
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.testing.project_factory import ProjectFactory

SETTINGS = ("threads", "memory_limit", "temp_directory")


def settings_of(session: DuckSession) -> list[object]:
    with session.cursor() as cursor:
        return [cursor.scalar(f"select current_setting('{name}')") for name in SETTINGS]


def test_settings_and_tables_end_with_their_session(tmp_path: Path) -> None:
    """What one session set is undone for the next, and its tables are gone."""
    with DuckSession.open(None, DuckSettings()) as fresh:
        defaults = settings_of(fresh)
    with DuckInstance() as instance:
        asked = DuckSettings(threads=1, memory_limit="100MB", temp_directory=tmp_path / "spill")
        with DuckSession.open(None, asked, instance) as session:
            assert settings_of(session) == [1, "95.3 MiB", str(tmp_path / "spill")]
            with session.cursor() as cursor:
                cursor.execute("create table staging.t as select 1 as a")
        with DuckSession.open(tmp_path / "run.duckdb", DuckSettings(), instance) as session:
            assert settings_of(session) == defaults
            with session.cursor() as cursor, pytest.raises(DuckStatementError):
                cursor.execute("select * from staging.t")


def test_file_is_free_when_its_session_is_closed(tmp_path: Path) -> None:
    """Another process may open the database while the instance lives on."""
    import subprocess
    import sys

    with DuckInstance() as instance:
        with (
            DuckSession.open(tmp_path / "run.duckdb", DuckSettings(), instance) as session,
            session.cursor() as cursor,
        ):
            cursor.execute("create table staging.t as select 42 as a")
        script = (
            "import duckdb, sys; print(duckdb.connect(sys.argv[1]).execute('select a from staging.t').fetchone()[0])"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "run.duckdb")], capture_output=True, text=True, check=False
        )
        assert done.stdout == "42\n", done.stderr


def test_run_uses_every_core_after_its_sql_was_looked_at_with_one(factory: ProjectFactory) -> None:
    """Binding is single-threaded; the run itself is not held to that."""
    factory.connections("out: { connector: duckdb, path: out.duckdb }\n")
    factory.pipeline(
        "p", "INSERT INTO {{ sink('out', 't') }}\nSELECT current_setting('threads')::int AS threads FROM range(1)"
    )
    assert factory.run().exit_code == 0
    import duckdb

    with duckdb.connect() as plain, duckdb.connect(str(factory.directory / "out.duckdb")) as written:
        expected = plain.execute("select current_setting('threads')").fetchone()
        assert written.execute("select threads from t").fetchone() == expected
