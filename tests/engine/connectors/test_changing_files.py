"""A file that somebody writes while it is read: what was read may be of both contents, so none of it is kept."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pz_engine import RunOutcome
from pz_engine.testing.project_factory import ProjectFactory

ROWS = 60_000


@contextmanager
def touched_all_the_time(path: Path) -> Iterator[None]:
    """Change the file's time again and again, as writing it would."""
    is_over = threading.Event()

    def touch() -> None:
        moment = 10**18
        while not is_over.is_set():
            moment += 1_000_000
            os.utime(path, ns=(moment, moment))

    toucher = threading.Thread(target=touch)
    toucher.start()
    try:
        yield
    finally:
        is_over.set()
        toucher.join()


ENGINES = {"fused": "", "staged": "engine: { fusion: 'off' }\n", "universal": "engine: { force_universal: true }\n"}


@pytest.mark.parametrize("tier", ENGINES)
def test_file_that_changes_while_it_is_read_delivers_nothing(factory: ProjectFactory, tier: str) -> None:
    """The load fails and names the file; the destination keeps what it had, and the next run works."""
    factory.write("project.yml", f'name: demo\nversion: "1"\n{ENGINES[tier]}')
    factory.connections(
        "files: { connector: localfiles, retry: { max_attempts: 1 } }\nlake: { connector: localfiles, root: out }\n"
    )
    factory.pipeline(
        "p",
        "INSERT INTO {{ sink('lake', 't', format: 'csv', strategy: 'replace') }}\n"
        "SELECT * FROM {{ source('files', 'things', columns: { id: 'bigint', name: 'varchar' }) }}",
    )
    path = factory.write("things.csv", "id,name\n1,old\n")
    assert factory.run().exit_code == 0
    landed = factory.directory / "out" / "t" / "t.csv"
    before = landed.read_text()
    factory.write("things.csv", "id,name\n" + "".join(f"{number},{'x' * 40}\n" for number in range(ROWS)))
    with touched_all_the_time(path):
        outcome = factory.run()
    assert outcome.exit_code == 1
    assert "file 'things.csv' changed while it was read" in failure(outcome)
    assert landed.read_text() == before
    assert sorted(each.name for each in landed.parent.iterdir()) == ["t.csv"]
    assert factory.run().exit_code == 0
    assert landed.read_text().count("\n") == ROWS + 1


def failure(outcome: RunOutcome) -> str:
    (message,) = [result.error.message for result in outcome.results if result.error is not None]
    return message
