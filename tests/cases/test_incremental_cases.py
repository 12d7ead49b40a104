"""Incremental reads meet ties, late rows, rows without a cursor value, windows and nothing new."""

from __future__ import annotations

import json

import duckdb
import pytest

from pz_engine import NodeStatus, PzValidationError
from pz_engine.testing.project_factory import ProjectFactory

PROJECT = 'name: demo\nversion: "1"\nengine: {{ force_universal: {universal} }}\n'


def project_with(factory: ProjectFactory, condition: str, *, universal: bool = False, sync: str = "") -> ProjectFactory:
    factory.write("project.yml", PROJECT.format(universal="true" if universal else "false"))
    factory.connections(
        f"""
        files:
          connector: localfiles
          root: in
          entities:
            events:
              read:
                path: events.csv
                columns: {{ id: int, seen_at: timestamp }}
{sync}
        out:
          connector: localfiles
          root: out
        """
    )
    factory.pipeline(
        "events",
        "INSERT INTO {{ sink('out', 'events', format: 'parquet', strategy: 'append', duplicates: 'accept') }}\n"
        f"SELECT id, seen_at FROM {{{{ source('files', 'events') }}}} {condition}",
    )
    return factory


def keep_in_a_table(factory: ProjectFactory) -> None:
    """Let the same source be a table of a DuckDB file, filled with what the csv holds."""
    connections = factory.directory / "connections.yml"
    text = connections.read_text().replace("connector: localfiles\n  root: in", "connector: duckdb\n  path: in.duckdb")
    connections.write_text(text.replace("        path: events.csv\n", ""))
    with duckdb.connect(str(factory.directory / "in.duckdb")) as connection:
        read = f"read_csv('{factory.directory}/in/events.csv', columns = {{id: 'int', seen_at: 'timestamp'}})"
        connection.execute(f"create or replace table events as from {read}")


def rows_of_load(factory: ProjectFactory, **options: object) -> int | None:
    outcome = factory.run(**options)  # type: ignore[arg-type]
    assert outcome.exit_code == 0, [r.error for r in outcome.results]
    return next(result.rows for result in outcome.results if result.name == "src_files__events")


def landed_ids(factory: ProjectFactory) -> list[int]:
    with duckdb.connect() as connection:
        found = connection.execute(f"select id from '{factory.directory}/out/events/*.parquet' order by id").fetchall()
    return [row[0] for row in found]


def watermark(factory: ProjectFactory) -> str | None:
    path = factory.directory / ".pz" / "state" / "watermarks.json"
    if not path.exists():
        return None
    return str(json.loads(path.read_text())["watermarks"]["files.events"]["value"])


FIRST = "id,seen_at\n1,2026-03-01 10:00:00\n2,2026-03-01 11:00:00\n"
SECOND = FIRST + "3,2026-03-01 10:30:00\n4,2026-03-01 11:00:00\n5,2026-03-01 12:00:00\n"
YAML = "                sync: { mode: incremental, cursor: seen_at }\n"


@pytest.mark.parametrize("universal", [False, True])
def test_yaml_incremental_reads_only_newer_rows(factory: ProjectFactory, *, universal: bool) -> None:
    """Exclusive floor on both tiers: ties and late rows stay behind, the second identical run lands nothing."""
    project = project_with(factory, "", universal=universal, sync=YAML)
    factory.write("in/events.csv", FIRST)
    assert rows_of_load(project) == 2
    factory.write("in/events.csv", SECOND)
    assert rows_of_load(project) == 1
    assert rows_of_load(project) == 0
    assert landed_ids(project) == [1, 2, 5]
    assert watermark(project) == "2026-03-01T12:00:00.000000"


