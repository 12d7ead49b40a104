"""Both sides of the `duckdb` connector; one attached database serves them, because a file can be attached only once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import Partition, ProbeResult, ReadHints, ReadSpec, WriteSession, WriteSpec
from pz_engine.connectors.builtin.duckdb.database import DatabaseFile
from pz_engine.connectors.fragments import NativeCopy, NativeScan
from pz_engine.connectors.toolkit.aliases import session_name
from pz_engine.connectors.toolkit.duck_tables import read_fragment, table_name, write_statements
from pz_engine.connectors.toolkit.write_probes import probe_folder, probe_locked_file
from pz_engine.duck.quoting import quote_qualified
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Strategy

if TYPE_CHECKING:
    import pyarrow as pa


class DuckDbSource:
    """Reads tables and views."""

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database

    def native_scan(self, spec: ReadSpec) -> NativeScan | None:
        """Return the table, or a select with both bounds applied."""
        self._database.require_readable()
        table = table_name(session_name("duckdb", spec.connection), spec.entity)
        return NativeScan(
            fragment=read_fragment(table, spec),
            mechanism="attached table",
            setup=(self._database.attach_step(spec.connection),),
            bounds_pushed=True,
            table=".".join(table),
        )

    def get_schema(self, spec: ReadSpec, cancel: CancelToken) -> pa.Schema:
        """Refuse: DuckDB reads these tables itself."""
        del cancel
        raise _native_only(spec.entity)

    def plan_read(self, spec: ReadSpec, hints: ReadHints, cancel: CancelToken) -> Sequence[Partition]:
        """Refuse: DuckDB reads these tables itself."""
        del hints, cancel
        raise _native_only(spec.entity)

    def close(self) -> None:
        """Nothing is held; the session owns the attached database."""


class DuckDbSink:
    """Writes tables."""

    abort_semantics = "discards_all"

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database

    def native_copy(self, spec: WriteSpec) -> NativeCopy | None:
        """Return the statements of the strategy, to run in one transaction."""
        self._database.require_writable()
        table = table_name(session_name("duckdb", spec.connection), spec.entity)
        is_replace = spec.strategy is Strategy.REPLACE
        return NativeCopy(
            statements=write_statements(table, spec),
            mechanism="attached table",
            setup=(self._database.attach_step(spec.connection),),
            is_transactional=True,
            target_table=None if is_replace else quote_qualified(*table),
            location=f"{self._database.name}: {spec.entity}",
            identity=f"{self._database.real_path}: {'.'.join(table[1:]).lower()}",
        )

    def check_write(self, spec: WriteSpec, cancel: CancelToken) -> ProbeResult:
        """Tell whether the file, and the folder that takes its log, may be written."""
        del spec
        cancel.raise_if_set()
        self._database.require_writable()
        found = probe_folder(self._database.path.parent, self._database.name)
        if not found.ok or not self._database.path.exists():
            return found
        return probe_locked_file(self._database.path, self._database.name)

    def begin_write(self, spec: WriteSpec, schema: pa.Schema, cancel: CancelToken) -> WriteSession:
        """Refuse: DuckDB writes these tables itself."""
        del schema, cancel
        raise _native_only(spec.entity)

    def close(self) -> None:
        """Nothing is held; the session owns the attached database."""


def _native_only(entity: str) -> PzConnectorError:
    return PzConnectorError(
        f"entity '{entity}': DuckDB tables are read and written by DuckDB only",
        is_transient=False,
        code="PZ0312",
        hint="remove engine.force_universal",
    )
