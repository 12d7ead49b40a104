"""What the columns of an entity really are: from DuckDB's own reader where the connector offers one.

Nothing is landed, and a source is only ever attached read-only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from msgspec import Struct, structs

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import ReadSpec, Source
from pz_engine.connectors.fragments import ExtensionStep, NativeScan, SetupStep
from pz_engine.duck.arrow_schemas import landed_columns, type_names
from pz_engine.duck.checked_scan import resolve_scan
from pz_engine.duck.extensions import is_available
from pz_engine.duck.session import DuckCursor, DuckSession
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.run import ColumnType
from pz_engine.validate.contract_drift import Drift, find_drift, missing_column

_MISSING_COLUMN = "PZ0353"


class SessionSetup(Protocol):
    """Runs the setup of native fragments in one session, each step once."""

    def ensure(self, cursor: DuckCursor, steps: Sequence[SetupStep], *, writes: bool) -> None:
        """Run the steps that were not run yet."""


class Fetched(Struct, frozen=True):
    """What was found of one entity."""

    columns: tuple[ColumnType, ...] | None = None
    """Columns as they would land; None under a contract."""

    drift: tuple[Drift, ...] = ()


class SchemaReader(Struct, frozen=True):
    """Reads schemas of one connection, in a session of its own."""

    source: Source
    session: DuckSession
    setup: SessionSetup
    offers_scans: bool
    """The connector may return native scans."""

    needs_extensions: bool
    """A scan whose extension is not installed is no scan at all, unless there is no other way to read."""

    def fetch(self, spec: ReadSpec, cancel: CancelToken) -> Fetched:
        """Look at one entity.

        Raises:
            PzConnectorError: it cannot be read.
            DuckStatementError: DuckDB failed to describe it.
            Cancelled: the token was set.
        """
        with self.session.cursor(cancel) as cursor:
            try:
                scan = self.source.native_scan(spec) if self.offers_scans else None
            except PzConnectorError as error:
                drift = self._missing_columns(spec, error)
                if not drift:
                    raise
                return Fetched(drift=drift)
            if scan is not None and (self.needs_extensions or _is_installed(scan)):
                return self._described(cursor, scan, spec.columns)
            schema = self.source.get_schema(spec, cancel)
            if not spec.columns:
                return Fetched(landed_columns(schema))
            return Fetched(drift=tuple(find_drift(spec.columns, type_names(cursor, schema))))

    def _described(self, cursor: DuckCursor, scan: NativeScan, contract: Mapping[str, str] | None) -> Fetched:
        self.setup.ensure(cursor, scan.setup, writes=False)
        if not contract:
            return Fetched(resolve_scan(cursor, scan, None).columns)
        if scan.nothing_to_read is not None:
            raise scan.nothing_to_read
        if scan.text_format is not None:
            return Fetched()  # the connector found every column; text has no type before it is cast
        found = cursor.describe(f"select * from {scan.fragment}")
        names = {column.name: frozenset({column.type}) for column in found}
        return Fetched(drift=tuple(find_drift(contract, names)))

    def _missing_columns(self, spec: ReadSpec, error: PzConnectorError) -> tuple[Drift, ...]:
        """Tell which columns of a contract a refused scan lacks; none when it was refused for another reason."""
        contract = spec.columns
        if error.code != _MISSING_COLUMN or not contract:
            return ()
        missing: list[Drift] = []
        for name in sorted(contract):
            try:
                self.source.native_scan(_with_columns(spec, {name: contract[name]}))
            except PzConnectorError as alone:
                if alone.code != _MISSING_COLUMN:
                    return ()
                drift = missing_column(name, ())
                missing.append(structs.replace(drift, hint=alone.hint or drift.hint))
        if len(missing) == len(contract) and not self._has_columns(spec):
            return ()
        return tuple(missing)

    def _has_columns(self, spec: ReadSpec) -> bool:
        """Tell whether an entity can be read at all, without its contract."""
        try:
            scan = self.source.native_scan(_with_columns(spec, {}))
        except PzConnectorError:
            return False
        return scan is not None and scan.nothing_to_read is None


def _is_installed(scan: NativeScan) -> bool:
    return all(is_available(step.name) for step in scan.setup if isinstance(step, ExtensionStep))


def _with_columns(spec: ReadSpec, columns: Mapping[str, str]) -> ReadSpec:
    options = {key: value for key, value in spec.options.items() if key != "columns"}
    return replace(spec, options={**options, "columns": dict(columns)} if columns else options)
