"""Read side of `localfiles`.

Parquet and json are read by DuckDB only; csv and tsv also come as Arrow batches, for which a contract is required.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import Partition, ReadHints, ReadSpec
from pz_engine.connectors.builtin.localfiles.locations import Locations
from pz_engine.connectors.fragments import NativeScan
from pz_engine.connectors.toolkit.file_options import FileReadOptions, read_problems
from pz_engine.connectors.toolkit.file_scans import build_scan, contentless, nothing_matched, shown
from pz_engine.errors.exceptions import PzConnectorError

if TYPE_CHECKING:
    import pyarrow as pa

_DEFAULT_FORMAT = "csv"


class LocalFilesSource:
    """Reads files below a root."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def native_scan(self, spec: ReadSpec) -> NativeScan | None:
        """Return DuckDB's reader over the files; bounds are left to the engine."""
        options = _options(spec)
        found = self._locations.files_to_read(spec, options)
        return build_scan(found, options, spec.columns)

    def get_schema(self, spec: ReadSpec, cancel: CancelToken) -> pa.Schema:
        """Return the schema that the contract gives the batches."""
        from pz_engine.connectors.toolkit.csv_codec import contract_schema

        cancel.raise_if_set()
        _require_universal(spec, _options(spec))
        return contract_schema(spec.columns or {})

    def plan_read(self, spec: ReadSpec, hints: ReadHints, cancel: CancelToken) -> Sequence[Partition]:
        """Return one partition per file, or per `files_per_partition` files; the bounds are the engine's to apply.

        Without that option a large file becomes several partitions, whose rows come in any order.
        """
        from pz_engine.connectors.toolkit.csv_codec import CsvPartition
        from pz_engine.connectors.toolkit.csv_split import plan_ranges

        del hints
        cancel.raise_if_set()
        options = _options(spec)
        _require_universal(spec, options)
        found = self._locations.files_to_read(spec, options)
        if not found.files and not (options.allows_no_files or found.is_window):
            raise nothing_matched(found)
        if found.files and not options.allows_no_files and all(path.stat().st_size == 0 for path in found.files):
            raise contentless(shown(found, found.files[0]), options)
        if options.ragged == "reject":
            raise PzConnectorError(
                f"entity '{spec.entity}': 'ragged: reject' works on the native tier only",
                is_transient=False,
                code="PZ0312",
                hint="remove engine.force_universal, or use 'ragged: pad'",
            )
        size = int(spec.options.get("files_per_partition", 1))
        ranges = {} if "files_per_partition" in spec.options else plan_ranges(found.files, options, cancel)
        groups = [found.files[start : start + size] for start in range(0, len(found.files), size)] or [()]
        whole = [
            CsvPartition(files, found.root, options, spec.columns or {}, found.partition_columns) for files in groups
        ]
        return [
            replace(partition, part=part)
            for partition in whole
            for part in (ranges.get(partition.files[0], (None,)) if partition.files else (None,))
        ]

    def close(self) -> None:
        """Nothing is held open between calls."""


def _options(spec: ReadSpec) -> FileReadOptions:
    problems = read_problems(spec.options, default_format=_DEFAULT_FORMAT)
    if problems:
        first = problems[0]
        raise PzConnectorError(
            f"entity '{spec.entity}': {first.message}", is_transient=False, code=first.code, hint=first.hint
        )
    return FileReadOptions.of(spec.options, default_format=_DEFAULT_FORMAT)


def _require_universal(spec: ReadSpec, options: FileReadOptions) -> None:
    if not options.is_delimited:
        code = "PZ0361" if options.format == "json" and options.layout == "array" else "PZ0312"
        raise PzConnectorError(
            f"entity '{spec.entity}': {options.format} files are read by DuckDB only",
            is_transient=False,
            code=code,
            hint="remove engine.force_universal",
        )
    if not spec.columns:
        raise PzConnectorError(
            f"entity '{spec.entity}': {options.format} needs 'columns' when DuckDB does not read it",
            is_transient=False,
            hint="declare columns:, or remove engine.force_universal",
        )
