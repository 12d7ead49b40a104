"""Bad input ends in a clear failed node, nothing half-written, and the other branches finish."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from pz_engine import NodeResult, NodeStatus, RunOutcome
from pz_engine.testing.project_factory import ProjectFactory


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """A good flow and a flow to be broken."""
    factory.write("in/good.csv", "id\n1\n2\n")
    factory.write("in/bad.csv", "id,name\n1,a\n2,b\n")
    factory.connections(
        """
        files:
          connector: localfiles
          root: in
          entities:
            good: { read: { path: good.csv, columns: { id: int } } }
            bad: { read: { path: bad.csv, columns: { id: int, name: varchar } } }
        out: { connector: localfiles, root: out }
        elsewhere: { connector: localfiles, root: elsewhere }
        """
    )
    factory.pipeline(
        "good",
        "INSERT INTO {{ sink('out', 'good', format: 'csv', strategy: 'replace') }}\nSELECT * FROM {{ source('files', 'good') }}",
    )
    factory.pipeline(
        "bad",
        "INSERT INTO {{ sink('elsewhere', 'bad', format: 'parquet', strategy: 'replace') }}\n"
        "SELECT * FROM {{ source('files', 'bad') }}",
    )
    return factory


def failure(project: ProjectFactory, outcome: RunOutcome) -> NodeResult:
    assert outcome.exit_code == 1
    (failed,) = [result for result in outcome.results if result.status is NodeStatus.FAILED]
    assert failed.error is not None
    assert next(r for r in outcome.results if r.name == "out.good").status is NodeStatus.SUCCESS
    with duckdb.connect() as connection:
        assert connection.execute(f"select count(*) from '{project.directory}/out/good/good.csv'").fetchone() == (2,)
    return failed


def no_files_in(directory: Path) -> bool:
    return not [path for path in directory.glob("**/*") if path.is_file()]


@pytest.mark.parametrize("fusion", ["on", "off"])
@pytest.mark.parametrize(
    ("content", "fragments"),
    [
        (None, ("bad.csv", "no file")),
        ("", ("bad.csv", "is empty")),
        ("id,name\n1,a\n2,b,c\n3,d\n", ("bad.csv", "line 3", "expected 2", "found 3")),
        ("id,name\n1,a\n2\n", ("bad.csv", "line 3", "expected 2", "found 1")),
        ("id,name\n1,a\nsecret-value,b\n", ("bad.csv", "line 3", "'id'", "INTEGER")),
        ("number,name\n1,a\n", ("'id'", "number")),
        ('id,name\n1,"a\n', ("bad.csv",)),
    ],
    ids=["missing", "empty", "long row", "short row", "wrong value", "missing column", "open quote"],
)
def test_a_broken_file_fails_its_load(
    project: ProjectFactory, content: str | None, fragments: tuple[str, ...], fusion: str
) -> None:
    """The load says what is wrong and where, never a value; a mended file loads on the second run."""
    project.write("project.yml", f'name: demo\nversion: "1"\nengine: {{ fusion: {fusion} }}\n')
    path = project.directory / "in" / "bad.csv"
    path.unlink()
    if content is not None:
        path.write_text(content)
    if content == "number,name\n1,a\n":
        from pz_engine import PzValidationError

        with pytest.raises(PzValidationError) as caught:
            project.run()
        (problem,) = caught.value.errors
        assert problem.code == "PZ0353"
        assert all(text in f"{problem.message} {problem.hint}" for text in fragments)
    else:
        failed = failure(project, project.run())
        assert failed.name == "src_files__bad"
        assert failed.error is not None
        for text in fragments:
            assert text in failed.error.message
        assert "secret-value" not in failed.error.message
    assert no_files_in(project.directory / "elsewhere")
    path.write_text("id,name\n1,a\n")
    assert project.run().exit_code == 0


@pytest.fixture
def tiny_disk(project: ProjectFactory) -> Iterator[Path]:
    """A file system of 64 KiB under the second output."""
    yield from mounted(project.directory / "elsewhere", "size=64k")


@pytest.fixture
def read_only_disk(project: ProjectFactory) -> Iterator[Path]:
    """A file system nobody may write, whoever runs the test."""
    yield from mounted(project.directory / "elsewhere", "ro")


def mounted(directory: Path, options: str) -> Iterator[Path]:
    directory.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(directory)], check=False, capture_output=True
    )
    if done.returncode != 0:
        pytest.skip("mounting a file system is not allowed here")
    yield directory
    subprocess.run(["umount", str(directory)], check=True)


@pytest.mark.parametrize("universal", [False, True])
def test_a_full_disk_fails_the_sink(project: ProjectFactory, tiny_disk: Path, *, universal: bool) -> None:
    """The sink fails saying so and leaves no file, not even a temporary one."""
    project.write("project.yml", f'name: demo\nversion: "1"\nengine: {{ force_universal: {str(universal).lower()} }}\n')
    with duckdb.connect() as connection:
        connection.execute(
            f"copy (select i as id, md5(cast(i as varchar)) as name from range(50000) t(i)) "
            f"to '{project.directory}/in/bad.csv' (header)"
        )
    failed = failure(project, project.run())
    assert failed.name == "elsewhere.bad"
    assert failed.error is not None
    assert "space" in failed.error.message.lower()
    assert no_files_in(tiny_disk)


def test_a_read_only_directory_fails_the_sink(project: ProjectFactory, read_only_disk: Path) -> None:
    """The sink fails naming the directory's state."""
    failed = failure(project, project.run())
    assert failed.name == "elsewhere.bad"
    assert failed.error is not None
    assert "read-only" in failed.error.message.lower()


def test_a_disk_too_full_for_staging_starts_nothing(project: ProjectFactory) -> None:
    """Where the run's own database does not fit, the run ends before any node and says that space is missing."""
    (project.directory / ".pz").mkdir()
    disk = mounted(project.directory / ".pz" / "runs", "size=8k")
    next(disk)
    try:
        called = subprocess.run(
            [sys.executable, "-m", "pz_engine", "run", "--all", "--project", str(project.directory)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert called.returncode == 3
        assert "PZ0532" in called.stderr
        assert "Traceback" not in called.stderr
    finally:
        next(disk, None)
    assert [result.name for result in project.run().results]


def test_database_that_is_none_has_a_next_step(project: ProjectFactory) -> None:
    """The file is named, and what to do about it."""
    project.write("a.duckdb", "no database " * 1000)
    connections = (project.directory / "connections.yml").read_text(encoding="utf-8")
    project.connections(f"{connections}\ndb: {{ connector: duckdb, path: a.duckdb }}\n")
    project.pipeline("bad", "SELECT * FROM {{ source('db', 't') }}")
    error = failure(project, project.run()).error
    assert error is not None
    assert error.code == "PZ0311"
    assert "a.duckdb" in error.message
    assert "next step: correct 'path' of the connection" in error.message
