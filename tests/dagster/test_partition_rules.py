"""Which units can be cut: sinks that bear repeating, loads that a selection leaves out, what a day is."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, build_pz_assets
from pz_dagster.errors import PzDefinitionError
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.test_partitions import DAYS, TIMES, landed, partitioned, run

BY: Any = {"partitions_def": DAYS, "partition_by": ["erp.events"]}


def partitioned_ops(shop: ProjectFactory, **options: Any) -> set[str]:
    found = build_pz_assets(PzProject(shop.directory), **{**BY, **options})
    return {str(each.op.name) for each in found if each.partitions_def is not None}


def test_an_append_may_be_repeated_with_consent(shop: ProjectFactory) -> None:
    """`duplicates: accept` says that rows may come twice."""
    shop.pipeline(
        "events_added",
        "INSERT INTO {{ sink('mart', 'added', strategy: 'append', duplicates: 'accept') }}\n"
        "SELECT id FROM {{ source('erp', 'events') }}",
    )
    (shop.directory / "pipelines/events_merged.sql").unlink()
    assert partitioned_ops(shop) == {"shop__mart_added"}


def test_without_a_stored_watermark_nothing_is_warned_about(
    shop: ProjectFactory, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    """`PZ0704` is about an entity that has both."""
    assert run(partitioned(shop, instance), "2026-01-02").success
    assert "PZ0704" not in capsys.readouterr().err


def test_a_replace_of_slices_may_be_repeated(shop: ProjectFactory) -> None:
    """It overwrites the slices that it is given; a plain one beside it would erase what other partitions wrote."""
    with pytest.raises(PzDefinitionError, match=r"PZ0703.*lake\.orders"):
        partitioned_ops(shop, op_per="project")
    text = (shop.directory / "pipelines/orders_clean.sql").read_text()
    sliced = text.replace("strategy: 'replace'", "strategy: 'replace', partition_by: ['id']")
    shop.write("pipelines/orders_clean.sql", sliced)
    assert partitioned_ops(shop, op_per="project") == {"shop"}


def test_a_unit_is_cut_by_what_it_runs(shop: ProjectFactory) -> None:
    """A load that a selection leaves out is still read, so the op is partitioned all the same."""
    assert partitioned_ops(shop, select="mart.events") == {"shop__mart_events"}


@pytest.mark.parametrize(
    ("definition", "is_fine"),
    [
        (dg.WeeklyPartitionsDefinition("2026-01-01"), True),
        (dg.MonthlyPartitionsDefinition("2026-01-01"), True),
        (dg.DailyPartitionsDefinition("2026-01-01", hour_offset=6), False),
        (dg.DailyPartitionsDefinition("2026-01-01", minute_offset=30), False),
    ],
    ids=["weeks", "months", "six o'clock", "half past"],
)
def test_dates_need_days_that_begin_at_midnight(shop: ProjectFactory, definition: Any, is_fine: bool) -> None:
    """A date has no time of the day at which it could be cut."""
    text = (shop.directory / "connections.yml").read_text()
    shop.write("connections.yml", text.replace("seen_at: timestamp", "seen_at: date"))
    if is_fine:
        assert partitioned_ops(shop, partitions_def=definition) == {"shop__mart_events"}
    else:
        with pytest.raises(PzDefinitionError, match=r"PZ0703.*whole days"):
            partitioned_ops(shop, partitions_def=definition)


def test_a_gap_is_read_by_nobody(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Dagster makes a run of each unbroken part; the day between them is neither read nor recorded."""
    shop.write("in/events.csv", TIMES)
    bench = partitioned(shop, instance)
    run(bench, "2026-01-01")
    run(bench, "2026-01-03", "2026-01-05")
    assert landed(shop) == [2, 3, 7, 8]
    assert instance.get_materialized_partitions(dg.AssetKey(["mart", "events"])) == {
        "2026-01-01",
        "2026-01-03",
        "2026-01-04",
        "2026-01-05",
    }
