"""Node ids: a fingerprint of what a node does.

Sixteen hex digits of SHA-256 over parts joined by newlines. Credentials, names of connectors, sync settings, retries
and tags are not part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from pz_engine.base.stable_json import canonical_json
from pz_engine.compile.dag import PushedHints
from pz_engine.model.checks import Check
from pz_engine.model.entity import WriteSide
from pz_engine.model.policies import Materialization


def source_load_id(
    connection: str, entity: str, options: Mapping[str, Any], columns: Mapping[str, str] | None, hints: PushedHints
) -> str:
    """Return the id of a source load."""
    parts = ["source-load", connection, entity, canonical_json(options), canonical_json(columns)]
    if not hints.is_empty:
        pushed = None if hints.columns is None else list(hints.columns)
        parts += [canonical_json(pushed), hints.predicate_sql or ""]
    return _fingerprint(parts)


def pipeline_id(name: str, materialization: Materialization, sql: str) -> str:
    """Return the id of a pipeline."""
    return _fingerprint(["pipeline", name, materialization.value, sql])


def check_id(pipeline: str, check: Check) -> str:
    """Return the id of a check."""
    return _fingerprint(["check", pipeline, check.type.value, ",".join(check.columns), canonical_json(check.options)])


def sink_write_id(connection: str, entity: str, pipeline: str, write: WriteSide) -> str:
    """Return the id of a sink write."""
    return _fingerprint(
        [
            "sink-write",
            connection,
            entity,
            pipeline,
            write.strategy.value,
            write.schema_policy.value,
            canonical_json(write.options),
            canonical_json(list(write.keys)),
            str(write.accepts_duplicates),
            write.on_delete.value if write.on_delete is not None else "",
        ]
    )


def _fingerprint(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
