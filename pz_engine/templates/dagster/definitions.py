"""The project as Dagster definitions."""

from pathlib import Path

from pz_dagster import PzProject, build_pz_definitions

project = PzProject(Path(__file__).parent)
defs = build_pz_definitions(project)
