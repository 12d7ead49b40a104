"""The flights project as Dagster definitions: assets and checks, two schedules, a sensor and freshness policies."""

import os
from datetime import timedelta
from pathlib import Path

from pz_dagster import PzProject, PzTranslator, PzTranslatorSettings, build_pz_definitions, build_pz_sensors

# PZ_EXAMPLE_BREAK=1 loses an airline on the way, so that a check fails and what depends on it is skipped.
IS_BROKEN = os.environ.get("PZ_EXAMPLE_BREAK") == "1"

project = PzProject(Path(__file__).parent, vars={"without_airline": "UA"} if IS_BROKEN else {})
translator = PzTranslator(PzTranslatorSettings(column_lineage=True))
defs = build_pz_definitions(
    project,
    translator=translator,
    schedules={"nightly": "0 3 * * *", "feed_hourly": ("15 * * * *", "+warehouse.flights")},
    sensors=build_pz_sensors(project, backlog=True, translator=translator),
    freshness={"warehouse.flights": timedelta(hours=2), "lake.*": timedelta(days=1)},
)
