"""Pipelines after their template ran, brought together: what each reads, refers to and compiles to.

Ephemerals are looked through: their reads, references and watermarks belong to every consumer.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from pz_engine.compile.ephemeral import inline_ephemerals
from pz_engine.compile.template.calls import RenderedPipeline, WatermarkCall
from pz_engine.duck.introspect import SqlParser
from pz_engine.duck.quoting import quote_literal
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.entity import staging_name

EntityKey = tuple[str, str]
"""Connection and entity."""


class AssembledPipeline(Struct):
    """One non-ephemeral pipeline with its ephemerals inlined."""

    rendered: RenderedPipeline
    sql: str
    reads: tuple[EntityKey, ...] = ()
    """Entities it reads, in order of first mention."""

    refs: tuple[str, ...] = ()
    """Non-ephemeral pipelines it refers to."""

    watermark_calls: dict[str, list[tuple[WatermarkCall, str]]] = field(default_factory=dict)
    """Calls of each sentinel in the order they stand in `sql`, with their files."""

    read_lines: dict[EntityKey, int] = field(default_factory=dict)
    """Where the pipeline's own file reads each entity, or refers to the ephemeral that does."""

    used_sentinels: tuple[str, ...] = ()
    """Sentinels that are part of the query, not only of a comment."""

    uses_run_identity: bool = False

    @property
    def name(self) -> str:
        """Return the pipeline's name."""
        return self.rendered.name

    @property
    def file(self) -> str:
        """Return the pipeline's file."""
        return self.rendered.file.file

    @property
    def watermarks(self) -> dict[str, tuple[WatermarkCall, str]]:
        """Return the first call of each sentinel and the file it stands in."""
        return {sentinel: calls[0] for sentinel, calls in self.watermark_calls.items()}

    def watermark_at(self, sentinel: str, location: int) -> tuple[WatermarkCall, str]:
        """Return the call that a byte of `sql` comes from, or the first one where that cannot be told."""
        calls, literal = self.watermark_calls[sentinel], quote_literal(sentinel).encode()
        text = self.sql.encode()
        index = text.count(literal, 0, location)
        return calls[index] if text.count(literal) == len(calls) and index < len(calls) else calls[0]

    def tables(self) -> dict[str, str]:
        """Return the staging table of each sentinel's entity."""
        return {
            sentinel: staging_name(call.connection, call.entity) for sentinel, (call, _) in self.watermarks.items()
        }  # fmt: skip


def assemble(
    rendered: Mapping[str, RenderedPipeline],
    queries: Mapping[str, str],
    ephemerals: frozenset[str],
    parser: SqlParser,
    problems: ProblemCollector,
) -> dict[str, AssembledPipeline]:
    """Inline ephemerals into every other pipeline; where that would give another query, it is `PZ0401`.

    Args:
        rendered: every pipeline by name.
        queries: normalised query of every pipeline.
        ephemerals: names of the ephemeral ones.
        parser: DuckDB's parser; used only when something is inlined.
        problems: receives the refusals.
    """
    return {
        name: _assemble(pipeline, rendered, queries, ephemerals, parser, problems)
        for name, pipeline in rendered.items()
        if name not in ephemerals
    }


def consumed_ephemerals(pipeline: RenderedPipeline, ephemerals: frozenset[str]) -> tuple[str, ...]:
    """Return the ephemerals that a pipeline refers to, in order of first mention."""
    return tuple(dict.fromkeys(call.pipeline for call in pipeline.calls.refs if call.pipeline in ephemerals))


def _assemble(
    pipeline: RenderedPipeline,
    rendered: Mapping[str, RenderedPipeline],
    queries: Mapping[str, str],
    ephemerals: frozenset[str],
    parser: SqlParser,
    problems: ProblemCollector,
) -> AssembledPipeline:
    inlined = consumed_ephemerals(pipeline, ephemerals)
    parts = [pipeline, *(rendered[name] for name in inlined)]
    watermarks: dict[str, list[tuple[WatermarkCall, str]]] = {}
    for part in [*(rendered[name] for name in sorted(inlined)), pipeline]:
        for call in part.calls.watermarks:
            watermarks.setdefault(call.sentinel, []).append((call, part.file.file))
    ref_lines = {call.pipeline: call.line for call in reversed(pipeline.calls.refs)}
    read_lines: dict[EntityKey, int] = {}
    for part in parts:
        for source in part.calls.sources:
            line = source.line if part is pipeline else ref_lines[part.name]
            read_lines.setdefault((source.connection, source.entity), line)
    sql = inline_ephemerals(queries[pipeline.name], {name: queries[name] for name in inlined}, parser)
    if sql is None:
        problems.add(
            "PZ0401", f"pipeline '{pipeline.name}' cannot take in {', '.join(inlined)}: the whole would be another query",
            file=pipeline.file.file, line=1, hint=f"write materialization: view for {inlined[0]}, and close its brackets",
        )  # fmt: skip
    refs = dict.fromkeys(call.pipeline for part in parts for call in part.calls.refs)
    return AssembledPipeline(
        pipeline,
        sql or queries[pipeline.name],
        tuple(read_lines),
        tuple(name for name in refs if name not in ephemerals),
        watermarks,
        read_lines,
        (),
        any(part.calls.uses_run_identity for part in parts),
    )
