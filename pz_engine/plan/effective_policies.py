"""Effective retry and concurrency policies, as runs apply them and `pz plan` prints them."""

from __future__ import annotations

from pz_engine.base.durations import format_duration
from pz_engine.compile.dag import CompiledProject, Node, SinkWriteNode, SourceLoadNode
from pz_engine.model.policies import RetryPolicy


def retry_policy_of(compiled: CompiledProject, node: Node) -> RetryPolicy:
    """Cascade entity, connection, default; pipelines and checks are never retried."""
    if not isinstance(node, (SourceLoadNode, SinkWriteNode)):
        return RetryPolicy(max_attempts=1)
    return RetryPolicy.cascade(node.retry, compiled.connections[node.connection].retry)


def policy_lines(compiled: CompiledProject) -> tuple[str, ...]:
    """Return one line for each declared retry, then one for each declared concurrency cap."""
    lines: list[str] = []
    for name, connection in sorted(compiled.connections.items()):
        if connection.retry is not None:
            lines.append(f"retry: connection {name} {_policy(RetryPolicy.cascade(connection.retry))}")
    for node in compiled.nodes:
        if isinstance(node, (SourceLoadNode, SinkWriteNode)) and node.retry is not None:
            side = "source" if isinstance(node, SourceLoadNode) else "sink"
            lines.append(f"retry: {side} {node.name} {_policy(retry_policy_of(compiled, node))}")
    lines.extend(
        f"max_concurrency: connection {name} {connection.max_concurrency}"
        for name, connection in sorted(compiled.connections.items())
        if connection.max_concurrency is not None
    )
    return tuple(lines)


def _policy(policy: RetryPolicy) -> str:
    return (
        f"max_attempts={policy.max_attempts} base_delay={format_duration(policy.base_delay)} "
        f"max_delay={format_duration(policy.max_delay)}"
    )
