"""Lose everything pz remembers and go on where it stopped: watermarks have a copy in the Dagster instance.

Copies this project to a temporary folder, lands January, deletes `.pz/`, adds February, and materializes again. Only
February is read.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import tempfile
from pathlib import Path

import dagster as dg

from pz_dagster import PzProject, build_pz_definitions

HERE = Path(__file__).parent
FEED = dg.AssetKey(["flights", "src_feed__flights"])
SINK = dg.AssetKey(["warehouse", "flights"])


def main() -> int:
    """Run the demonstration in a folder and an instance of its own; returns 0 when the second run landed only new rows."""
    with tempfile.TemporaryDirectory(prefix="pz-lost-disk-") as folder, dg.DagsterInstance.ephemeral() as instance:
        project = Path(folder) / "flights"
        leftovers = shutil.ignore_patterns(".pz", "output", "*.duckdb", "__pycache__")
        shutil.copytree(HERE, project, ignore=leftovers)
        february = project / "data" / "flights_2013_02.csv"
        february.rename(project / "february.csv")

        january = _materialize(project, instance)
        print(f"first run:  {january} rows, January")

        shutil.rmtree(project / ".pz")
        print("deleted:    .pz/ with every watermark, run and journal")

        (project / "february.csv").rename(february)
        added = _materialize(project, instance)
        print(f"second run: {added} rows, February only; the watermark came back from the Dagster instance")

        expected = len(february.read_text(encoding="utf-8").splitlines()) - 1
        return 0 if added == expected else 1


def _materialize(project: Path, instance: dg.DagsterInstance) -> int:
    """Materialize the feed up to its sink; returns how many rows landed."""
    definitions = build_pz_definitions(PzProject(project))
    assets = [each for each in definitions.assets or [] if isinstance(each, dg.AssetsDefinition)]
    with contextlib.redirect_stdout(io.StringIO()):  # the step's NDJSON lines
        result = dg.materialize(
            assets,
            instance=instance,
            resources=definitions.resources,
            selection=dg.AssetSelection.assets(SINK).upstream(),
            run_config={"loggers": {"console": {"config": {"log_level": "WARNING"}}}},
        )
    (event,) = [each for each in result.get_asset_materialization_events() if each.asset_key == SINK]
    return int(str(event.materialization.metadata["pz/rows"].value))


if __name__ == "__main__":
    sys.exit(main())
