"""What a run says about data that landed and may not be what was meant: long ids, day or month first, drift, versions of a key."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from pz_engine import (
    AmbiguousDateInferenceDetected,
    LossyIntegerInferenceDetected,
    MergeKeyDuplicatesDetected,
    NodeCompleted,
    NodeStarted,
    RunOutcome,
    SourceDriftDetected,
)
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.events.types import RunEvent
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ScriptedConnector, WriteCall

PROJECT = 'name: demo\nversion: "1"\non_source_drift: {policy}\n'
HEAD = "sale_id,sold_on,paid_on,booked_at\n"
AMBIGUOUS = HEAD + "1,03/04/2026,01/02/2026,03/04/2026 09:15:00\n1,11/12/2025,,\n2,01/02/2025,,\n"
DECIDED = HEAD + "1,25/04/2026,13/02/2026,23/04/2026 09:15:00\n2,11/12/2025,,\n"
WARNINGS = (
    LossyIntegerInferenceDetected,
    AmbiguousDateInferenceDetected,
    SourceDriftDetected,
    MergeKeyDuplicatesDetected,
)


@pytest.fixture
def store() -> Iterator[ScriptedConnector]:
    """A destination that does what a test says."""
    with ScriptedConnector().installed() as connector:
        yield connector


@pytest.fixture
def project(factory: ProjectFactory, store: ScriptedConnector) -> ProjectFactory:
    """One entity without a contract, merged by its first column."""
    factory.write("project.yml", PROJECT.format(policy="ignore"))
    declare(factory, "path: sales.csv")
    merge(factory, "sale_id")
    return factory


def declare(project: ProjectFactory, read: str) -> None:
    project.connections(
        f"files: {{ connector: localfiles, root: in, entities: {{ sales: {{ read: {{ {read} }} }} }} }}\n"
        "store: { connector: scripted, retry: { max_attempts: 3, base_delay: 1ms, max_delay: 1ms } }\n"
    )


def merge(project: ProjectFactory, key: str) -> None:
    project.pipeline(
        "copy",
        f"INSERT INTO {{{{ sink('store', 'sales', strategy: 'merge', keys: ['{key}']) }}}}\n"
        "SELECT * FROM {{ source('files', 'sales') }}",
    )


def run(project: ProjectFactory) -> tuple[RunOutcome, list[RunEvent]]:
    events: list[RunEvent] = []
    return project.run(events=events), events


def order_of(events: list[RunEvent], name: str) -> list[str]:
    """Return the names of one node's events and of the warnings that stand directly before its completion."""
    end = next(n for n, e in enumerate(events) if isinstance(e, NodeCompleted) and e.result.name == name)
    warned: list[str] = []
    for event in reversed(events[:end]):
        if not isinstance(event, WARNINGS):
            break
        warned.insert(0, event.name)
    started = [e.name for e in events[:end] if isinstance(e, NodeStarted) and e.node_name == name]
    return [*started, *warned, events[end].name]


def test_long_ids_that_had_to_become_doubles_are_said_and_the_load_succeeds(project: ProjectFactory) -> None:
    """Columns are named, once; no value is (C02)."""
    project.write("in/sales.json", '{"ref": 123456789012345678901234, "n": 1}\n{"ref": 1, "n": 2}\n')
    declare(project, "path: sales.json, format: json")
    merge(project, "n")
    outcome, events = run(project)
    assert outcome.exit_code == 0
    (found,) = [event for event in events if isinstance(event, LossyIntegerInferenceDetected)]
    assert (found.connection, found.entity, found.columns) == ("files", "sales", ("ref",))
    assert order_of(events, "src_files__sales") == ["node_started", found.name, "node_completed"]
    assert "123456789" not in str(events)


@pytest.mark.parametrize("format_", ["csv", "parquet", "json", "table"])
def test_twenty_digit_ids_arrive_digit_for_digit_and_nothing_is_said(factory: ProjectFactory, format_: str) -> None:
    """In every file format and in a table, from a file without a contract (C02)."""
    refs = [12345678901234567891, 12345678901234567892, 12345678901234567893]
    factory.write("in/refs.csv", "order_ref,city\n" + "".join(f"{ref},x\n" for ref in refs))
    out = "duckdb, path: out.duckdb" if format_ == "table" else "localfiles, root: out"
    factory.connections(f"files: {{ connector: localfiles, root: in }}\nout: {{ connector: {out} }}\n")
    options = "" if format_ == "table" else f"format: '{format_}', "
    factory.pipeline(
        "copy",
        f"INSERT INTO {{{{ sink('out', 'refs', {options}strategy: 'replace') }}}}\n"
        "SELECT * FROM {{ source('files', 'refs') }}",
    )
    outcome, events = run(factory)
    assert outcome.exit_code == 0
    assert not [event for event in events if isinstance(event, WARNINGS)]
    with duckdb.connect() as connection:
        connection.execute(f"attach if not exists '{factory.directory}/out.duckdb' as made")
        path = factory.directory / "out" / "refs" / f"refs.{format_}"
        read = {
            "csv": f"read_csv('{path}', all_varchar = true)",
            "json": f"read_json('{path}', columns = {{order_ref: 'varchar'}})",
            "parquet": f"'{path}'",
            "table": "made.refs",
        }[format_]
        found = connection.execute(f"select order_ref::hugeint from {read} order by 1").fetchall()
    assert [row[0] for row in found] == refs


