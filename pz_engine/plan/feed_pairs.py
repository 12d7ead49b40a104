"""Which feeds may feed which writes; only an opened connector tells that a read is a feed.

Judged on the whole graph, like the pairs that compile judges.
"""

from __future__ import annotations

from collections.abc import Mapping

from pz_engine.compile.dag import CompiledProject, SinkWriteNode, SourceLoadNode
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.policies import Strategy
from pz_engine.model.run import ReadShape
from pz_engine.plan.targets import place_of


def check_feed_pairs(
    compiled: CompiledProject, shapes: Mapping[str, ReadShape | None], problems: ProblemCollector
) -> None:
    """Refuse a feed into `replace` (`PZ0335`), and into `append` without consent (`PZ0214`).

    Args:
        compiled: the project.
        shapes: how each source load is read, by node id.
        problems: receives one problem per pair.
    """
    graph = compiled.graph
    for sink in graph.nodes:
        if not isinstance(sink, SinkWriteNode) or sink.strategy is Strategy.MERGE:
            continue
        above = graph.ancestors([sink.id])
        for source in graph.nodes:
            is_feed = source.id in above and shapes.get(source.id) is ReadShape.FEED
            if is_feed and isinstance(source, SourceLoadNode):
                _refuse(compiled, sink, source, problems)


def _refuse(compiled: CompiledProject, sink: SinkWriteNode, source: SourceLoadNode, problems: ProblemCollector) -> None:
    file, line = place_of(compiled, sink)
    if sink.strategy is Strategy.REPLACE:
        problems.add(
            "PZ0335",
            f"output '{sink.name}' is replaced by each run, but '{source.key}' is a feed and gives only what is new",
            file=file,
            line=line,
            hint="write strategy: merge with keys",
        )
    elif not sink.accepts_duplicates:
        problems.add(
            "PZ0214",
            f"output '{sink.name}' appends what the feed '{source.key}' gives; a retry can append rows twice",
            file=file,
            line=line,
            hint="write strategy: merge with keys, or duplicates: accept",
        )