@pytest.mark.parametrize("universal", [False, True])
def test_an_inclusive_sql_floor_reads_ties_again(factory: ProjectFactory, *, universal: bool) -> None:
    """`>=` sees the row that shares the stored value; the boundary row comes again."""
    project = project_with(factory, "WHERE seen_at >= {{ watermark('files', 'events') }}", universal=universal)
    factory.write("in/events.csv", FIRST)
    assert rows_of_load(project) == 2
    factory.write("in/events.csv", SECOND)
    assert rows_of_load(project) == 3
    assert landed_ids(project) == [1, 2, 2, 4, 5]


def test_a_lookback_reads_late_rows(factory: ProjectFactory) -> None:
    """`watermark() - interval` lowers the floor; the stored watermark is the maximum seen."""
    project = project_with(factory, "WHERE seen_at > {{ watermark('files', 'events') }} - INTERVAL 1 HOUR")
    factory.write("in/events.csv", FIRST)
    rows_of_load(project)
    factory.write("in/events.csv", SECOND)
    assert rows_of_load(project) == 4
    assert landed_ids(project) == [1, 2, 2, 3, 4, 5]
    assert watermark(project) == "2026-03-01T12:00:00.000000"


@pytest.mark.parametrize("reader", ["csv", "csv in batches", "table"])
def test_rows_without_a_cursor_value_are_read_once_and_counted(factory: ProjectFactory, reader: str) -> None:
    """The first load delivers them with a note, later loads do not; a delta of only such rows keeps the watermark."""
    project = project_with(factory, "", universal=reader == "csv in batches", sync=YAML)
    factory.write("in/events.csv", FIRST + "8,\n")
    if reader == "table":
        keep_in_a_table(factory)
    outcome = project.run()
    assert any("1 row(s) without a value" in note for note in outcome.notes)
    assert landed_ids(project) == [1, 2, 8]
    factory.write("in/events.csv", FIRST + "8,\n9,\n")
    if reader == "table":
        keep_in_a_table(factory)
    assert rows_of_load(project) == 0
    assert watermark(project) == "2026-03-01T11:00:00.000000"


def test_windows_advance_slice_by_slice_and_stop(factory: ProjectFactory) -> None:
    """`(lower, upper]` slices move even when empty, and the last one says it has caught up."""
    sync = (
        "                sync: { mode: incremental, cursor: seen_at, max_window: 1h, "
        'initial: "2026-03-01T09:00:00", until: "2026-03-01T11:30:00" }\n'
    )
    project = project_with(factory, "", sync=sync)
    factory.write("in/events.csv", FIRST + "8,\n")
    steps = []
    for _ in range(4):
        outcome = project.run()
        load = next(result for result in outcome.results if result.name == "src_files__events")
        steps.append((load.rows, watermark(project), load.caught_up))
    assert steps == [
        (2, "2026-03-01T10:00:00.000000", False),
        (1, "2026-03-01T11:00:00.000000", False),
        (0, "2026-03-01T11:30:00.000000", True),
        (0, "2026-03-01T11:30:00.000000", True),
    ]
    assert any("is caught up" in note for note in outcome.notes)


def test_a_failed_sink_keeps_the_watermark_and_a_full_refresh_reads_everything(factory: ProjectFactory) -> None:
    """No sink, no advance; `--full-refresh` ignores the stored value and stores the new one."""
    project = project_with(factory, "", sync=YAML)
    factory.write("in/events.csv", FIRST)
    factory.write("out", "not a folder")
    outcome = project.run()
    assert outcome.exit_code == 1
    assert watermark(project) is None
    assert "files.events" in outcome.watermarks_held
    (factory.directory / "out").unlink()
    assert rows_of_load(project) == 2
    assert rows_of_load(project, full_refresh=True) == 2
    assert watermark(project) == "2026-03-01T11:00:00.000000"


