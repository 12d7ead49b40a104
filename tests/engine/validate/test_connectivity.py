"""Tier 5: probes, destinations, and connectors that hang, raise or talk too much."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from importlib import metadata

import foreign_connectors
import pytest

from pz_engine.connectors import discovery, registry
from pz_engine.execute.setup_ledger import SetupLedger
from pz_engine.validate.connectivity import ConnectivityReport, check_connectivity

BRIEF = timedelta(milliseconds=200)
HOSTS = {
    name: f"foreign_connectors:{name.capitalize()}"
    for name in ("quiet", "hanging", "slow", "raising", "leaking", "unopened", "forbidding")
}


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Announce the connectors of this test as an installed distribution does."""
    entries = [metadata.EntryPoint(name, value, discovery.ENTRY_POINT_GROUP) for name, value in HOSTS.items()]
    monkeypatch.setattr(discovery.metadata, "entry_points", lambda group: entries)
    monkeypatch.setattr(registry, "_loaded", {})
    foreign_connectors.RELEASED.clear()
    yield
    foreign_connectors.RELEASED.set()


def connect(project, limit: timedelta = timedelta(seconds=20)) -> ConnectivityReport:
    return check_connectivity(project.compile(), lambda: SetupLedger(allow_extension_download=False), limit=limit)


def errors(project, limit: timedelta = timedelta(seconds=20)) -> list[tuple[str, str, str | None, str | None]]:
    return [(e.code, e.message, e.place, e.hint) for e in connect(project, limit).report.errors]


def test_every_connection_says_what_it_found(project):
    """A probe's text is a note, read or not, and so is what a connector says while it is asked, once."""
    project.write(
        "connections.yml",
        "b: {connector: localfiles}\na: {connector: quiet, entities: {x: {read: {columns: {id: bigint}}}, y: {read: }}}\n",
    )
    found = connect(project)
    assert found.report.errors == ()
    assert found.report.notes == (
        "connection 'a': server 15.2",
        "a: host key is 'abc'",
        "connection 'b': folder 'demo' exists",
    )


def test_connections_are_asked_at_the_same_time_and_only_so_long(project):
    """Five that hang cost the time of one, the others are checked, and each is one error on its own line."""
    project.write(
        "connections.yml", "".join(f"h{n}:\n  connector: hanging\n" for n in range(5)) + "q: {connector: quiet}\n"
    )
    started = time.monotonic()
    found = connect(project, BRIEF)
    assert time.monotonic() - started < 5 * BRIEF.total_seconds()
    assert [(e.code, e.message, e.place) for e in found.report.errors] == [
        ("PZ0330", f"connection 'h{n}': no answer within 200ms", f"connections.yml:{1 + 2 * n}") for n in range(5)
    ]
    assert found.report.notes == ("connection 'q': server 15.2",)


def test_an_entity_that_hangs_does_not_stop_the_others(project):
    """Each entity has its own time and its own error, at the place that declares it."""
    project.write("connections.yml", "s:\n  connector: slow\n  entities:\n    stuck: {read: }\n    well: {read: }\n")
    found = connect(project, BRIEF)
    assert [(e.code, e.message, e.place) for e in found.report.errors] == [
        ("PZ0330", "'s.stuck', read: no answer within 200ms", "connections.yml:4")
    ]
    assert list(found.schemas) == ["s.well"]
    assert found.unanswered == {"s.stuck"}


def test_a_failed_probe_ends_the_questions_to_that_connection(project):
    """One error says it; the entities are not asked one by one."""
    project.write(
        "connections.yml", "l: {connector: leaking, password: hunter2, entities: {x: {read: }, y: {read: }}}\n"
    )
    assert errors(project) == [
        (
            "PZ0330",
            "connection 'l': cannot reach db as ada:***@host",
            "connections.yml:1",
            "try again; if it stays, check the connection's settings and the network",
        )
    ]


def test_text_of_a_foreign_exception_is_redacted(project):
    """Of an exception that should not have left the connector, no value, number or quoted text is shown."""
    project.write("connections.yml", "r: {connector: raising, password: hunter2}\n")
    ((code, message, _, hint),) = errors(project)
    assert (code, hint) == ("PZ0330", "correct the connection's settings")
    assert message.startswith("connection 'r': the connector failed unexpectedly (ValueError: login failed for ")
    assert not any(text in message for text in ("ada", "hunter2", "7"))


def test_an_entity_that_is_not_there_is_one_error(project):
    """The connector's own message and next step are shown, and the others are read."""
    project.write("connections.yml", "q:\n  connector: quiet\n  entities:\n    gone: {read: }\n    here: {read: }\n")
    assert errors(project) == [
        ("PZ0330", "'q.gone', read: table 'gone' does not exist", "connections.yml:4", "correct the name")
    ]


def test_a_connection_that_cannot_be_opened_is_one_error(project):
    """However many entities it has."""
    project.write("connections.yml", "u: {connector: unopened, entities: {x: {read: }, y: {read: }}}\n")
    assert errors(project) == [
        ("PZ0330", "connection 'u', read: driver missing", "connections.yml:1", "pip install driver")
    ]


def test_a_destination_that_may_not_be_written_is_an_error(project):
    """It stands where the output is declared; an output nobody writes is not asked."""
    project.write(
        "connections.yml", "f:\n  connector: forbidding\n  entities:\n    idle: {write: {strategy: append}}\n"
    )
    project.sql("p", "insert into {{ sink('f', 'out', strategy: 'append') }} select 1 as a")
    assert errors(project) == [
        (
            "PZ0330",
            "'f.out', write: may not insert into 'out'",
            "pipelines/p.sql:1",
            "correct the connection's settings",
        )
    ]


def test_arrow_schemas_are_compared_as_they_land_and_as_they_are(project):
    """A zoned timestamp is a timestamp, 16 bits are a smallint, and an unsigned number is a ubigint or a decimal."""
    fits = "{id: bigint, small: smallint, big: ubigint, at: timestamp, note: varchar}"
    lands = "{small: int, big: 'decimal(38,0)', at: timestamptz}"
    drifts = "{id: int, NOTE: bigint, nothing: int, clock: varchar}"
    project.write(
        "connections.yml",
        "q:\n  connector: quiet\n  entities:\n"
        f"    fits: {{read: {{columns: {fits}}}}}\n"
        f"    lands: {{read: {{columns: {lands}}}}}\n"
        f"    clocked: {{read: {{columns: {drifts}}}}}\n",
    )
    assert [(code, message, hint) for code, message, _, hint in errors(project)] == [
        ("PZ0331", "'q.clocked': column 'NOTE' is declared as bigint, the source has VARCHAR",
         "declare 'NOTE' as varchar, or correct the source"),
        ("PZ0331", "'q.clocked': column 'clock' is declared as varchar, the source has TIME",
         "declare 'clock' as time, or correct the source"),
        ("PZ0331", "'q.clocked': column 'id' is declared as int, the source has BIGINT",
         "declare 'id' as bigint, or correct the source"),
        ("PZ0331", "'q.clocked': the source has no column 'nothing'",
         "its columns are: id, small, big, at, note, clock"),
    ]  # fmt: skip


def test_a_column_that_cannot_land_without_a_contract_is_an_error(project):
    """The fetch of an undeclared entity gives what a run would land, or why it cannot."""
    project.write("connections.yml", "q: {connector: quiet, entities: {clocked: {read: }}}\n")
    ((code, message, _, _),) = errors(project)
    assert (code, message) == (
        "PZ0330",
        "'q.clocked', read: column 'clock' has the type time64[us], which cannot be landed",
    )
