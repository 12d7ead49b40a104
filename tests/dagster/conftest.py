"""A small project and the means to materialize it in an ephemeral instance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, build_pz_definitions
from pz_engine.testing.project_factory import ProjectFactory


@pytest.fixture
def shop(tmp_path: Path) -> ProjectFactory:
    """Two flows: orders with checks to a parquet file, an incremental feed to a DuckDB file."""
    factory = ProjectFactory(tmp_path / "shop", 'name: shop\nversion: "1"\nengine: { threads: 2 }\n')
    factory.write("in/orders.csv", "id,amount\n1,10\n2,20\n3,30\n")
    factory.write("in/events.csv", "id,seen_at\n1,2026-01-01 00:00:00\n2,2026-01-02 00:00:00\n")
    factory.connections(
        """
        erp:
          connector: localfiles
          root: in
          entities:
            orders:
              read: { path: orders.csv, columns: { id: int, amount: int } }
            events:
              read:
                path: events.csv
                columns: { id: int, seen_at: timestamp }
                sync: { mode: incremental, cursor: seen_at }
        lake:
          connector: localfiles
          root: out
        mart:
          connector: duckdb
          path: mart.duckdb
        """
    )
    factory.pipeline(
        "orders_clean",
        "-- Orders worth having.\n"
        "INSERT INTO {{ sink('lake', 'orders', format: 'parquet', strategy: 'replace') }}\n"
        "SELECT id, amount FROM {{ source('erp', 'orders') }} WHERE amount >= 20",
    )
    factory.sidecar("orders_clean", "tags: [daily]\nchecks:\n  - not_null: [id]\n  - row_count: { min: 1 }\n")
    factory.pipeline(
        "events_merged",
        "INSERT INTO {{ sink('mart', 'events', strategy: 'merge', keys: ['id']) }}\n"
        "SELECT id, seen_at FROM {{ source('erp', 'events') }}",
    )
    return factory


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """An in-memory Dagster instance."""
    with dg.DagsterInstance.ephemeral() as found:
        yield found


class Workbench:
    """Definitions of a project, and runs of them."""

    def __init__(self, factory: ProjectFactory, instance: dg.DagsterInstance, **options: Any) -> None:
        self.factory = factory
        self.instance = instance
        self.project = PzProject(factory.directory)
        self.definitions = build_pz_definitions(self.project, **options)

    @property
    def assets(self) -> list[dg.AssetsDefinition]:
        """The executable asset definitions."""
        return [each for each in self.definitions.assets or [] if isinstance(each, dg.AssetsDefinition)]

    def materialize(
        self, selection: Any = None, *, raise_on_error: bool = True, run_config: Any = None
    ) -> dg.ExecuteInProcessResult:
        """Materialize in this process."""
        return dg.materialize(
            self.assets,
            instance=self.instance,
            resources=self.definitions.resources,
            selection=selection,
            raise_on_error=raise_on_error,
            run_config=run_config,
        )


@pytest.fixture
def bench(shop: ProjectFactory, instance: dg.DagsterInstance) -> Workbench:
    """The shop project, checks gating."""
    return Workbench(shop, instance)
