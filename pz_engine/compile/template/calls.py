"""What a rendered template asked for: its calls, with the lines they stand on."""

from __future__ import annotations

from msgspec import Struct, field

from pz_engine.model.entity import ReadSide, WriteSide
from pz_engine.model.pipeline import PipelineFile

SINK_MARKER = "__pz_sink__"
"""Starts the text that stands for a `sink()` call."""

WATERMARK_MARKER = "__pz_watermark__"
"""Starts the text inside the quoted literal that stands for a `watermark()` call."""

CTE_MARKER = "__pz_cte__"
"""Starts the name of the common table expression an ephemeral pipeline becomes."""

MAX_TEXT = 1_000
"""Most characters of a name that a call is given."""


def watermark_sentinel(connection: str, entity: str) -> str:
    """Return the text that stands for an entity's watermark until a run puts a literal in its place."""
    return f"{WATERMARK_MARKER}{connection}.{entity}"


class SourceCall(Struct, frozen=True):
    """One `source()`."""

    connection: str
    entity: str
    line: int
    read: ReadSide | None
    """What the call declared; None for a bare call."""


class SinkCall(Struct, frozen=True):
    """One `sink()`."""

    connection: str
    entity: str
    line: int
    marker: str
    write: WriteSide | None
    """What the call declared; None for a bare call."""


class RefCall(Struct, frozen=True):
    """One `ref()`."""

    pipeline: str
    line: int


class WatermarkCall(Struct, frozen=True):
    """One `watermark()`."""

    connection: str
    entity: str
    line: int

    @property
    def sentinel(self) -> str:
        """Return the text inside the literal."""
        return watermark_sentinel(self.connection, self.entity)


class RecordedCalls(Struct):
    """Calls of one pipeline in the order they were evaluated."""

    sources: list[SourceCall] = field(default_factory=list)
    sinks: list[SinkCall] = field(default_factory=list)
    refs: list[RefCall] = field(default_factory=list)
    watermarks: list[WatermarkCall] = field(default_factory=list)
    uses_run_identity: bool = False


class RenderedPipeline(Struct, frozen=True):
    """A pipeline after its template ran."""

    file: PipelineFile
    sql: str
    """Rendered text; markers stand for sinks, watermarks and ephemerals."""

    calls: RecordedCalls

    @property
    def name(self) -> str:
        """Return the pipeline's name."""
        return self.file.name
