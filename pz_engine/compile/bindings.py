"""Which surface declares each side of an entity: `connections.yml` or the call, never both.

There is no merging: the side that is declared is the whole declaration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import Struct, structs

from pz_engine.compile.template.calls import RenderedPipeline, SinkCall, SourceCall
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.connection import Connection
from pz_engine.model.entity import Entity, ReadSide, WriteSide


class _Declared(Struct, frozen=True):
    """A side and the call it comes from, when a call declared it."""

    side: ReadSide | WriteSide
    is_explicit: bool


def effective_connections(
    connections: Mapping[str, Connection], rendered: Sequence[RenderedPipeline], problems: ProblemCollector
) -> dict[str, Connection]:
    """Return the connections with everything that calls declare; two declarations of one side are `PZ0341`.

    Calls that name an unknown connection are left for a later stage.
    """
    binder = _Binder(connections, problems)
    for pipeline in rendered:
        for source in pipeline.calls.sources:
            binder.source(pipeline, source)
        for sink in pipeline.calls.sinks:
            binder.sink(pipeline, sink)
    return binder.result()


class _Binder:
    def __init__(self, connections: Mapping[str, Connection], problems: ProblemCollector) -> None:
        self._connections = connections
        self._problems = problems
        self._reads: dict[tuple[str, str], _Declared] = {}
        self._writes: dict[tuple[str, str], _Declared] = {}
        self._reported: set[tuple[str, str, str, int]] = set()

    def source(self, pipeline: RenderedPipeline, call: SourceCall) -> None:
        entity = self._declared_entity(call)
        if call.connection not in self._connections:
            return
        if entity is not None and entity.read is not None:
            if call.read is not None:
                self._split(pipeline, call, "read", f"connections.yml:{entity.read.line}")
            return
        default = ReadSide(file=pipeline.file.file, line=call.line)
        self._declare(self._reads, pipeline, call, call.read, default)

    def sink(self, pipeline: RenderedPipeline, call: SinkCall) -> None:
        entity = self._declared_entity(call)
        if call.connection not in self._connections:
            return
        if entity is not None and entity.write is not None:
            if call.write is not None:
                self._split(pipeline, call, "write", f"connections.yml:{entity.write.line}")
            return
        default = WriteSide(file=pipeline.file.file, line=call.line)
        self._declare(self._writes, pipeline, call, call.write, default)

    def result(self) -> dict[str, Connection]:
        entities: dict[str, dict[str, Entity]] = {
            name: dict(connection.entities) for name, connection in self._connections.items()
        }
        for (connection, name), declared in self._reads.items():
            known = entities[connection].get(name, Entity(name))
            assert isinstance(declared.side, ReadSide)
            entities[connection][name] = structs.replace(known, read=declared.side)
        for (connection, name), declared in self._writes.items():
            known = entities[connection].get(name, Entity(name))
            assert isinstance(declared.side, WriteSide)
            entities[connection][name] = structs.replace(known, write=declared.side)
        return {
            name: replace(connection, entities=entities[name]) for name, connection in self._connections.items()
        }  # fmt: skip

    def _declared_entity(self, call: SourceCall | SinkCall) -> Entity | None:
        connection = self._connections.get(call.connection)
        return connection.entities.get(call.entity) if connection is not None else None

    def _declare(
        self,
        declared: dict[tuple[str, str], _Declared],
        pipeline: RenderedPipeline,
        call: SourceCall | SinkCall,
        side: ReadSide | WriteSide | None,
        default: ReadSide | WriteSide,
    ) -> None:
        key = (call.connection, call.entity)
        known = declared.get(key)
        if known is None or (side is not None and not known.is_explicit):
            declared[key] = _Declared(side or default, side is not None)
        elif side is not None and isinstance(call, SourceCall) and _content(side) != _content(known.side):
            # A second writer is refused as such, whatever it declares.
            self._split(pipeline, call, "read", f"{known.side.file}:{known.side.line}")

    def _split(self, pipeline: RenderedPipeline, call: SourceCall | SinkCall, side: str, other: str) -> None:
        identity = (pipeline.name, call.connection, call.entity, call.line)
        if identity in self._reported:
            return
        self._reported.add(identity)
        self._problems.add(
            "PZ0341",
            f"pipeline '{pipeline.name}': the {side} side of '{call.connection}.{call.entity}' is declared here and in {other}",
            file=pipeline.file.file, line=call.line, hint="keep the options in one of the two places",
        )  # fmt: skip


def _content(side: ReadSide | WriteSide) -> ReadSide | WriteSide:
    return replace(side, file="", line=None)
