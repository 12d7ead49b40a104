"""Warnings about types that DuckDB inferred from a text file; never a failure."""

from __future__ import annotations

from collections.abc import Mapping

from pz_engine.compile.dag import SourceLoadNode
from pz_engine.duck.inference_lints import ambiguous_dates, lossy_integer_columns
from pz_engine.events.types import AmbiguousDateInferenceDetected, LossyIntegerInferenceDetected
from pz_engine.execute.context import Attempt


def lint_inferred_columns(
    attempt: Attempt, node: SourceLoadNode, relation: str, date_formats: Mapping[str, str]
) -> None:
    """Record a warning for lossy whole numbers and one per ambiguous date format."""
    attempt.warnings.examine(node.id, LossyIntegerInferenceDetected, AmbiguousDateInferenceDetected)
    common = {"node_id": node.id, "connection": node.connection, "entity": node.entity}
    columns = lossy_integer_columns(attempt.cursor, relation)
    if columns:
        attempt.warnings.add(LossyIntegerInferenceDetected, **common, columns=columns)
    for each in ambiguous_dates(attempt.cursor, relation, date_formats):
        attempt.warnings.add(AmbiguousDateInferenceDetected, **common, columns=each.columns, format=each.format)
