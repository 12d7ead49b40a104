"""connections.yml: connections, entities, both sides, variables."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pz_engine.model.policies import OnDelete, RetryDeclaration, Strategy, SyncMode


def entity(side, body):
    return f"c:\n  connector: localfiles\n  entities:\n    e:\n      {side}:\n        {body}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c: 5\n", [("PZ0101", 1)]),
        ("c: {}\n", [("PZ0101", 1)]),
        ("c:\n  connector:\n", [("PZ0101", 2)]),
        ("outputs: {}\n", [("PZ0347", 1)]),
        ("01_x: {connector: localfiles}\n", [("PZ0136", 1)]),
        ("a__b: {connector: localfiles}\n", [("PZ0136", 1)]),
        ("c:\n  connector: x\n  entities: [a]\n", [("PZ0101", 3)]),
        ("c:\n  connector: x\n  max_concurrency: 0\n", [("PZ0122", 3)]),
        ("c:\n  connector: x\n  max_concurrency:\n", [("PZ0122", 3)]),
        ("c:\n  connector: x\n  rate_limit:\n", [("PZ0318", 3)]),
        ("c:\n  connector: x\n  rate_limit: {burst: 2}\n", [("PZ0318", 3)]),
        ("c:\n  connector: x\n  rate_limit: {requests_per_minute: 5, per: 1}\n", [("PZ0318", 3)]),
        ("c:\n  connector: x\n  retry: 3\n", [("PZ0121", 3)]),
        ("c:\n  connector: x\n  retry: {max_attempts: 0}\n", [("PZ0121", 3)]),
        ("c:\n  connector: x\n  retry: {attempts: 3}\n", [("PZ0121", 3)]),
        ("c:\n  connector: x\n  retry: {base_delay: 5s, max_delay: 1s}\n", [("PZ0121", 3)]),
        ("c:\n  connector: x\n  retry: {base_delay: soon}\n", [("PZ0121", 3)]),
        ("c:\n  connector: x\n  allow_unsigned_extensions: yes\n", [("PZ0101", 3)]),
        ("c:\n  connector: x\n  entities:\n    e:\n", [("PZ0101", 4)]),
        ("c:\n  connector: x\n  entities:\n    a..b: {read: }\n", [("PZ0344", 4)]),
        ("c:\n  connector: x\n  entities:\n    a b: {read: }\n", [("PZ0344", 4)]),
        ("c:\n  connector: x\n  entities:\n    e: {reed: {}, read: {}}\n", [("PZ0101", 4)]),
        ("c:\n  connector: x\n  entities:\n    e:\n      read: 5\n", [("PZ0101", 5)]),
    ],
)
def test_each_malformed_connection_is_named_with_its_line(project, text, expected):
    """Every rule of a connection and its entities has its code and line."""
    project.write("connections.yml", text)
    assert project.found() == [(code, f"connections.yml:{line}") for code, line in expected]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("columns: [a]", "PZ0101"),
        ("columns: {a: INT}", "PZ0101"),
        ("columns: {a: {b: c}}", "PZ0101"),
        ("sync: full", "PZ0334"),
        ("sync:", "PZ0334"),
        ("sync: {cursor: u}", "PZ0334"),
        ("sync: {mode: windowed}", "PZ0334"),
        ("sync: {mode: incremental}", "PZ0334"),
        ("sync: {mode: incremental, cursor: }", "PZ0334"),
        ("sync: {mode: incremental, cursor: [u]}", "PZ0334"),
        ("sync: {mode: incremental, cursor: u, slot: s}", "PZ0334"),
        ("sync: {mode: auto, cursor: u}", "PZ0334"),
        ("sync: {mode: cdc, slot: {a: b}}", "PZ0334"),
        ("incremental: {cursor: u}", "PZ0332"),
        ("schema: dbo", "PZ0348"),
        ("rate_limit: {requests_per_minute: 1}", "PZ0318"),
        ("max_concurrency: 2", "PZ0318"),
        ("retry: []", "PZ0121"),
    ],
)
def test_each_malformed_read_side_has_its_code(project, body, code):
    """Every rule of a read side is one problem at its line."""
    project.write("connections.yml", entity("read", body))
    assert project.found() == [(code, "connections.yml:6")]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("strategy: upsert", "PZ0228"),
        ("strategy: [merge]", "PZ0334"),
        ("strategy:", "PZ0228"),
        ("keys: id", "PZ0101"),
        ("duplicates: yes", "PZ0334"),
        ("on_delete: soft", "PZ0334"),
        ("{strategy: merge, keys: [a], on_delete: purge}", "PZ0334"),
        ("schema_policy: loose", "PZ0334"),
        ("mode: append", "PZ0333"),
        ("accept_duplicates: true", "PZ0333"),
        ("write: {}", "PZ0333"),
        ("input: orders", "PZ0112"),
        ("{schema: dbo, table: orders}", "PZ0348"),
        ("rate_limit: {}", "PZ0318"),
        ("max_concurrency: 2", "PZ0122"),
    ],
)
def test_each_malformed_write_side_has_its_code(project, body, code):
    """Every rule of a write side is one problem at its line."""
    project.write("connections.yml", entity("write", body))
    assert project.found() == [(code, "connections.yml:6")]


def test_hints_show_the_rewrite(project):
    """Retired spellings come with what to write instead."""
    project.write("connections.yml", entity("read", "{incremental: {cursor: changed_at}, schema: dbo, table: orders}"))
    hints = sorted(problem.hint for problem in project.problems())
    assert hints == [
        "name the entity dbo.orders and remove schema and table",
        "write sync: {mode: incremental, cursor: changed_at}",
    ]


def test_a_whole_connection_is_read(project):
    """Reserved keys become typed values; the rest is the connector's own."""
    project.write(
        "connections.yml",
        """
erp:
  connector: postgres
  host: db
  port: ${PORT}
  max_concurrency: 3
  retry: {max_attempts: 5, base_delay: 2s}
  entities:
    dbo.orders:
      read:
        columns: {id: bigint, u: timestamp}
        sync: {mode: incremental, cursor: u, initial: 2026-01-01, max_window: 1d}
        partition_column: id
        query: select 1
      write: {strategy: merge, keys: [id], on_delete: soft, duplicates: accept, format: csv}
    bare:
      read:
""",
    )
    connection = project.load({"PORT": "5432"}).connections["erp"]
    assert connection.config == {"host": "db", "port": 5432}
    assert connection.retry == RetryDeclaration(5, timedelta(seconds=2), None)
    read = connection.entities["dbo.orders"].read
    assert list(read.columns.items()) == [("id", "bigint"), ("u", "timestamp")]
    assert (read.sync.mode, read.sync.initial) == (SyncMode.INCREMENTAL, "2026-01-01")
    assert read.options == {"partition_column": "id", "query": "select 1"}
    write = connection.entities["dbo.orders"].write
    assert (write.strategy, write.keys, write.on_delete, write.accepts_duplicates) == (
        Strategy.MERGE, ("id",), OnDelete.SOFT, True,
    )  # fmt: skip
    assert write.options == {"format": "csv"}
    assert connection.entities["bare"].read.options == {}
    assert connection.entities["bare"].write is None


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("${P}", "0123", "0123"),
        ("${P}", "5432", 5432),
        ('"${P}"', "5432", "5432"),
        ("${P}", "1.10", "1.10"),
        ("${P}", "1e5", "1e5"),
        ("${P}", "true", True),
        ("${P}", "True", "True"),
        ("${P}", "", ""),
        ("a${P}b${P}", "-", "a-b-"),
        ("$${P}", "x", "${P}"),
        ("${}", "x", "${}"),
        ("'${P:-b}'", "x", "${P:-b}"),
        ("${P}", "${Q}", "${Q}"),
    ],
)
def test_variables_are_typed_after_substitution(project, text, value, expected):
    """A plain scalar is typed again only when the type prints back the same characters; one pass only."""
    project.write("connections.yml", f"c:\n  connector: x\n  k: {text}\n")
    found = project.load({"P": value}).connections["c"].config["k"]
    assert found == expected
    assert type(found) is type(expected)


