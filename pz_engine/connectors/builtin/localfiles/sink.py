"""Write side of `localfiles`.

A final name always holds a complete file: writing goes to a temporary name in the same folder, is flushed to disk and
then renamed.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import ProbeResult, WriteSession, WriteSpec
from pz_engine.connectors.builtin.localfiles.locations import Locations, object_name
from pz_engine.connectors.fragments import FileMove, NativeCopy
from pz_engine.connectors.toolkit.file_copies import copy_statement
from pz_engine.connectors.toolkit.file_options import FileWriteOptions, write_problems
from pz_engine.connectors.toolkit.write_probes import probe_folder
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Strategy

if TYPE_CHECKING:
    import pyarrow as pa

_DEFAULT_FORMAT = "parquet"


class LocalFilesSink:
    """Writes files below a root."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations
        self.abort_semantics = "discards_all"

    def native_copy(self, spec: WriteSpec) -> NativeCopy | None:
        """Return DuckDB's writer for one file; None when rows go to several folders."""
        options = _options(spec)
        if options.partition_by:
            return None
        directory = self._locations.output_directory(spec.entity, options)
        final = directory / object_name(spec.entity, spec.strategy, options.suffix)
        temporary = directory / f".pz-native-{secrets.token_hex(8)}.tmp"
        return NativeCopy(
            statements=(copy_statement(options, temporary),),
            mechanism=f"copy to {options.format}",
            decimal_hugeint=options.format == "parquet",
            finalizations=(FileMove(temporary, final),),
            location=str(final),
            identity=os.path.realpath(final) if spec.strategy is Strategy.REPLACE else None,
        )

    def check_write(self, spec: WriteSpec, cancel: CancelToken) -> ProbeResult:
        """Tell whether files could be made in the output folder, or where it would be made."""
        cancel.raise_if_set()
        directory = self._locations.output_directory(spec.entity, _options(spec))
        return probe_folder(directory, self._locations.shown(directory))

    def begin_write(self, spec: WriteSpec, schema: pa.Schema, cancel: CancelToken) -> WriteSession:
        """Start writing batches to a temporary folder inside the output folder."""
        from pz_engine.connectors.builtin.localfiles.partitioned import PartitionedSession, partition_column
        from pz_engine.connectors.builtin.localfiles.sessions import FileSession

        cancel.raise_if_set()
        options = _options(spec)
        if options.format == "json" and options.layout == "array":
            raise PzConnectorError(
                f"entity '{spec.entity}': 'layout: array' is written by DuckDB only",
                is_transient=False,
                code="PZ0361",
                hint="set layout: ndjson, or remove engine.force_universal",
            )
        directory = self._locations.output_directory(spec.entity, options)
        name = object_name(spec.entity, spec.strategy, options.suffix)
        if not options.partition_by:
            return FileSession(directory, name, options, schema)
        self.abort_semantics = "best_effort"
        return PartitionedSession(directory, name, options, schema, partition_column(spec.entity, options, schema))

    def close(self) -> None:
        """Nothing is held open between calls."""


def _options(spec: WriteSpec) -> FileWriteOptions:
    if spec.strategy is Strategy.MERGE:
        raise PzConnectorError(
            f"entity '{spec.entity}': files cannot be merged into",
            is_transient=False,
            code="PZ0324",
            hint="use replace",
        )
    problems = write_problems(spec.options, default_format=_DEFAULT_FORMAT)
    if problems:
        first = problems[0]
        raise PzConnectorError(
            f"entity '{spec.entity}': {first.message}", is_transient=False, code=first.code, hint=first.hint
        )
    return FileWriteOptions.of(spec.options, default_format=_DEFAULT_FORMAT)
