"""Results in an order that Dagster accepts.

Dagster refuses a dependency yielded after its dependent; the engine completes fused nodes together, so results wait here
until everything selected above them was yielded or can no longer be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pz_dagster.event_mapping import DagsterResult
from pz_dagster.selection import OpSelection
from pz_engine import Graph, NodeResult


class ResultBuffer:
    """Holds results back until their selected ancestors are settled."""

    def __init__(self, graph: Graph, selection: OpSelection) -> None:
        self._graph = graph
        self._selected = {*selection.assets, *selection.checks}
        self._waiting: list[tuple[str, DagsterResult]] = []

    def add(self, name: str, result: DagsterResult) -> Iterator[DagsterResult]:
        """Take a node's result; a result of no node passes at once."""
        if not name or name not in self._graph.by_name:
            yield result
            return
        self._waiting.append((name, result))

    def settle(self, completed: Mapping[str, NodeResult]) -> Iterator[DagsterResult]:
        """Yield what may be yielded, given the nodes that have completed in any way."""
        held = {name for name, _ in self._waiting}
        progress = True
        while progress:
            progress = False
            for entry in list(self._waiting):
                name, result = entry
                node = self._graph.by_name[name]
                above = {self._graph.by_id[parent].name for parent in self._graph.ancestors([node.id])}
                if all(other in completed and other not in held for other in above & self._selected):
                    self._waiting.remove(entry)
                    held.discard(name)
                    progress = True
                    yield result

    def flush(self) -> Iterator[DagsterResult]:
        """Yield the rest, when the run is over."""
        order = {node.name: index for index, node in enumerate(self._graph.nodes)}
        for _, result in sorted(self._waiting, key=lambda entry: order[entry[0]]):
            yield result
        self._waiting.clear()
