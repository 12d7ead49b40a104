"""No quote that a strict reader refuses passes the watch, however the text is cut into blocks."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pz_engine.base.csv_records import csv_records
from pz_engine.connectors.toolkit.csv_quotes import QuoteWatch
from pz_engine.testing.project_factory import ProjectFactory

texts = st.text(alphabet='a,"\n\r ', max_size=24)
cuts = st.lists(st.integers(0, 24), max_size=4)


def is_refused(text: str) -> bool:
    try:
        list(csv_records(io.StringIO(text, newline=""), ","))
    except csv.Error:
        return True
    return False


def is_doubtful(text: str, places: list[int]) -> bool:
    data, watch, start = text.encode(), QuoteWatch(","), 0
    for place in [*sorted(places), len(data)]:
        watch.see(data[start:place])
        start = max(start, place)
    watch.end()
    return watch.is_doubtful


@given(text=texts, places=cuts)
@example('"a"b\n', [2])
@example('""a\n', [1])
@example('a,"b"""c\n', [5])
@example('""""a', [])
def test_what_a_strict_reader_refuses_is_doubted(text: str, places: list[int]) -> None:
    """Unless the quote is never closed, which the reader behind it finds itself."""
    if is_refused(text) and text.count('"') % 2 == 0:
        assert is_doubtful(text, places), text


@given(
    rows=st.lists(st.lists(st.text(alphabet='ab,"\n ', max_size=5), min_size=2, max_size=3), max_size=5), places=cuts
)
def test_what_a_writer_writes_is_seldom_doubted(rows: list[list[str]], places: list[int]) -> None:
    """A doubt about a regular text takes two quotes behind a comma or a line end inside a field."""
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\n").writerows(rows)
    text = stream.getvalue()
    if is_doubtful(text, places):
        assert any(mark in field for row in rows for field in row for mark in ('"', "\n", ","))


@pytest.mark.parametrize("line", ['"a"b', '""abc', '"a"""b', 'a"b"'])
def test_tiers_refuse_the_same_quotes(factory: ProjectFactory, tmp_path: Path, line: str) -> None:
    """A batch reader would take them off and land another text."""
    del tmp_path
    factory.connections("files: { connector: localfiles }\n")
    factory.write("things.csv", f"id,name\n1,fine\n2,{line}\n")
    factory.pipeline("p", "SELECT * FROM {{ source('files', 'things', columns: { id: 'bigint', name: 'varchar' }) }}")
    answers = []
    for engine in ("", "engine: { force_universal: true }\n"):
        factory.write("project.yml", f'name: demo\nversion: "1"\n{engine}')
        outcome = factory.run()
        answers.append([result.error.message if result.error else result.rows for result in outcome.results])
    assert answers[0] == answers[1]


def test_quotes_in_regular_places_pass(factory: ProjectFactory) -> None:
    """Doubled ones, commas and line ends inside, and a text that only looks doubtful."""
    factory.connections("files: { connector: localfiles }\n")
    factory.write("things.csv", 'id,name\n1,"a ""b"", c"\n2,"x,""y"" z"\n3,""\n4,"two\nlines"\n')
    factory.pipeline("p", "SELECT * FROM {{ source('files', 'things', columns: { id: 'bigint', name: 'varchar' }) }}")
    factory.write("project.yml", 'name: demo\nversion: "1"\nengine: { force_universal: true }\n')
    outcome = factory.run()
    assert [result.rows for result in outcome.results] == [4, 4]
