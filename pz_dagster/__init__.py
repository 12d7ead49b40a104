"""pz_dagster: a pz project as Dagster assets and asset checks.

Errors are in `pz_dagster.errors`; every other module is private.
"""

from pz_dagster.assets import build_pz_assets, pz_assets
from pz_dagster.automation import build_pz_schedules, build_pz_sensors
from pz_dagster.component import PzProjectComponent
from pz_dagster.definitions import build_pz_definitions
from pz_dagster.invocation import PzInvocation
from pz_dagster.project import PzProject
from pz_dagster.resource import PzResource
from pz_dagster.run_config import PzRunConfig
from pz_dagster.settings import PzTranslatorSettings
from pz_dagster.translator import PzTranslator

__all__ = [
    "PzInvocation",
    "PzProject",
    "PzProjectComponent",
    "PzResource",
    "PzRunConfig",
    "PzTranslator",
    "PzTranslatorSettings",
    "build_pz_assets",
    "build_pz_definitions",
    "build_pz_schedules",
    "build_pz_sensors",
    "pz_assets",
]
