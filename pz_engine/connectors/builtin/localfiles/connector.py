"""The `localfiles` connector: csv, tsv, json and parquet files under a root folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import ConnectionUse, ConnectorInfo, Finding, ProbeResult
from pz_engine.connectors.builtin.localfiles.locations import ENGINE_FOLDER_HINT, Locations, engine_folder_refusal
from pz_engine.connectors.capabilities import Capability
from pz_engine.connectors.toolkit.file_options import (
    READ_PROPERTIES,
    WRITE_PROPERTIES,
    OptionProblem,
    read_problems,
    write_problems,
)
from pz_engine.connectors.toolkit.paths import leaves_root

if TYPE_CHECKING:
    from pz_engine.connectors.builtin.localfiles.sink import LocalFilesSink
    from pz_engine.connectors.builtin.localfiles.source import LocalFilesSource

READ_FORMAT = "csv"
"""Format of a read that names none."""

WRITE_FORMAT = "parquet"
"""Format of a write that names none."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


class LocalFilesConnector:
    """Reads and writes files; see the protocols in `pz_engine.connectors` for what each member promises."""

    info = ConnectorInfo("localfiles", "1")
    capabilities = (
        Capability.NATIVE_SCAN
        | Capability.NATIVE_COPY
        | Capability.REPEATABLE_SCAN
        | Capability.REPLACE_WRITES
        | Capability.BOUNDED_WINDOW
        | Capability.PARTITIONED_READ
        | Capability.PATH_TEMPLATING
    )
    connection_schema: Mapping[str, Any] = {
        "$schema": _DRAFT,
        "type": "object",
        "additionalProperties": False,
        "properties": {"root": {"type": "string", "minLength": 1}},
    }
    read_schema: Mapping[str, Any] = {
        "$schema": _DRAFT,
        "type": "object",
        "additionalProperties": False,
        "properties": READ_PROPERTIES,
    }
    write_schema: Mapping[str, Any] = {
        "$schema": _DRAFT,
        "type": "object",
        "additionalProperties": False,
        "properties": WRITE_PROPERTIES,
    }
    native_only_reads = False
    native_only_writes = False

    def validate(self, use: ConnectionUse) -> list[Finding]:
        """Check formats, their options and paths of every entity."""
        return [*self._read_findings(use), *self._write_findings(use)]

    def check_connection(self, config: Mapping[str, Any], cancel: CancelToken) -> ProbeResult:
        """Tell whether the root is a folder; a missing one is created by the first write, and reads name their files."""
        cancel.raise_if_set()
        root = Locations.of(config).root
        if root.is_dir():
            return ProbeResult(True, f"folder '{root.name}' exists")
        if root.exists():
            return ProbeResult(False, f"permanent: root '{root.name}' is not a folder")
        return ProbeResult(True, f"folder '{root.name}' does not exist yet; the first write creates it")

    def open_source(self, config: Mapping[str, Any]) -> LocalFilesSource:
        """Open the read side."""
        from pz_engine.connectors.builtin.localfiles.source import LocalFilesSource

        return LocalFilesSource(Locations.of(config))

    def open_sink(self, config: Mapping[str, Any]) -> LocalFilesSink:
        """Open the write side."""
        from pz_engine.connectors.builtin.localfiles.sink import LocalFilesSink

        return LocalFilesSink(Locations.of(config))

    def _read_findings(self, use: ConnectionUse) -> Iterator[Finding]:
        for entity, options in use.reads.items():
            problems = read_problems(options, default_format=READ_FORMAT)
            yield from _findings(use, entity, options, problems, is_write=False)

    def _write_findings(self, use: ConnectionUse) -> Iterator[Finding]:
        for entity, options in use.writes.items():
            problems = write_problems(options, default_format=WRITE_FORMAT)
            yield from _findings(use, entity, options, problems, is_write=True)
            path = options.get("path")
            if isinstance(path, str | None) and Locations.of(use.config).writes_into_engine_folder(entity, path):
                message = f"entity '{entity}': {engine_folder_refusal(entity, path)}"
                yield Finding(message, entity=entity, is_write=True, hint=ENGINE_FOLDER_HINT)


def _findings(
    use: ConnectionUse, entity: str, options: Mapping[str, Any], problems: list[OptionProblem], *, is_write: bool
) -> Iterator[Finding]:
    for problem in problems:
        yield Finding(problem.message, problem.code, entity, is_write, problem.hint)
    path = options.get("path")
    if isinstance(path, str) and leaves_root(Locations.of(use.config).root, path):
        yield Finding(
            f"path '{path}' leaves the connection's root",
            "PZ0365",
            entity,
            is_write,
            "remove the '..' or move the root",
        )
