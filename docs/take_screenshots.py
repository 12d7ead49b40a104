"""Retake the pictures of the Dagster page: `PYTHONPATH=. python docs/take_screenshots.py`, with chromium installed.

Copies the example, materializes it in a real `dagster dev`, breaks it with its variable, repairs it and re-executes the
failed run, and takes a picture at each station. `pngquant` makes the files smaller where it is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from tests.dagster.browser import find_chromium, page
from tests.dagster.dev_server import DevServer, dev_server

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
LARGEST = 150_000
"""Bytes of a picture that a page can hold without anyone waiting for it."""

ALL = "{ assetNodes { assetKey { path } isMaterializable } }"


def main() -> int:
    """Take every picture; returns 1 where a run does not end as the page says or a picture is too large."""
    if find_chromium() is None:
        print("install Debian's package chromium", file=sys.stderr)  # noqa: T201
        return 1
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pz-pictures-") as folder:
        example, home = Path(folder, "flights"), Path(folder, "home")
        leftovers = shutil.ignore_patterns(".pz", "output", "*.duckdb", "__pycache__")
        shutil.copytree(ROOT / "example_project", example, ignore=leftovers)
        home.mkdir()
        shutil.copy(example / "dagster.yaml", home)
        definitions = example / "definitions.py"
        with dev_server(definitions, home=home) as server:
            good = server.launch(_assets(server))
            _expect(server.follow(good), "SUCCESS")
            _take(
                server,
                "graph",
                f"/locations/__repository__@{server.location}/asset-groups/flights/lineage",
                (1400, 1100),
            )
            _take(server, "asset", "/assets/flights/carrier_months?view=overview", (1400, 1500))
        with dev_server(definitions, home=home, environment={"PZ_EXAMPLE_BREAK": "1"}) as server:
            broken = server.launch(_assets(server))
            _expect(server.follow(broken), "FAILURE")
            check = "/assets/flights/flight_delays?view=checks&checkDetail=check_flight_delays_row_count"
            _take(server, "checks", check)
            events = quote("type:ASSET_CHECK_EVALUATION")
            _take(server, "run", f"/runs/{broken}?logs={events}")
        with dev_server(definitions, home=home) as server:
            repaired = server.reexecute(broken)
            _expect(server.follow(repaired), "SUCCESS")
            events = quote("type:ASSET_MATERIALIZATION")
            _take(server, "reexecution", f"/runs/{repaired}?logs={events}")
    too_large = [path.name for path in IMAGES.glob("*.png") if path.stat().st_size > LARGEST]
    if too_large:
        print(f"larger than {LARGEST} bytes: {', '.join(too_large)}", file=sys.stderr)  # noqa: T201
    return 1 if too_large else 0


def _assets(server: DevServer) -> Sequence[Sequence[str]]:
    return [node["assetKey"]["path"] for node in server.query(ALL)["assetNodes"] if node["isMaterializable"]]


def _expect(status: str, wanted: str) -> None:
    if status != wanted:
        raise RuntimeError(f"the run ended {status}, not {wanted}")


def _take(server: DevServer, name: str, address: str, size: tuple[int, int] = (1400, 1000)) -> None:
    target = IMAGES / f"dagster-{name}.png"
    page(server.url + address, picture=target, size=size)
    if shutil.which("pngquant"):
        subprocess.run(["pngquant", "--force", "--ext", ".png", "--strip", "64", str(target)], check=True)  # noqa: S603, S607


if __name__ == "__main__":
    sys.exit(main())
