"""The order of the stages: mistakes of one stage come together, those of later stages wait for it."""

from __future__ import annotations

import pytest

CONNECTIONS = """c:
  connector: localfiles
  entities:
    declared: {read: {format: csv}}
    bad_keys: {write: {strategy: merge}}
    bad_window: {read: {columns: {u: date}, sync: {mode: incremental, cursor: u, max_window: 5}}}
    bad_cursor: {read: {columns: {id: int}, sync: {mode: incremental, cursor: u}}}
    dated: {read: {path: '{yyyy}/{dd}.csv'}}
    parts: {write: {partition_by: 5}, read: {files_per_partition: 0}}
"""
FINE = "c: {connector: localfiles}\n"
W = "{{ watermark('c', 'inc') }}"
INC = "{{ source('c', 'inc') }}"

STAGES: list[tuple[str, dict[str, str], list[str]]] = [
    ("load", {"pipelines/configs/lost.yml": "pipeline: nowhere\n"}, ["PZ0111 pipelines/configs/lost.yml"]),
    (
        "render",
        {
            "pipelines/r1.sql": "{{ nope }}",
            "pipelines/r2.sql": "\n{{ ref() }}{{ env('UNSET') }}",
            "pipelines/r3.sql": "{{ sink('c', 'e', strategy: 'upsert', input: 'x') }}",
        },
        ["PZ0104 pipelines/r1.sql", "PZ0201 pipelines/r2.sql", "PZ0103 pipelines/r2.sql", "PZ0112 pipelines/r3.sql",
         "PZ0228 pipelines/r3.sql"],
    ),
    (
        "leading insert",
        {
            "pipelines/i1.sql": "select 1 from {{ sink('c', 'i1') }}",
            "pipelines/i2.sql": "INSERT INTO {{ sink('c', 'i2') }} select 1",
            "pipelines/configs/i2.yml": "pipeline: i2\nmaterialization: ephemeral\n",
        },
        ["PZ0208 pipelines/i1.sql", "PZ0208 pipelines/i2.sql"],
    ),
    ("surfaces", {"pipelines/s.sql": "from {{ source('c', 'declared', format: 'csv') }}"}, ["PZ0341 pipelines/s.sql"]),
    (
        "entities and references",
        {
            "pipelines/x1.sql": "from {{ ref('missing') }}",
            "pipelines/x2.sql": "from {{ source('missing', 'e') }}",
            "pipelines/x3.sql": "select 1 id",
            "pipelines/configs/x3.yml": "pipeline: x3\nmaterialization: ephemeral\nchecks:\n  - unique: [id]\n",
            "pipelines/x4.sql": "from {{ ref('x3') }}, {{ ref('missing_too') }}",
            "pipelines/configs/x4.yml": "pipeline: x4\nmaterialization: ephemeral\n",
            "connections.yml": CONNECTIONS,
        },
        ["PZ0209 connections.yml", "PZ0213 connections.yml", "PZ0213 connections.yml", "PZ0212 connections.yml",
         "PZ0218 connections.yml", "PZ0217 connections.yml", "PZ0222 connections.yml", "PZ0219 connections.yml",
         "PZ0205 pipelines/configs/x3.yml", "PZ0201 pipelines/x1.sql", "PZ0201 pipelines/x2.sql",
         "PZ0204 pipelines/x4.sql", "PZ0201 pipelines/x4.sql"],
    ),
    (
        "outputs",
        {
            "pipelines/o1.sql": "INSERT INTO {{ sink('missing', 'o') }} select 1",
            "pipelines/o2.sql": "INSERT INTO {{ sink('c', 'o') }} select 1",
            "pipelines/o3.sql": "INSERT INTO {{ sink('c', 'o') }} select 1",
        },
        ["PZ0201 pipelines/o1.sql", "PZ0206 pipelines/o3.sql"],
    ),
    (
        "watermarks",
        {
            "pipelines/w1.sql": f"from {INC} where u = {W}",
            "pipelines/w2.sql": f"from {INC} where u > {W}",
            "pipelines/w3.sql": f"from {INC}",
            "pipelines/w4.sql": "from {{ source('c', 'v') }} where a > {{ watermark('c', 'v') }} and b > {{ watermark('c', 'v') }}",
        },
        ["PZ0224 pipelines/w1.sql", "PZ0226 pipelines/w3.sql", "PZ0231 pipelines/w4.sql"],
    ),
    (
        "names",
        {
            "pipelines/n1.sql": "from {{ source('c', 'a.b') }}, {{ source('c', 'a_b') }}",
            "pipelines/src_c__a_b.sql": "select 1",
            "pipelines/N1.sql": "select 1",
        },
        ["PZ0110 pipelines/n1.sql", "PZ0110 pipelines/n1.sql", "PZ0230 pipelines/src_c__a_b.sql"],
    ),
    (
        "pairs",
        {
            "pipelines/p1.sql": "INSERT INTO {{ sink('c', 'p1') }} from {{ source('c', 'q') }} where u > {{ watermark('c', 'q') }}",
            "pipelines/p2.sql": "INSERT INTO {{ sink('c', 'p2', strategy: 'merge', keys: ['k'], on_delete: 'soft') }} select 1 k",
        },
        ["PZ0214 pipelines/p1.sql", "PZ0337 pipelines/p2.sql"],
    ),
    ("order", {"pipelines/c1.sql": "from {{ ref('c2') }}", "pipelines/c2.sql": "from {{ ref('c1') }}"}, ["PZ0202 None"]),
]  # fmt: skip


@pytest.mark.parametrize("first", range(len(STAGES)), ids=[name for name, _, _ in STAGES])
def test_a_stage_is_told_whole_and_alone(project, first):
    """Everything wrong from this stage on is in the project; only this stage's problems are reported, by file."""
    project.write("connections.yml", CONNECTIONS if first <= 4 else FINE)
    for _, files, _ in STAGES[first:]:
        for path, text in files.items():
            project.write(path, text)
    found = [f"{problem.code} {problem.file}" for problem in project.problems()]
    assert found == STAGES[first][2]


def test_warnings_come_in_order_of_the_stages(project):
    """What loading warns of, then near misses, then unused pipelines, then run identity."""
    project.write("connections.yml", "c:\n  connector: x\n  entities:\n    e: {read: {path: '${HOME}'}}\n")
    project.write("connections.yaml", "").sql("b", "select '{{ run_id }}' i from {{ source('c', 'f', column: 1) }}")
    project.sql("a", "INSERT INTO {{ sink('c', 'o', key: 1) }} select '{{ run_started_at }}'")
    assert [(warning.code, warning.file) for warning in project.compile().warnings] == [
        ("PZ0135", "connections.yaml"), ("PZ0133", "connections.yml"), ("PZ0208", "pipelines/a.sql"),
        ("PZ0201", "pipelines/b.sql"), ("PZ0223", "pipelines/b.sql"), ("PZ0232", "pipelines/a.sql"),
        ("PZ0232", "pipelines/b.sql"),
    ]  # fmt: skip
