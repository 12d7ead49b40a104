"""What loading costs where a project is large; in CPU seconds, because other things run on the machine, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pz_dagster import PzProject
from pz_engine.testing.project_factory import ProjectFactory

SWITCH = os.environ.get("PZ_LARGE_TESTS") == "1"  # read here: tests start without such variables
LOAD = """
import sys, time
import dagster
began = time.process_time()
import pz_dagster
imported = time.process_time()
defs = pz_dagster.build_pz_definitions(pz_dagster.PzProject(sys.argv[1]))
keys = defs.get_repository_def().asset_graph.get_all_asset_keys()
print(len(keys), imported - began, time.process_time() - began)
"""


def multiply(project: PzProject, nodes: int) -> int:
    """Repeat the flows of a prepared snapshot under other names until there are so many nodes; returns how many flows."""
    document = json.loads(project.snapshot_path.read_text())
    own, flows = document["nodes"], document["flows"]
    copies = nodes // len(own)

    def spelled(text: str, number: int) -> str:
        for node in own:
            text = text.replace(f'"{node["id"]}"', f'"{node["id"]}{number:05}"')
            text = text.replace(f'"{node["name"]}"', f'"{node["name"]}{number:05}"')
        return text.replace('"entity": "', f'"entity": "e{number:05}')

    text, flow_text = json.dumps(own), json.dumps(flows)
    document["nodes"] = [node for number in range(copies) for node in json.loads(spelled(text, number))]
    document["flows"] = [flow for number in range(copies) for flow in json.loads(spelled(flow_text, number))]
    document["lineage"] = {}
    project.snapshot_path.write_text(json.dumps(document))
    return copies


@pytest.mark.slow
@pytest.mark.skipif(not SWITCH, reason="set PZ_LARGE_TESTS=1 to load projects of thousands of nodes")
@pytest.mark.parametrize(("nodes", "seconds"), [(1_000, 0.5), (5_000, 2.5)])
def test_a_prepared_project_loads_within_its_budget(shop: ProjectFactory, nodes: int, seconds: float) -> None:
    """After Dagster itself is imported; the best of three, and the import of the package alone stays small."""
    project = PzProject(shop.directory)
    project.prepare()
    copies = multiply(project, nodes)
    command = [sys.executable, "-c", LOAD, str(Path(shop.directory))]
    runs = [
        [float(each) for each in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]
        for _ in range(3)
    ]
    assert {count for count, _, _ in runs} == {copies * 8 + 1}  # six assets and two remote entities, and the state
    assert min(imported for _, imported, _ in runs) < 0.15
    assert min(whole for _, _, whole in runs) < seconds