def test_each_unset_variable_is_one_problem(project):
    """Every occurrence is reported with its line, with a near miss."""
    project.write("connections.yml", "c:\n  connector: x\n  a: ${PZ_HOTS}\n  b: ['${PZ_HOTS}']\n")
    problems = project.problems({"PZ_HOST": "h"})
    assert [(p.code, p.line) for p in problems] == [("PZ0103", 3), ("PZ0103", 4)]
    assert "PZ_HOST" in problems[0].hint


def test_references_below_entities_stay_literal_with_a_warning(project):
    """Below `entities:` nothing is substituted; PZ0133 says so once per scalar."""
    project.write("connections.yml", entity("read", "path: data/${DAY}.csv"))
    files = project.load({"DAY": "x"})
    assert files.connections["c"].entities["e"].read.options == {"path": "data/${DAY}.csv"}
    assert [(w.code, w.line) for w in files.warnings] == [("PZ0133", 6)]


def test_reserved_keys_are_not_interpolated(project):
    """The connector's name is literal."""
    project.write("connections.yml", "c: {connector: '${C}'}\n")
    assert project.load({"C": "x"}).connections["c"].connector == "${C}"


def test_secrets_stay_out_of_reprs(project):
    """A connection's configuration never shows in its repr."""
    project.write("connections.yml", "c: {connector: x, password: '${PW}'}\n")
    assert "hunter2" not in repr(project.load({"PW": "hunter2"}))
