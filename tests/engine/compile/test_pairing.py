"""Which reads may feed which writes."""

from __future__ import annotations

import pytest

READS = {
    "full": "read: {}",
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
