"""Pipelines after their template ran, brought together: what each reads, refers to and compiles to.

Ephemerals are looked through: their reads, references and watermarks belong to every consumer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pz_engine.compile.ephemeral import inline_ephemerals
from pz_engine.compile.template.calls import RenderedPipeline, WatermarkCall
from pz_engine.duck.introspect import SqlParser
from pz_engine.model.entity import staging_name

EntityKey = tuple[str, str]
"""Connection and entity."""


@dataclass(slots=True)
class AssembledPipeline:
    """One non-ephemeral pipeline with its ephemerals inlined."""

    rendered: RenderedPipeline
    sql: str
    reads: tuple[EntityKey, ...] = ()
    """Entities it reads, in order of first mention."""

    refs: tuple[str, ...] = ()
    """Non-ephemeral pipelines it refers to."""

    watermarks: dict[str, tuple[WatermarkCall, str]] = field(default_factory=dict)
    """First call of each sentinel and the file it stands in."""

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
) -> dict[str, AssembledPipeline]:
    """Inline ephemerals into every other pipeline.

    Args:
        rendered: every pipeline by name.
        queries: normalised query of every pipeline.
        ephemerals: names of the ephemeral ones.
        parser: DuckDB's parser; used only when something is inlined.
    """
    return {
        name: _assemble(pipeline, rendered, queries, ephemerals, parser)
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
) -> AssembledPipeline:
    inlined = consumed_ephemerals(pipeline, ephemerals)
    parts = [pipeline, *(rendered[name] for name in inlined)]
    watermarks: dict[str, tuple[WatermarkCall, str]] = {}
    for part in parts:
        for call in part.calls.watermarks:
            watermarks.setdefault(call.sentinel, (call, part.file.file))
    refs = dict.fromkeys(call.pipeline for part in parts for call in part.calls.refs)
    return AssembledPipeline(
        pipeline,
        inline_ephemerals(queries[pipeline.name], {name: queries[name] for name in inlined}, parser),
        tuple(dict.fromkeys((call.connection, call.entity) for part in parts for call in part.calls.sources)),
        tuple(name for name in refs if name not in ephemerals),
        watermarks,
        (),
        any(part.calls.uses_run_identity for part in parts),
    )
