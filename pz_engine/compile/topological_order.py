"""Topological order of nodes, the same on every machine.

Among ready nodes the smallest goes first: by kind, then name, then id.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from pz_engine.compile.dag import Node
from pz_engine.errors.collector import ProblemCollector


def order_nodes(nodes: Sequence[Node], problems: ProblemCollector) -> tuple[Node, ...]:
    """Return the nodes in order; a cycle is one `PZ0202` with its path, and an empty result."""
    by_id = {node.id: node for node in nodes}
    waiting = {node.id: len(node.depends_on) for node in nodes}
    children: dict[str, list[str]] = {node.id: [] for node in nodes}
    for node in nodes:
        for parent in node.depends_on:
            children[parent].append(node.id)
    ready = [_rank(node) for node in nodes if not node.depends_on]
    heapq.heapify(ready)
    ordered: list[Node] = []
    while ready:
        node = by_id[heapq.heappop(ready)[2]]
        ordered.append(node)
        for child in children[node.id]:
            waiting[child] -= 1
            if waiting[child] == 0:
                heapq.heappush(ready, _rank(by_id[child]))
    if len(ordered) == len(nodes):
        return tuple(ordered)
    done = {node.id for node in ordered}
    path = _cycle({node.id: node for node in nodes if node.id not in done})
    problems.add(
        "PZ0202", f"pipelines depend on each other in a circle: {' -> '.join(path)}",
        hint=f"remove one of these references, for example ref('{path[1]}') in {path[0]}",
    )  # fmt: skip
    return ()


def _rank(node: Node) -> tuple[int, str, str]:
    return node.kind.rank, node.name, node.id


def _cycle(remaining: dict[str, Node]) -> list[str]:
    current = min(remaining.values(), key=lambda node: _rank(node)[:2])
    path: list[Node] = []
    while current not in path:
        path.append(current)
        current = min((remaining[i] for i in current.depends_on if i in remaining), key=lambda node: node.name)
    return [node.name for node in [*path[path.index(current) :], current]]
