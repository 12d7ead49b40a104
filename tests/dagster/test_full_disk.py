"""The disk of the Dagster home is full while an op runs: the run fails, the engine ends, nothing stays locked."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from pz_engine import list_runs
from pz_engine.testing.project_factory import ProjectFactory

MOUNT = 'mount -t tmpfs -o size=4m none "$1" && shift && exec "$@"'
DRIVER = """
import sys
from pathlib import Path
import dagster as dg
from pz_dagster import PzProject, PzResource, pz_assets

home = Path(sys.argv[2])

@pz_assets(project=PzProject(sys.argv[1]), select="+mart.events")
def filling(context, pz: PzResource):
    for result in pz.run(context=context).stream():
        with (home / "filler").open("wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:
                pass
        yield result

with dg.DagsterInstance.local_temp(str(home)) as instance:
    try:
        result = dg.materialize([filling], instance=instance, resources={"pz": PzResource()}, raise_on_error=False)
        ended = f"success={result.success}"
    except Exception as error:
        ended = type(error).__name__
print("ENDED", ended)
"""


def test_a_full_dagster_home_fails_the_run_and_frees_the_destination(shop: ProjectFactory, tmp_path: Path) -> None:
    """Never green, no thread keeps the process, the destination is free, and a stored position was committed."""
    home = tmp_path / "home"
    home.mkdir()
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh", str(home)]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*inside, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("no file system can be mounted here")
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER)
    done = subprocess.run(
        [*inside, sys.executable, str(driver), str(shop.directory), str(home)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    (line,) = (each for each in done.stdout.splitlines() if each.startswith("ENDED"))
    assert "success=True" not in line
    assert done.returncode == 0
    with duckdb.connect(str(shop.directory / "mart.duckdb")) as connection:
        tables = [name for (name,) in connection.execute("select table_name from information_schema.tables").fetchall()]
        landed = connection.execute("select count(*) from events").fetchone() if "events" in tables else (0,)
    stored = shop.directory / ".pz" / "state" / "watermarks.json"
    has_position = stored.exists() and bool(json.loads(stored.read_text())["watermarks"])
    assert landed == ((2,) if has_position else landed)
    assert list_runs(shop.directory)[0].status.value != "running"
