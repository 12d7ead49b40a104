"""Which reads may feed which writes."""

from __future__ import annotations

import pytest

READS = {
    "full": "read: {}",
    "windowed": "read: {columns: {u: date}, sync: {mode: incremental, cursor: u, initial: 2026-01-01, max_window: 1d}}",
    "auto": "read: {sync: {mode: auto}}",
    "incremental": "read: {columns: {u: date}, sync: {mode: incremental, cursor: u}}",
    "cdc": "read: {sync: {mode: cdc}}",
}


def build(project, reads, sink):
    entities = "".join(f"    e{n}:\n      {READS[read]}\n" for n, read in enumerate(reads))
    project.write("connections.yml", f"c:\n  connector: x\n  entities:\n{entities}")
    sources = ", ".join(f"{{{{ source('c', 'e{n}') }}}} t{n}" for n in range(len(reads)))
    project.sql("stg", f"select 1 as id from {sources}")
    return project.sql("p", f"INSERT INTO {{{{ sink('c', 'out'{sink}) }}}} select * from {{{{ ref('stg') }}}}")


SINKS = {
    "append": "",
    "append with consent": ", duplicates: 'accept'",
    "replace": ", strategy: 'replace'",
    "merge": ", strategy: 'merge', keys: ['id']",
    "merge with deletes": ", strategy: 'merge', keys: ['id'], on_delete: 'ignore'",
}
MATRIX = {
    "full": [None, None, None, None, "PZ0337"],
    "auto": [None, None, None, None, "PZ0337"],
    "incremental": ["PZ0214", None, "PZ0335", None, "PZ0337"],
    "windowed": ["PZ0214", None, "PZ0335", None, "PZ0337"],
    "sql": ["PZ0214", None, "PZ0335", None, "PZ0337"],
    "cdc": ["PZ0335", "PZ0335", "PZ0335", "PZ0336", None],
}


@pytest.mark.parametrize(
    ("read", "sink", "expected"),
    [(read, sink, cell) for read, cells in MATRIX.items() for sink, cell in zip(SINKS, cells, strict=True)],
)
def test_every_cell_of_the_matrix(project, read, sink, expected):
    """How an entity is read decides which writes it may reach, through any number of pipelines."""
    if read == "sql":
        build(project, ["full"], SINKS[sink])
        project.sql("stg", "select 1 as id from {{ source('c', 'e0') }} where u > {{ watermark('c', 'e0') }}")
    else:
        build(project, [read], SINKS[sink])
    found = project.found() if expected else [(None, None)]
    assert found == [(expected, "pipelines/p.sql:1" if expected else None)]
    assert expected or project.compile().problems == ()


@pytest.mark.parametrize(
    ("reads", "sink", "expected"),
    [
        (["full"], "", []),
        (["full"], ", strategy: 'replace'", []),
        (["incremental"], "", ["PZ0214"]),
        (["incremental"], ", duplicates: 'accept'", []),
        (["incremental"], ", strategy: 'replace'", ["PZ0335"]),
        (["incremental"], ", strategy: 'merge', keys: ['id']", []),
        (["incremental", "incremental"], "", ["PZ0214", "PZ0214"]),
        (["cdc"], "", ["PZ0335"]),
        (["cdc"], ", duplicates: 'accept'", ["PZ0335"]),
        (["cdc"], ", strategy: 'replace'", ["PZ0335"]),
        (["cdc"], ", strategy: 'merge', keys: ['id']", ["PZ0336"]),
        (["cdc"], ", strategy: 'merge', keys: ['id'], on_delete: 'soft'", []),
        (["full"], ", strategy: 'merge', keys: ['id'], on_delete: 'soft'", ["PZ0337"]),
        (["cdc", "full"], ", strategy: 'merge', keys: ['id'], on_delete: 'delete'", ["PZ0337"]),
        (["cdc", "full"], ", strategy: 'merge', keys: ['id'], on_delete: 'ignore'", []),
    ],
)
def test_each_pair_is_allowed_or_refused(project, reads, sink, expected):
    """Every cell of the two tables, found through an intermediate pipeline, at the sink's call."""
    build(project, reads, sink)
    if expected:
        assert project.found() == [(code, "pipelines/p.sql:1") for code in expected]
    else:
        assert project.compile().problems == ()


def test_the_advice_never_leads_into_another_error(project):
    """PZ0214 offers merge and consent, not replace."""
    build(project, ["incremental"], "")
    (problem,) = project.problems()
    assert "replace" not in problem.hint


def test_explicit_auto_without_consent_is_a_note(project):
    """Only an explicit `mode: auto` is worth a word."""
    assert any("effectively-once" in note for note in build(project, ["auto"], "").compile().notes)
    assert not any("effectively-once" in note for note in build(project, ["full"], "").compile().notes)
