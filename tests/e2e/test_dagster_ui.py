"""What a person sees: `dagster dev` in a browser, from the graph to a failing check."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.browser import find_chromium, page, visible_text
from tests.dagster.dev_server import dev_server

SWITCH = os.environ.get("PZ_BROWSER_TESTS") == "1"  # read here: tests start without such variables

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not SWITCH, reason="set PZ_BROWSER_TESTS=1 to start a server and a browser"),
    pytest.mark.skipif(find_chromium() is None, reason="chromium is not installed"),
]

SETTINGS = """
telemetry: { enabled: false }
nux: { enabled: false }
run_coordinator:
  module: dagster._core.run_coordinator
  class: DefaultRunCoordinator
"""
DEFINITIONS = """
from pathlib import Path
from pz_dagster import PzProject, build_pz_definitions
defs = build_pz_definitions(PzProject(Path(__file__).parent))
"""
ASSETS = (["shop", "src_erp__orders"], ["shop", "orders_clean"], ["lake", "orders"])


@pytest.fixture
def shop(tmp_path: Path) -> ProjectFactory:
    """One flow with two checks, of which the second finds what it looks for."""
    factory = ProjectFactory(tmp_path / "shop", 'name: shop\nversion: "1"\nengine: { threads: 2 }\n')
    factory.write("in/orders.csv", "id,amount\n1,10\n2,20\n3,30\n")
    factory.connections(
        """
        erp:
          connector: localfiles
          root: in
          entities:
            orders:
              read: { path: orders.csv, columns: { id: int, amount: int } }
        lake: { connector: localfiles, root: out }
        """
    )
    factory.pipeline(
        "orders_clean",
        "-- Orders worth having.\n"
        "INSERT INTO {{ sink('lake', 'orders', format: 'parquet', strategy: 'replace') }}\n"
        "SELECT id, amount FROM {{ source('erp', 'orders') }} WHERE amount >= 20",
    )
    factory.sidecar("orders_clean", "checks:\n  - not_null: [id]\n  - row_count: { min: 3 }\n")
    factory.write("definitions.py", DEFINITIONS)
    return factory


def test_the_pages_show_what_ran(shop: ProjectFactory, tmp_path: Path) -> None:
    """Graph, overview and checks name the assets, what landed, and the check that failed; ending leaves no process."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text(SETTINGS)
    in_process = {"execution": {"config": {"in_process": {}}}}
    with dev_server(shop.directory / "definitions.py", home=home) as server:
        observed = {"ops": {"shop": {"config": {"checks": "observe"}}}}
        assert server.follow(server.launch(ASSETS, {**in_process, **observed})) == "SUCCESS"

        graph = page(f"{server.url}/locations/__repository__@{server.location}/asset-groups/shop/lineage")
        words = visible_text(graph)
        assert "Materialize all (3)" in words
        for name in ("src_erp__orders", "orders_clean", "pz_state"):
            assert name in words
        assert graph.count("<foreignObject") >= len(ASSETS)

        overview = visible_text(page(f"{server.url}/assets/shop/orders_clean?view=overview"))
        assert "Orders worth having." in overview
        assert "Row count 2" in overview
        assert "Latest check results 1 1" in overview
        assert "BIGINT" not in overview
        assert overview.count("INTEGER") == len(("id", "amount"))

        picture = tmp_path / "checks.png"
        checks = visible_text(page(f"{server.url}/assets/shop/orders_clean?view=checks", picture=picture))
        assert "Checks (2)" in checks
        assert "check_orders_clean_not_null_id Succeeded" in checks
        assert "check_orders_clean_row_count Failed" in checks

        assert picture.stat().st_size > 20_000  # an empty page compresses to less
