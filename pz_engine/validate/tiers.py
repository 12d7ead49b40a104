"""The validation tiers that need a compiled project; each runs only after the one before found no error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pz_engine.compile.dag import CompiledProject
from pz_engine.validate.report import ValidationReport

if TYPE_CHECKING:
    from pz_engine.duck.instance import DuckInstance

__all__ = ["ValidationReport", "check_connectors", "check_sql"]


def check_connectors(compiled: CompiledProject) -> ValidationReport:
    """Tier 3: every connection and its entities against their connectors, offline."""
    from pz_engine.validate.connector_config import check_connector_config

    return check_connector_config(compiled)


def check_sql(compiled: CompiledProject, instance: DuckInstance | None = None) -> ValidationReport:
    """Tier 4: every pipeline's SQL against empty tables."""
    from pz_engine.validate.dry_compile import dry_compile

    return dry_compile(compiled, instance)
