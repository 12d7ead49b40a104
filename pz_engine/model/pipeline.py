"""Pipelines and their sidecars, as found on disk."""

from __future__ import annotations

from msgspec import Struct

from pz_engine.model.checks import Check
from pz_engine.model.policies import Materialization


class PipelineFile(Struct, frozen=True):
    """One `.sql` file."""

    name: str
    file: str
    """Project-relative path."""

    text: str
    """Content with line ends normalised to LF."""


class Sidecar(Struct, frozen=True):
    """One file of `pipelines/configs/`."""

    pipeline: str
    file: str
    line: int | None = None
    materialization: Materialization = Materialization.TABLE
    is_materialization_explicit: bool = False
    """True when the file says `materialization:`; an explicit `table` is never fused."""

    tags: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
