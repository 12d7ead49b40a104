"""`plan.json`: the plan of the whole project, byte-stable."""

from __future__ import annotations

from typing import Any

from pz_engine.plan.strategies import ExecutionPlan, NodePlan

PLAN_VERSION = 1


def plan_document(plan: ExecutionPlan) -> dict[str, Any]:
    """Return the document in its fixed key order; setup statements and configuration are never part of it."""
    return {
        "version": PLAN_VERSION,
        "nodes": [_node(entry) for entry in plan.nodes],
        "memoryBudget": plan.memory_budget.to_json(),
    }


def _node(entry: NodePlan) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": entry.node_id,
        "kind": entry.kind.value,
        "name": entry.name,
        "strategy": entry.strategy.value,
        "partitions": entry.partitions,
        "reason": entry.reason,
    }
    if entry.columns_pushed is not None or entry.predicate_pushed:
        document["columns_pushed"] = entry.columns_pushed
        document["predicate_pushed"] = entry.predicate_pushed
    if entry.is_fused:
        document["fused"] = True
    return document
