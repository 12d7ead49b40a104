"""What the plan refuses because a connector cannot honour it: nothing has run, and the next step says what to change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pz_engine.app.plan import plan_project
from pz_engine.connectors import Capability
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ScriptedConnector

CONNECTIONS = """
files: { connector: localfiles, entities: { t: { read: { columns: { id: bigint, seq: bigint, day: date } } } } }
db: { connector: duckdb, path: a.duckdb }
api: { connector: scripted }
"""
TYPES = "columns: { id: 'bigint', seq: 'bigint' }"
WINDOW = "sync: { mode: 'incremental', cursor: 'seq', max_window: 10, initial: 0 }"
DATED = (
    "columns: { day: 'date' }, sync: { mode: 'incremental', cursor: 'day', max_window: '1d', initial: '2024-01-01' }"
)
FROM_FILES = "SELECT * FROM {{ source('files', 't') }}"

REFUSED = {
    "window": ("PZ0313", "", f"SELECT * FROM {{{{ source('api', 't', {TYPES}, {WINDOW}) }}}}", "remove max_window"),
    "dated path of a read": (
        "PZ0314", "", f"SELECT * FROM {{{{ source('api', 't', path: 'x/{{yyyy}}', {DATED}) }}}}",
        "write the path without date tokens, for example with a glob",
    ),
    "dated path of a write": (
        "PZ0314", "INSERT INTO {{ sink('api', 'o', strategy: 'replace', path: 'x/{yyyy}', partition_by: 'day') }}\n", FROM_FILES,
        "remove partition_by and the date tokens",
    ),
    "capture of changes": (
        "PZ0338", "", f"SELECT * FROM {{{{ source('api', 't', {TYPES}, sync: {{ mode: 'cdc' }}) }}}}", "use mode: incremental",
    ),
    "merge": (
        "PZ0324", "INSERT INTO {{ sink('files', 'o', strategy: 'merge', keys: ['id']) }}\n", FROM_FILES, "use append or replace",
    ),
    "evolving schema": (
        "PZ0324", "INSERT INTO {{ sink('api', 'o', strategy: 'replace', schema_policy: 'evolve') }}\n", FROM_FILES,
        "use fail_on_change",
    ),
    "deletes": (
        "PZ0339",
        "INSERT INTO {{ sink('api', 'o', strategy: 'merge', keys: ['id'], on_delete: 'soft') }}\n",
        "SELECT * FROM {{ source('api', 't', columns: { id: 'bigint', seq: 'bigint' }, sync: { mode: 'cdc' }) }}",
        "use on_delete: ignore",
    ),
}  # fmt: skip
"""Code, sink, query, next step."""


@pytest.fixture(autouse=True)
def scripted() -> Iterator[ScriptedConnector]:
    """A connector that merges and replaces, and does nothing else that has to be announced."""
    connector = ScriptedConnector()
    connector.capabilities = Capability.MERGE | Capability.REPLACE_WRITES
    with connector.installed():
        yield connector


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_connector_cannot_do_is_refused_by_the_plan(factory: ProjectFactory, what: str) -> None:
    """With the code, the node and the next step."""
    code, sink, query, hint = REFUSED[what]
    factory.connections(CONNECTIONS)
    factory.pipeline("p", f"{sink}{query}")
    found = [problem for problem in plan_project(factory.directory).problems if problem.code == code]
    assert [problem.hint for problem in found] == [hint], plan_project(factory.directory).problems
    assert not (factory.directory / ".pz" / "runs").exists()
