"""pz_engine: a batch SQL ETL engine on DuckDB.

Hosts import from here, connector authors from `pz_engine.connectors`, testers from `pz_engine.testing`; every deeper
path is private. Names are loaded on first use, so importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pz_engine.app.catch_up import StopReason, next_step
    from pz_engine.app.compile import column_lineage, compile_project
    from pz_engine.app.host import EngineOverrides, RunOutcome, RunRecord, RunRequest, Selection
    from pz_engine.app.run import run_project
    from pz_engine.app.runs import list_runs
    from pz_engine.app.selecting import select_nodes
    from pz_engine.app.state_entries import (
        StoredEntries,
        compare_positions,
        entry_fingerprint,
        has_public_tokens,
        read_entries,
        replace_entry,
    )
    from pz_engine.app.state_seed import WatermarkSeed, seed_watermark, stored_watermark_keys
    from pz_engine.app.validate import validate_project
    from pz_engine.base.cancellation import CancelToken
    from pz_engine.base.redact import ErrorSummary
    from pz_engine.base.state_folder import locate_state
    from pz_engine.cli.render.console import event_lines
    from pz_engine.cli.render.hints import bottleneck
    from pz_engine.compile.dag import (
        CheckNode,
        CompiledProject,
        Flow,
        Graph,
        Node,
        PipelineNode,
        SinkWriteNode,
        SourceLoadNode,
    )
    from pz_engine.compile.lineage.values import ColumnLineage, ColumnSource, PipelineLineage
    from pz_engine.errors.diagnostics import Diagnostic, Severity
    from pz_engine.errors.exceptions import PzConfigError, PzError, PzStateError, PzValidationError
    from pz_engine.errors.unexpected import diagnose
    from pz_engine.events.run_journal import journal_record
    from pz_engine.events.types import (
        AmbiguousDateInferenceDetected,
        BreakerStateChanged,
        ConnectorLog,
        LossyIntegerInferenceDetected,
        MergeKeyDuplicatesDetected,
        NodeCompleted,
        NodeProgress,
        NodeStarted,
        RetentionSwept,
        RetryScheduled,
        RunCompleted,
        RunEvent,
        RunStarted,
        SourceDriftDetected,
    )
    from pz_engine.model.checks import Check, CheckType
    from pz_engine.model.connection import Connection
    from pz_engine.model.policies import Materialization, OnDelete, SchemaPolicy, Strategy, SyncMode
    from pz_engine.model.project import Project
    from pz_engine.model.run import NodeKind, NodeResult, NodeStats, NodeStatus, RunStatus
    from pz_engine.state.audit_log import AuditRecord, read_audit
    from pz_engine.state.store import KeyedStore, ScopedStore

__all__ = [
    "AmbiguousDateInferenceDetected",
    "AuditRecord",
    "BreakerStateChanged",
    "CancelToken",
    "Check",
    "CheckNode",
    "CheckType",
    "ColumnLineage",
    "ColumnSource",
    "CompiledProject",
    "Connection",
    "ConnectorLog",
    "Diagnostic",
    "EngineOverrides",
    "ErrorSummary",
    "Flow",
    "Graph",
    "KeyedStore",
    "LossyIntegerInferenceDetected",
    "Materialization",
    "MergeKeyDuplicatesDetected",
    "Node",
    "NodeCompleted",
    "NodeKind",
    "NodeProgress",
    "NodeResult",
    "NodeStarted",
    "NodeStats",
    "NodeStatus",
    "OnDelete",
    "PipelineLineage",
    "PipelineNode",
    "Project",
    "PzConfigError",
    "PzError",
    "PzStateError",
    "PzValidationError",
    "RetentionSwept",
    "RetryScheduled",
    "RunCompleted",
    "RunEvent",
    "RunOutcome",
    "RunRecord",
    "RunRequest",
    "RunStarted",
    "RunStatus",
    "SchemaPolicy",
    "ScopedStore",
    "Selection",
    "Severity",
    "SinkWriteNode",
    "SourceDriftDetected",
    "SourceLoadNode",
    "StopReason",
    "StoredEntries",
    "Strategy",
    "SyncMode",
    "WatermarkSeed",
    "__version__",
    "bottleneck",
    "column_lineage",
    "compare_positions",
    "compile_project",
    "diagnose",
    "entry_fingerprint",
    "event_lines",
    "has_public_tokens",
    "journal_record",
    "list_runs",
    "locate_state",
    "next_step",
    "read_audit",
    "read_entries",
    "replace_entry",
    "run_project",
    "seed_watermark",
    "select_nodes",
    "stored_watermark_keys",
    "validate_project",
]

_HOMES = {
    "app.catch_up": ("StopReason", "next_step"),
    "app.runs": ("list_runs",),
    "base.state_folder": ("locate_state",),
    "app.compile": ("column_lineage", "compile_project"),
    "app.host": ("EngineOverrides", "RunOutcome", "RunRecord", "RunRequest", "Selection"),
    "app.run": ("run_project",),
    "app.validate": ("validate_project",),
    "app.selecting": ("select_nodes",),
    "app.state_seed": ("WatermarkSeed", "seed_watermark", "stored_watermark_keys"),
    "app.state_entries": (
        "StoredEntries",
        "compare_positions",
        "entry_fingerprint",
        "has_public_tokens",
        "read_entries",
        "replace_entry",
    ),
    "base.cancellation": ("CancelToken",),
    "base.redact": ("ErrorSummary",),
    "cli.render.console": ("event_lines",),
    "cli.render.hints": ("bottleneck",),
    "compile.dag": (
        "CheckNode",
        "CompiledProject",
        "Flow",
        "Graph",
        "Node",
        "PipelineNode",
        "SinkWriteNode",
        "SourceLoadNode",
    ),
    "compile.lineage.values": ("ColumnLineage", "ColumnSource", "PipelineLineage"),
    "errors.diagnostics": ("Diagnostic", "Severity"),
    "errors.unexpected": ("diagnose",),
    "errors.exceptions": ("PzConfigError", "PzError", "PzStateError", "PzValidationError"),
    "events.run_journal": ("journal_record",),
    "events.types": (
        "AmbiguousDateInferenceDetected",
        "BreakerStateChanged",
        "ConnectorLog",
        "LossyIntegerInferenceDetected",
        "MergeKeyDuplicatesDetected",
        "NodeCompleted",
        "NodeProgress",
        "NodeStarted",
        "RetentionSwept",
        "RetryScheduled",
        "RunCompleted",
        "RunEvent",
        "RunStarted",
        "SourceDriftDetected",
    ),
    "model.checks": ("Check", "CheckType"),
    "model.connection": ("Connection",),
    "model.policies": ("Materialization", "OnDelete", "SchemaPolicy", "Strategy", "SyncMode"),
    "model.project": ("Project",),
    "model.run": ("NodeKind", "NodeResult", "NodeStats", "NodeStatus", "RunStatus"),
    "state.audit_log": ("AuditRecord", "read_audit"),
    "state.store": ("KeyedStore", "ScopedStore"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'pz_engine' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"pz_engine.{home}"), name)
    globals()[name] = value
    return value
