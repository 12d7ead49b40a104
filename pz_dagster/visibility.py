"""Which nodes are assets, and where the checks of the others go.

With `granularity="endpoints"` pipelines are hidden: what is below one is joined to what is above it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pz_dagster.settings import PzTranslatorSettings
from pz_engine import CheckNode, Graph, Node, PipelineNode


def is_visible(node: Node, settings: PzTranslatorSettings) -> bool:
    """Tell whether a node is an asset."""
    if isinstance(node, PipelineNode):
        return settings.granularity == "all"
    return not isinstance(node, CheckNode)


def hidden_pipelines(graph: Graph, settings: PzTranslatorSettings) -> frozenset[str]:
    """Return the names of the pipelines that are no assets."""
    return frozenset(
        node.name for node in graph.nodes if isinstance(node, PipelineNode) and not is_visible(node, settings)
    )


def visible_parents(node: Node, graph: Graph, visible: Collection[str] | Mapping[str, object]) -> tuple[str, ...]:
    """Return the ids a node depends on, each hidden one replaced by what it depends on itself."""
    found: dict[str, None] = {}
    for parent in node.depends_on:
        if parent in visible:
            found[parent] = None
        else:
            found.update(dict.fromkeys(visible_parents(graph.by_id[parent], graph, visible)))
    return tuple(found)


def home_of(check: CheckNode, graph: Graph, visible: Collection[str]) -> Node | None:
    """Return the node a check hangs on: its pipeline, else the nearest visible one above, the first of several."""
    level = [graph.by_name[check.pipeline].id]
    while level:
        shown = {node_id for node_id in level if node_id in visible}
        if len(shown) == 1:
            return graph.by_id[shown.pop()]
        if shown:
            return next(node for node in graph.nodes if node.id in shown)
        level = list(dict.fromkeys(parent for node_id in level for parent in graph.by_id[node_id].depends_on))
    return None
