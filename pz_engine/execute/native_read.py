"""A source that DuckDB reads itself: from connector to the query that lands it.

Used by the staged load and by the fused group; what differs is only whether the query becomes a table or a view. A
statement that fails because of the file's content is either repeated with another query or explained without values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pz_engine.base.file_versions import FileVersion
from pz_engine.compile.dag import SourceLoadNode
from pz_engine.connectors.fragments import NativeScan
from pz_engine.duck.checked_scan import ResolvedScan, recover_scan, resolve_scan, shown
from pz_engine.duck.session import DuckCursor
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.execute.bounds import Bounds
from pz_engine.execute.context import RunContext
from pz_engine.execute.opened import open_source

T = TypeVar("T")


class PreparedScan(Struct, frozen=True):
    """A scan that is set up and ready to run."""

    node: SourceLoadNode
    scan: NativeScan
    resolved: ResolvedScan
    bounds: Bounds
    versions: tuple[FileVersion | None, ...] = ()
    """Of the scan's files, as they were before any statement read them."""

    def refuse_changed_files(self) -> None:
        """Refuse rows of a file that somebody wrote meanwhile: they may be of both contents, or of neither.

        Raises:
            PzConnectorError: transient; names the file.
        """
        for path, version in zip(self.scan.files, self.versions, strict=True):
            if FileVersion.at(path) != version:
                raise PzConnectorError(
                    f"file '{shown(path, self.scan)}' changed while it was read",
                    is_transient=True,
                    hint="run it again once nobody writes the file any more",
                )

    @property
    def query(self) -> str:
        """A select that yields exactly the rows to land."""
        if self.bounds.is_bounded and not self.scan.bounds_pushed:
            return f"select * from (\n{self.resolved.sql}\n) where {self.bounds.condition()}"
        return self.resolved.sql


def prepare_scan(context: RunContext, cursor: DuckCursor, node: SourceLoadNode, bounds: Bounds) -> PreparedScan:
    """Open the connector, run its setup and build the query.

    Raises:
        PzConnectorError: the connector, its setup or the source's shape is at fault.
        DuckStatementError: describing the source failed.
    """
    with open_source(context, node) as opened:
        scan = opened.source.native_scan(opened.spec_of(context, node, bounds, is_native=True))
    if scan is None:
        raise PzConnectorError(
            f"connector '{opened.connector.info.name}' offered a native scan when planning and none now",
            is_transient=False,
        )
    if scan.verify is not None:
        scan.verify()
    context.setup.ensure(cursor, scan.setup, writes=node.connection in context.written_connections)
    versions = tuple(map(FileVersion.at, scan.files))
    return PreparedScan(node, scan, resolve_scan(cursor, scan, node.columns), bounds, versions)


def recover(
    context: RunContext, cursor: DuckCursor, prepared: PreparedScan, error: DuckStatementError
) -> PreparedScan | None:
    """Return the scan to run instead, or None when the failure has nothing to do with the source's content.

    Raises:
        PzConnectorError: the source is at fault; names file, line, column and type, never a value.
    """
    again = recover_scan(cursor, prepared.scan, prepared.node.columns, prepared.resolved, error)
    if again is None:
        return None
    if again.note is not None:
        context.note(f"{prepared.node.key}: {again.note}")
    return replace(prepared, resolved=again)


def run_with_recovery(
    context: RunContext, cursor: DuckCursor, prepared: PreparedScan, run: Callable[[str], T]
) -> tuple[T, PreparedScan]:
    """Run a statement over a scan, with another query when the first does not fit the source's content.

    Raises:
        PzConnectorError: the source is at fault.
        DuckStatementError: the statement failed for another reason.
    """
    while True:
        try:
            return run(prepared.query), prepared
        except DuckStatementError as error:
            again = recover(context, cursor, prepared, error)
            if again is None:
                raise
            prepared = again
