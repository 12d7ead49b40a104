"""The plan counts as pushed what a connector is handed, and nothing else."""

from __future__ import annotations

import pytest

from pz_engine.app.plan import plan_project
from pz_engine.connectors.capabilities import Capability
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ScriptedConnector

BOTH = Capability.COLUMN_PRUNING | Capability.PREDICATE_PUSHDOWN


@pytest.mark.parametrize(
    ("capabilities", "columns", "predicate"),
    [
        (BOTH, 2, True),
        (Capability.COLUMN_PRUNING, 2, False),
        (Capability.PREDICATE_PUSHDOWN, None, True),
        (Capability.MERGE, None, False),
    ],
)
def test_a_streamed_read_is_handed_what_its_connector_honours(
    factory: ProjectFactory, capabilities: Capability, columns: int | None, predicate: bool
) -> None:
    """A native scan is not handed anything, so nothing is counted there."""
    with ScriptedConnector(capabilities=capabilities).installed():
        factory.connections("s: {connector: scripted}\nf: {connector: localfiles, root: data}\n")
        factory.pipeline("p", "SELECT a FROM {{ source('s', 'e') }} WHERE b = 1")
        factory.pipeline("q", "SELECT a FROM {{ source('f', 'e', path: 'e.parquet') }} WHERE b = 1")
        report = plan_project(factory.directory)
    assert report.problems == ()
    assert report.plan is not None
    nodes = {node["name"]: node for node in report.plan["nodes"]}
    streamed = nodes["src_s__e"]
    assert (streamed["strategy"], streamed.get("columns_pushed"), streamed.get("predicate_pushed", False)) == (
        "arrow_stream", columns, predicate,
    )  # fmt: skip
    assert "columns_pushed" not in nodes["src_f__e"]
