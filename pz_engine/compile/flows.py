"""Flows: the connected components of the graph."""

from __future__ import annotations

from pz_engine.compile.dag import Flow, Graph, Node, SinkWriteNode
from pz_engine.model.run import NodeKind


def find_flows(graph: Graph) -> tuple[Flow, ...]:
    """Return the flows in the order of their first members."""
    flow_of: dict[str, int] = {}
    members: list[list[Node]] = []
    for node in graph.nodes:
        if node.id not in flow_of:
            flow_of.update(dict.fromkeys(_component(graph, node.id), len(members)))
            members.append([])
        members[flow_of[node.id]].append(node)
    return tuple(Flow(_label(graph, nodes), tuple(node.id for node in nodes)) for nodes in members)


def _component(graph: Graph, start: str) -> set[str]:
    found = {start}
    waiting = [start]
    while waiting:
        current = waiting.pop()
        for neighbour in (*graph.by_id[current].depends_on, *graph.children[current]):
            if neighbour not in found:
                found.add(neighbour)
                waiting.append(neighbour)
    return found


def _label(graph: Graph, nodes: list[Node]) -> str:
    names = [node.name for node in nodes if isinstance(node, SinkWriteNode)]
    if not names:
        names = [node.name for node in nodes if node.kind is not NodeKind.CHECK and _is_last(graph, node)]
    return " + ".join(sorted(names))


def _is_last(graph: Graph, node: Node) -> bool:
    return all(graph.by_id[child].kind is NodeKind.CHECK for child in graph.children[node.id])
