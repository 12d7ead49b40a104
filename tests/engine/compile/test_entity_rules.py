"""Rules of one entity: cursors, windows, dated paths, partitioning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_engine.base.date_tokens import date_token_problem
from pz_engine.compile.dag import Window


def codes(project, read=None, write=None):
    side = f"read: {read}" if read is not None else f"write: {write}"
    project.write("connections.yml", f"c:\n  connector: x\n  entities:\n    e:\n      {side}\n")
    return [code for code, place in project.found() if place == "connections.yml:5"]


def notes(project, read):
    project.write("connections.yml", f"c:\n  connector: x\n  entities:\n    e:\n      read: {read}\n")
    return project.compile().notes


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ("{columns: {id: bigint}, sync: {mode: incremental, cursor: u}}", ["PZ0212"]),
        ("{columns: {u: varchar}, sync: {mode: incremental, cursor: u}}", ["PZ0212"]),
        ("{max_pages: 5, cursor_order: desc, sync: {mode: incremental, cursor: u}}", ["PZ0229"]),
        (
            "{columns: {u: varchar}, sync: {mode: incremental, cursor: u, max_window: 1d, initial: 2026-01-01}}",
            ["PZ0213"],
        ),
        ("{sync: {mode: incremental, cursor: u, max_window: 1d, initial: 2026-01-01}}", ["PZ0213"]),
        ("{columns: {u: date}, sync: {mode: incremental, cursor: u, initial: 2026-01-01}}", ["PZ0213"]),
        ("{columns: {u: date}, sync: {mode: incremental, cursor: u, until: 2026-01-01}}", ["PZ0213"]),
        ("{columns: {u: date}, sync: {mode: incremental, cursor: u, max_window: 1d}}", ["PZ0213"]),
        (
            "{columns: {u: date}, sync: {mode: incremental, cursor: u, max_window: 36h, initial: 2026-01-01}}",
            ["PZ0213"],
        ),
        (
            "{columns: {u: date}, sync: {mode: incremental, cursor: u, max_window: 1d, initial: x, until: y}}",
            ["PZ0213"] * 2,
        ),
        (
            "{columns: {u: date}, sync: {mode: incremental, cursor: u, max_window: 1d, initial: 2026-01-02, until: 2026-01-02}}",
            ["PZ0213"],
        ),
        (
            "{columns: {u: int}, sync: {mode: incremental, cursor: u, max_window: 5, initial: 1, until: now}}",
            ["PZ0213"],
        ),
        (
            "{columns: {u: int}, query: select 1, sync: {mode: incremental, cursor: u, max_window: 5, initial: 1}}",
            ["PZ0213"],
        ),
        ("{path: 'x/{yyyy}/{MM}.csv'}", ["PZ0217"]),
        ("{path: 'x/{yyyy}/{dd}.csv'}", ["PZ0218", "PZ0217"]),
        ("{path: 'x/{yyyy}.csv', columns: {u: int}, sync: {mode: incremental, cursor: u}}", ["PZ0217"]),
        ("{path: 'x/{yyyy}.csv', columns: {u: date}, sync: {mode: incremental, cursor: u}}", ["PZ0221"]),
        ("{files_per_partition: 0}", ["PZ0222"]),
        ("{files_per_partition: many}", ["PZ0222"]),
    ],
)
def test_each_wrong_read_has_its_codes(project, read, expected):
    """Every rule of a cursor, a window or a dated path has its own code at the side's line."""
    assert codes(project, read=read) == expected


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        ("{strategy: merge}", ["PZ0209"]),
        ("{keys: [a]}", ["PZ0211"]),
        ("{path: 'x/{yyyy}.csv'}", ["PZ0219"]),
        ("{path: 'x/{yyyy}/{HH}.csv', partition_by: [d]}", ["PZ0218"]),
        ("{path: 'x/{yyyy}.csv', partition_by: [a, b]}", ["PZ0219"]),
        ("{partition_by: 5}", ["PZ0219"]),
        ("{partition_by: []}", ["PZ0219"]),
    ],
)
def test_each_wrong_write_has_its_codes(project, write, expected):
    """Keys, strategies and partitioning of an output are checked wherever it is declared."""
    assert codes(project, write=write) == expected


def test_all_broken_rules_come_together(project):
    """Several broken rules of one window are several problems."""
    read = "{query: x, columns: {u: date}, sync: {mode: incremental, cursor: u, max_window: 5, initial: x}}"
    assert codes(project, read=read) == ["PZ0213"] * 3


def test_window_limits_become_canonical(project):
    """`initial` and `until` are kept in canonical form; `now` stays the word."""
    sync = "{mode: incremental, cursor: u, max_window: 1d, initial: 2026-01-01, until: now}"
    project.write(
        "connections.yml",
        f"c:\n  connector: x\n  entities:\n    e:\n      read: {{columns: {{u: timestamp}}, sync: {sync}}}\n",
    )
    project.sql("p", "select u from {{ source('c', 'e') }}")
    incremental = project.compile().graph.by_name["src_c__e"].incremental
    assert incremental.window == Window("1d", "2026-01-01T00:00:00.000000", "now")
    assert (incremental.cursor, incremental.cursor_type, incremental.is_declared_in_sql) == ("u", "timestamp", False)


def test_notes_tell_what_cannot_be_verified(project):
    """An unverified cursor, an unordered page limit and the open boundary are notes, not errors."""
    found = notes(project, "{max_pages: 5, sync: {mode: incremental, cursor: u}}")
    assert ["not verified" in note for note in found] == [True, False, False]
    assert "cursor_order" in found[1]
    assert ">=" in found[2]


def test_a_decimal_with_precision_can_be_a_cursor(project):
    """`decimal(18,2)` counts as a decimal cursor."""
    assert notes(project, "{columns: {u: 'decimal(18,2)'}, sync: {mode: incremental, cursor: u}}")


@pytest.mark.parametrize(
    ("path", "is_fine"),
    [
        ("{yyyy}/{MM}/{dd}/{HH}{mm}.csv", True),
        ("{yy}-{MM}.csv", True),
        ("plain.csv", True),
        ("{a,b}.csv", True),
        ("{MM}/{dd}.csv", False),
        ("{yyyy}/{yy}.csv", False),
        ("{yyyy}/{MM}/{MM}.csv", False),
        ("{YYYY}.csv", False),
        ("{dd}/{MM}/{yyyy}.csv", False),
    ],
)
def test_date_tokens_run_from_coarse_to_fine(path, is_fine):
    """Tokens start with the year and leave no gap; other braces are none of ours."""
    assert (date_token_problem(path) is None) is is_fine


@given(st.text(alphabet="{}yMdHm/", max_size=20))
def test_any_path_can_be_judged(path):
    """Judging a path never raises."""
    assert date_token_problem(path) is None or "{" in date_token_problem(path)
