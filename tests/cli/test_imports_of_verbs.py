"""Which libraries each verb loads: a library that one verb needs must not slow down the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pz_engine.testing.project_factory import ProjectFactory

GOLDEN = Path(__file__).parents[1] / "contracts" / "golden" / "imports_of_verbs.json"

VERBS: dict[str, list[str]] = {
    "--help": ["--help"],
    "clean": ["clean", "--keep-last", "1"],
    "compile": ["compile"],
    "compile --lineage": ["compile", "--lineage"],
    "history": ["history"],
    "ls": ["ls"],
    "plan": ["plan"],
    "retry": ["retry"],
    "run": ["run", "--all"],
    "runs": ["runs"],
    "schema json": ["schema", "json", "project"],
    "state show": ["state", "show"],
    "test": ["test"],
    "validate": ["validate"],
}

WATCH = """
import json, sys
from pz_engine.cli.main import run
from pz_engine.cli.render.terminal import Terminal
code = run(sys.argv[2:], Terminal(open("/dev/null", "w"), sys.stderr, {}))
assert code in (0, 1), code
mine = {"pz_engine", "pz_dagster", "sitecustomize", "usercustomize", "mypy_extensions"}  # the last one: where sqlglot is compiled
found = {name.partition(".")[0] for name, module in sys.modules.items() if getattr(module, "__file__", None)}
known = {name for name in found if name not in sys.stdlib_module_names and not name.startswith("_") and name not in mine}
open(sys.argv[1], "w").write(json.dumps(sorted(known)))
"""


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """One small flow that has run once, with an increment, so that there is state and a journal."""
    factory.connections("files: { connector: localfiles }\nlake: { connector: localfiles, root: out }\n")
    factory.write("things.csv", "id,seq\n1,1\n")
    factory.pipeline(
        "p",
        "INSERT INTO {{ sink('lake', 't', format: 'parquet', strategy: 'replace') }}\n"
        "SELECT * FROM {{ source('files', 'things', columns: { id: 'int', seq: 'int' }) }}",
    )
    factory.sidecar("p", "checks:\n  - not_null: [id]\n")
    factory.run()
    return factory


def test_libraries_that_each_verb_loads(project: ProjectFactory, tmp_path: Path, golden_update: bool) -> None:
    """Nothing but what the golden file lists; a change of it is a decision."""
    found = {}
    for name, arguments in VERBS.items():
        target = tmp_path / "modules.json"
        place = [] if name in ("--help", "schema json") else ["--project", str(project.directory)]
        done = subprocess.run(
            [sys.executable, "-c", WATCH, str(target), *arguments, *place],
            capture_output=True,
            text=True,
            check=False,
            env=dict(os.environ),
        )
        assert done.returncode == 0, (name, done.stderr)
        found[name] = json.loads(target.read_text())
    if golden_update:
        GOLDEN.write_text(json.dumps(found, indent=2) + "\n")
    assert found == json.loads(GOLDEN.read_text())
