"""A `--select` expression resolved on a compiled project; light enough for hosts that only show one."""

from __future__ import annotations

from pz_engine.compile.dag import CompiledProject
from pz_engine.compile.selection import resolve_selection


def select_nodes(compiled: CompiledProject, expression: str | None) -> frozenset[str]:
    """Resolve a `--select` expression; None selects everything.

    Raises:
        PzValidationError: `PZ0210`.
    """
    return resolve_selection(compiled, expression=expression, everything=expression is None)
