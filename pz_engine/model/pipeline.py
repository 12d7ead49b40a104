"""Pipelines and their sidecars, as found on disk."""

from __future__ import annotations

from dataclasses import dataclass

from pz_engine.model.checks import Check
from pz_engine.model.policies import Materialization


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """One `.sql` file."""

    name: str
    file: str
    """Project-relative path."""

    text: str
    """Content with line ends normalised to LF."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One file of `pipelines/configs/`."""

    pipeline: str
    file: str
    line: int | None = None
    materialization: Materialization = Materialization.TABLE
    is_materialization_explicit: bool = False
    """True when the file says `materialization:`; an explicit `table` is never fused."""

    tags: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
