"""Switches of the translation, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PzTranslatorSettings:
    """How a project looks in Dagster."""

    group_by_folder: bool = False
    """Group pipelines by their folder below `pipelines/`; one group per project otherwise, which keeps small projects
    on one page."""

    key_prefix: tuple[str, ...] = ()
    """Put before every key; for locations that hold the same project twice."""

    sql_in_description: bool = True
    """Show a pipeline's SQL below its first comment; switched off where SQL is confidential."""

    expose_check_samples: bool = False
    """Let sampled rows of failing checks reach Dagster's event log, which many people read."""

    data_versions: bool = True
    """Give incremental loads a data version made of node and watermark, so that a run that found nothing new leaves
    downstream assets in sync."""