def test_a_stored_value_of_another_column_is_refused(factory: ProjectFactory) -> None:
    """`PZ0505`: comparing with another column's value would lose rows."""
    project = project_with(factory, "", sync=YAML)
    factory.write("in/events.csv", FIRST)
    rows_of_load(project)
    project_with(factory, "", sync=YAML.replace("seen_at", "id"))
    outcome = project.run()
    load = next(result for result in outcome.results if result.status is NodeStatus.FAILED)
    assert load.error is not None
    assert load.error.code == "PZ0505"
    assert "--full-refresh" in load.error.message


def merged(factory: ProjectFactory, condition: str) -> ProjectFactory:
    """The same source merged by id into a DuckDB table."""
    project = project_with(factory, condition)
    project.connections(
        (factory.directory / "connections.yml").read_text() + "mart: { connector: duckdb, path: m.duckdb }\n"
    )
    factory.pipeline(
        "events",
        "INSERT INTO {{ sink('mart', 'events', strategy: 'merge', keys: ['id']) }}\n"
        f"SELECT id, seen_at FROM {{{{ source('files', 'events') }}}} {condition}",
    )
    return project


def merged_ids(factory: ProjectFactory) -> list[int]:
    with duckdb.connect(str(factory.directory / "m.duckdb"), read_only=True) as connection:
        return [row[0] for row in connection.execute("select id from events order by id").fetchall()]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("WHERE seen_at >= {{ watermark('files', 'events') }}", [1, 2, 4, 5]),
        ("WHERE seen_at > {{ watermark('files', 'events') }} - INTERVAL 1 HOUR", [1, 2, 3, 4, 5]),
    ],
    ids=["ties", "late rows"],
)
@pytest.mark.parametrize("reader", ["csv", "table"])
def test_merging_what_is_read_again_gives_each_row_once(
    factory: ProjectFactory, condition: str, expected: list[int], reader: str
) -> None:
    """Ties and late rows arrive, run after run nothing is there twice, and state is one value, the greatest seen (C09, C10)."""
    project = merged(factory, condition)
    factory.write("in/events.csv", FIRST)
    if reader == "table":
        keep_in_a_table(factory)
    assert project.run().exit_code == 0
    factory.write("in/events.csv", SECOND)
    if reader == "table":
        keep_in_a_table(factory)
    for _ in range(3):
        assert project.run().exit_code == 0
        assert merged_ids(factory) == expected
        assert watermark(factory) == "2026-03-01T12:00:00.000000"
    entries = json.loads((factory.directory / ".pz/state/watermarks.json").read_text())["watermarks"]
    assert list(entries) == ["files.events"]


def test_appending_what_is_read_again_needs_consent(factory: ProjectFactory) -> None:
    """Without it the project is refused, naming the option, and no run begins (C09)."""
    project = project_with(factory, "WHERE seen_at > {{ watermark('files', 'events') }} - INTERVAL 1 HOUR")
    path = factory.directory / "pipelines/events.sql"
    factory.pipeline("events", path.read_text().replace(", duplicates: 'accept'", ""))
    factory.write("in/events.csv", FIRST)
    with pytest.raises(PzValidationError) as caught:
        project.run()
    assert [problem.code for problem in caught.value.errors] == ["PZ0214"]
    assert "duplicates" in str(caught.value)
    assert not (factory.directory / ".pz" / "runs").exists()


@pytest.mark.parametrize("universal", [False, True])
def test_rows_without_a_cursor_value_are_read_each_time_when_asked_for(
    factory: ProjectFactory, *, universal: bool
) -> None:
    """`OR ... IS NULL` beside the floor includes them on every load, and the watermark stays that of the others (C11)."""
    condition = "WHERE seen_at > {{ watermark('files', 'events') }} OR seen_at IS NULL"
    project = project_with(factory, condition, universal=universal)
    factory.write("in/events.csv", FIRST + "8,\n")
    assert project.run().exit_code == 0
    factory.write("in/events.csv", FIRST + "8,\n9,\n")
    assert project.run().exit_code == 0
    assert landed_ids(factory) == [1, 2, 8, 8, 9]
    assert watermark(factory) == "2026-03-01T11:00:00.000000"
