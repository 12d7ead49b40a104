"""What loading definitions may take on two cores, from a prepared snapshot and after `import dagster`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pz_dagster import PzProject
from pz_engine.testing.project_factory import ProjectFactory

SWITCH = os.environ.get("PZ_BUDGET_TESTS") == "1"  # read here: tests start without such variables

LOAD = """
import time, dagster
started = time.perf_counter()
import pz_dagster
imported = time.perf_counter()
defs = pz_dagster.build_pz_definitions(pz_dagster.PzProject({directory!r}))
defs.get_repository_def()
nodes = sum(len(each.keys) + len(each.check_keys) for each in defs.assets if hasattr(each, "check_keys"))
print(nodes, imported - started, time.perf_counter() - imported)
"""


@pytest.mark.skipif(not SWITCH, reason="set PZ_BUDGET_TESTS=1 on an idle machine")
@pytest.mark.parametrize(("nodes", "seconds"), [(1_000, 0.5), (5_000, 2.5)])
def test_definitions_load_within_their_budget(tmp_path: Path, nodes: int, seconds: float) -> None:
    """The best of three: a load, a pipeline, a sink and two checks for every fifth of the nodes."""
    factory = ProjectFactory(tmp_path / "large", 'name: large\nversion: "1"\n')
    factory.connections(
        "files: { connector: localfiles, root: . }\nlake: { connector: localfiles, root: out }\n",
    )
    for number in range(nodes // 5):
        factory.pipeline(
            f"p{number}",
            f"insert into {{{{ sink('lake', 't{number}', format: 'parquet', strategy: 'replace') }}}}\n"
            f"select id from {{{{ source('files', 's{number}', path: 'x.csv', columns: {{ id: 'bigint' }}) }}}}\n",
        )
        factory.sidecar(f"p{number}", "checks:\n  - not_null: [id]\n  - unique: [id]\n")
    PzProject(factory.directory).prepare()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found = [
        subprocess.run(
            [sys.executable, "-c", LOAD.format(directory=str(factory.directory))],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        ).stdout.split()
        for _ in range(3)
    ]
    assert {int(each[0]) for each in found} == {nodes}
    assert min(float(each[1]) for each in found) <= 0.15
    assert min(float(each[2]) for each in found) <= seconds
