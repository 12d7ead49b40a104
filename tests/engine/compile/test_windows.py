"""Bounded windows of every cursor type: what is accepted, its canonical form, and each broken rule."""

from __future__ import annotations

import pytest

BIG = "123456789012345678901234567890"
DECLARED = {"int": "int", "bigint": "bigint", "decimal": "decimal(18,2)", "date": "date", "timestamp": "timestamp"}


def declare(project, cursor_type, *, extra="", **keys):
    sync = "".join(f", {key}: {value}" for key, value in keys.items())
    project.write(
        "connections.yml",
        "c:\n  connector: x\n  entities:\n    e:\n      read:\n"
        f"        columns: {{u: '{DECLARED[cursor_type]}'}}\n"
        f"        sync: {{mode: incremental, cursor: u{sync}}}\n{extra}",
    )
    return project.sql("p", "select u from {{ source('c', 'e') }}")


def window(project, cursor_type, **keys):
    return declare(project, cursor_type, **keys).compile().graph.by_name["src_c__e"].incremental.window


@pytest.mark.parametrize(
    ("cursor_type", "written", "canonical"),
    [
        ("int", "1", "1"),
        ("int", "'+042'", "42"),
        ("int", "-7", "-7"),
        ("bigint", BIG, BIG),
        ("bigint", "'-0'", "0"),
        ("decimal", "'12.50'", "12.50"),
        ("decimal", "12.50", "12.50"),
        ("decimal", "'+.5'", "0.5"),
        ("decimal", "-3", "-3"),
        ("date", "2026-02-28", "2026-02-28"),
        ("timestamp", "2026-01-02", "2026-01-02T00:00:00.000000"),
        ("timestamp", "2026-01-02T03:04:05", "2026-01-02T03:04:05.000000"),
        ("timestamp", "2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123456"),
    ],
)
def test_limits_have_one_canonical_form(project, cursor_type, written, canonical):
    """Every accepted spelling of `initial` and `until` ends as the same text."""
    size = "1d" if cursor_type in {"date", "timestamp"} else "10"
    found = window(project, cursor_type, initial=written, max_window=size)
    assert (found.initial, found.until, found.max_window) == (canonical, None, size)


@pytest.mark.parametrize(
    ("cursor_type", "written"),
    [
        ("int", "1.5"), ("int", "1e3"), ("int", "2026-01-01"), ("bigint", "1_000"), ("bigint", "0x10"), ("int", "\u0661"),
        ("decimal", "1e3"), ("decimal", "1.2.3"), ("decimal", "'1,5'"),
        ("date", "2026-02-30"), ("date", "20260101"), ("date", "2026-01-01T00:00:00"), ("date", "5"),
        ("timestamp", "2026-01-02T03:04"), ("timestamp", "2026-01-02T03:04:05+01:00"), ("timestamp", "2026-01-02Z"),
        ("timestamp", "'2026-01-02 03:04:05'"), ("timestamp", "2026-01-02T24:00:00"), ("timestamp", "yesterday"),
    ],
)  # fmt: skip
def test_other_limits_are_refused(project, cursor_type, written):
    """A value that the type does not have is PZ0213, as `initial` and as `until`."""
    size = "1d" if cursor_type in {"date", "timestamp"} else "10"
    assert declare(project, cursor_type, initial=written, max_window=size).found() == [("PZ0213", "connections.yml:7")]
    first = {"date": "2026-01-01", "timestamp": "2026-01-01"}.get(cursor_type, "1")
    declare(project, cursor_type, initial=first, until=written, max_window=size)
    assert project.found() == [("PZ0213", "connections.yml:7")]


@pytest.mark.parametrize(
    ("cursor_type", "accepted", "refused"),
    [
        ("int", ["1", "1000", BIG], ["0", "-5", "+5", "1.5", "1d"]),
        ("bigint", ["1"], ["0", "1h"]),
        ("decimal", ["5"], ["0.5", "0", "1d"]),
        ("date", ["1d", "48h", "2880m"], ["36h", "5", "0d", "1.5d", "1w"]),
        ("timestamp", ["1ms", "30s", "36h", "7d"], ["5", "0s", "-1d", "1D", "1 d"]),
    ],
)
def test_sizes_fit_the_type(project, cursor_type, accepted, refused):
    """Numbers move by whole numbers, dates by whole days, timestamps by any duration above zero."""
    first = {"date": "2026-01-01", "timestamp": "2026-01-01"}.get(cursor_type, "1")
    for size in accepted:
        assert window(project, cursor_type, initial=first, max_window=f"'{size}'").max_window == size
    for size in refused:
        declare(project, cursor_type, initial=first, max_window=f"'{size}'")
        assert project.found() == [("PZ0213", "connections.yml:7")], size