def test_dates_in_an_open_order_are_said_once_per_family(project: ProjectFactory) -> None:
    """Dates first, then timestamps, each with its columns and format; the load succeeds (C03)."""
    project.write("in/sales.csv", AMBIGUOUS)
    outcome, events = run(project)
    assert outcome.exit_code == 0
    found = [(e.columns, e.format) for e in events if isinstance(e, AmbiguousDateInferenceDetected)]
    assert found == [(("sold_on", "paid_on"), "%d/%m/%Y"), (("booked_at",), "%d/%m/%Y %H:%M:%S")]


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (DECIDED, ""),
        (AMBIGUOUS, ", columns: { sale_id: int, sold_on: varchar, paid_on: varchar, booked_at: varchar }"),
    ],
    ids=["a day above twelve", "declared text"],
)
def test_dates_in_a_decided_order_are_not(project: ProjectFactory, content: str, columns: str) -> None:
    """One day above twelve in each column settles it, and so does a contract (C03)."""
    project.write("in/sales.csv", content)
    declare(project, f"path: sales.csv{columns}")
    outcome, events = run(project)
    assert outcome.exit_code == 0
    assert not [event for event in events if isinstance(event, AmbiguousDateInferenceDetected)]


@pytest.mark.parametrize("policy", ["warn", "fail"])
def test_warnings_stand_in_order_directly_before_the_completion(project: ProjectFactory, policy: str) -> None:
    """Long ids, dates, timestamps, drift; also when drift fails the load; the stream says each of them once."""
    project.write("project.yml", PROJECT.format(policy=policy))
    project.write("in/sales.csv", HEAD + "1,25/04/2026,13/02/2026,23/04/2026 09:15:00\n")
    assert run(project)[0].exit_code == 0
    project.write(
        "in/sales.csv",
        "sale_id,ref,sold_on,paid_on,booked_at\n"
        "1,9007199254740994.0,03/04/2026,01/02/2026,03/04/2026 09:15:00\n1,2.0,11/12/2025,,\n2,3.0,01/02/2025,,\n",
    )
    outcome, events = run(project)
    assert outcome.exit_code == (0 if policy == "warn" else 1)
    assert order_of(events, "src_files__sales") == [
        "node_started",
        "lossy_integer_inference_detected",
        "ambiguous_date_inference_detected",
        "ambiguous_date_inference_detected",
        "source_drift_detected",
        "node_completed",
    ]
    merged = 1 if policy == "warn" else 0
    assert sum(isinstance(event, WARNINGS) for event in events) == 4 + merged


def test_versions_of_a_key_are_said_once_however_often_the_write_is_tried(
    project: ProjectFactory, store: ScriptedConnector
) -> None:
    """After the retries and directly before the completion, with groups and extra rows; also when the write fails for good."""
    project.write("in/sales.csv", AMBIGUOUS)
    tries: list[str] = []

    def refuse(call: WriteCall) -> None:
        if call.step == "commit":
            tries.append(call.step)
            if len(tries) < 3 or fails_for_good:
                raise PzConnectorError("busy", is_transient=True)

    store.on_write = refuse
    for fails_for_good in (False, True):
        tries.clear()
        outcome, events = run(project)
        assert len(tries) == 3
        assert outcome.exit_code == int(fails_for_good)
        (found,) = [event for event in events if isinstance(event, MergeKeyDuplicatesDetected)]
        assert (found.output, found.keys, found.duplicate_groups, found.extra_rows) == ("sales", ("sale_id",), 1, 1)
        assert order_of(events, "store.sales") == ["node_started", found.name, "node_completed"]


def test_key_that_the_pipeline_makes_unique_is_not_said(project: ProjectFactory) -> None:
    """The newest version chosen in SQL is the one that arrives, without a warning (C13)."""
    project.write("in/sales.csv", "account,changed_at,balance\nA1,3,120\nA1,1,100\nA1,7,140\nB7,2,5\n")
    project.pipeline(
        "copy",
        "INSERT INTO {{ sink('store', 'sales', strategy: 'merge', keys: ['account']) }}\n"
        "SELECT account, arg_max(balance, changed_at) AS balance FROM {{ source('files', 'sales') }} GROUP BY account",
    )
    outcome, events = run(project)
    assert outcome.exit_code == 0
    assert not [event for event in events if isinstance(event, WARNINGS)]
