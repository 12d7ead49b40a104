"""Which reads may feed which writes; judged on the whole graph, never on a selection."""

from __future__ import annotations

from pz_engine.compile.dag import CheckNode, Graph, Node, SinkWriteNode, SourceLoadNode
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.policies import OnDelete, Strategy, SyncMode


def check_pairs(
    graph: Graph, places: dict[str, tuple[str, int | None]], problems: ProblemCollector, notes: list[str]
) -> None:
    """Check every sink against every source upstream of it.

    Args:
        graph: every node.
        places: file and line of the `sink()` call of each sink write, by id.
        problems: receives `PZ0214` and `PZ0335` to `PZ0337`.
        notes: receives what is allowed but worth knowing.
    """
    for sink in graph.nodes:
        if not isinstance(sink, SinkWriteNode):
            continue
        sources = _sources(graph, sink)
        for source in sources:
            _check_pair(sink, source, places[sink.id], problems, notes)
        _check_deletes(sink, sources, places[sink.id], problems)


def _sources(graph: Graph, sink: SinkWriteNode) -> list[SourceLoadNode]:
    above = graph.ancestors([sink.id])
    return [node for node in graph.nodes if node.id in above and isinstance(node, SourceLoadNode)]


def _check_pair(
    sink: SinkWriteNode,
    source: SourceLoadNode,
    place: tuple[str, int | None],
    problems: ProblemCollector,
    notes: list[str],
) -> None:
    file, line = place
    if source.mode is SyncMode.CDC:
        if sink.strategy is not Strategy.MERGE:
            problems.add(
                "PZ0335", f"output '{sink.name}' uses {sink.strategy.value}, but '{source.key}' captures changes", file=file,
                line=line, hint="write strategy: merge with keys and on_delete",
            )  # fmt: skip
        return
    if source.incremental is not None:
        if sink.strategy is Strategy.REPLACE:
            problems.add(
                "PZ0335", f"output '{sink.name}' is replaced by each run, but '{source.key}' is read incrementally", file=file,
                line=line, hint="write strategy: merge with keys",
            )  # fmt: skip
        elif sink.strategy is Strategy.APPEND and not sink.accepts_duplicates:
            problems.add(
                "PZ0214", f"output '{sink.name}' appends what '{source.key}' reads incrementally; a retry can append rows twice",
                file=file, line=line, hint="write strategy: merge with keys, or duplicates: accept",
            )  # fmt: skip
        return
    if source.is_mode_explicit and sink.strategy is not Strategy.MERGE and not sink.accepts_duplicates:
        notes.append(
            f"output '{sink.name}' is fed by '{source.key}' with sync mode auto: effectively-once is not guaranteed"
        )


def _check_deletes(
    sink: SinkWriteNode, sources: list[SourceLoadNode], place: tuple[str, int | None], problems: ProblemCollector
) -> None:
    file, line = place
    captured = [source for source in sources if source.mode is SyncMode.CDC]
    if captured and sink.strategy is Strategy.MERGE and sink.on_delete is None:
        problems.add(
            "PZ0336", f"output '{sink.name}' does not say what a delete captured from '{captured[0].key}' does", file=file,
            line=line, hint="write on_delete: delete, soft or ignore",
        )  # fmt: skip
    if sink.on_delete is not None and not captured:
        problems.add(
            "PZ0337", f"output '{sink.name}' has on_delete, but nothing upstream captures changes", file=file, line=line,
            hint="remove on_delete, or write sync: {mode: cdc} on the source",
        )  # fmt: skip
    elif sink.on_delete in {OnDelete.DELETE, OnDelete.SOFT} and captured and len(sources) > 1:
        names = ", ".join(f"'{source.key}'" for source in sources)
        problems.add(
            "PZ0337", f"output '{sink.name}' applies deletes, but several sources feed it: {names}", file=file, line=line,
            hint="feed it from the one captured source, or write on_delete: ignore",
        )  # fmt: skip


def is_unused(graph: Graph, node: Node) -> bool:
    """Tell whether nothing but checks depends on a node."""
    return all(isinstance(graph.by_id[child], CheckNode) for child in graph.children[node.id])