@pytest.mark.parametrize("cursor_type", DECLARED)
def test_until_now_belongs_to_times(project, cursor_type):
    """`now` stays the word for dates and timestamps, and means nothing for numbers."""
    first = {"date": "2026-01-01", "timestamp": "2026-01-01"}.get(cursor_type, "1")
    size = "1d" if cursor_type in {"date", "timestamp"} else "10"
    declare(project, cursor_type, initial=first, until="now", max_window=size)
    if cursor_type in {"date", "timestamp"}:
        assert project.compile().graph.by_name["src_c__e"].incremental.window.until == "now"
    else:
        assert project.found() == [("PZ0213", "connections.yml:7")]
    declare(project, cursor_type, initial="now", max_window=size)
    assert project.found() == [("PZ0213", "connections.yml:7")]


@pytest.mark.parametrize(
    ("keys", "problems"),
    [
        ({"initial": "2026-01-01"}, 1),
        ({"until": "2026-01-01"}, 1),
        ({"initial": "2026-01-01", "until": "2026-01-01"}, 2),
        ({"max_window": "1d"}, 1),
        ({"max_window": "1d", "until": "2026-01-01"}, 1),
        ({"max_window": "5", "until": "x"}, 3),
        ({"max_window": "1d", "initial": "2026-01-02", "until": "2026-01-02"}, 1),
        ({"max_window": "1d", "initial": "2026-01-02", "until": "2026-01-01"}, 1),
        ({"max_window": "1d", "initial": "2026-01-02", "until": "2026-01-03"}, 0),
    ],
)
def test_each_broken_rule_is_its_own_problem(project, keys, problems):
    """Nothing is reported twice, and nothing hides anything else."""
    declare(project, "date", **keys)
    found = project.found() if problems else project.compile().graph.nodes[:0]
    assert [code for code, _ in found] == ["PZ0213"] * problems


def test_a_query_of_sql_has_no_windows_but_a_mapping_has(project):
    """SQL text cannot be cut; only `max_window` asks for cutting."""
    keys = {"initial": "2026-01-01", "max_window": "1d"}
    declare(project, "date", extra="        query: select 1\n", **keys)
    assert project.found() == [("PZ0213", "connections.yml:8")]
    assert window(project, "date", extra="        query: {since: x}\n", **keys) is not None
    declare(project, "date", extra="        query: select 1\n", initial="2026-01-01")
    assert project.found() == [("PZ0213", "connections.yml:7")]


def test_a_cursor_of_unknown_type_has_no_windows(project):
    """Without a contract the connector's own options may give the type."""
    text = "c:\n  connector: x\n  entities:\n    e:\n      read:\n        sync: {{mode: incremental, cursor: u, initial: 1, max_window: 5}}\n{}"
    project.sql("p", "select u from {{ source('c', 'e') }}").write("connections.yml", text.format(""))
    assert project.found() == [("PZ0213", "connections.yml:6")]
    project.write("connections.yml", text.format("        cursor: u\n        cursor_type: bigint\n"))
    assert project.compile().graph.by_name["src_c__e"].incremental.cursor_type == "bigint"
    for extra in (
        "        cursor: v\n        cursor_type: bigint\n",
        "        cursor: u\n        cursor_type: BIGINT\n",
    ):
        project.write("connections.yml", text.format(extra))
        assert project.found() == [("PZ0213", "connections.yml:6")]


def test_a_window_never_changes_an_id(project):
    """Limits are how much is read at a time, not what is read."""
    ids = set()
    for keys in (
        {},
        {"initial": "2026-01-01", "max_window": "1d"},
        {"initial": "2026-01-05", "max_window": "2d", "until": "now"},
    ):
        ids.add(declare(project, "timestamp", **keys).compile().graph.by_name["src_c__e"].id)
    assert len(ids) == 1
