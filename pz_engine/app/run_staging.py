"""Opens a run's staging database, over a copy of the one of the run that it continues where that is of use."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pz_engine.app.run_preparation import PreparedRun
from pz_engine.base.state_folder import STATE_FOLDER, shown_in_state
from pz_engine.compile.dag import SinkWriteNode, SourceLoadNode
from pz_engine.duck.instance import DuckInstance
from pz_engine.duck.session import DuckSession, DuckSettings
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.errors.exceptions import PzInternalError
from pz_engine.execute.reuse import reused_tables
from pz_engine.execute.run_dir import RunDirectory
from pz_engine.execute.staging_copy import TakenOver, open_copy


def open_staging(
    prepared: PreparedRun, directory: RunDirectory, instance: DuckInstance, note: Callable[[str], None]
) -> tuple[DuckSession, TakenOver | None]:
    """Open the run's database; says what of the continued run is in it, None when that run has no use.

    Args:
        prepared: the run.
        directory: where its database is.
        instance: the DuckDB to open it with.
        note: receives what became of the run that is continued.

    Raises:
        OSError: the file cannot be written.
        PzInternalError: it cannot be opened.
    """
    duckdb, project = prepared.project.engine.duckdb, prepared.compiled
    used = {
        node.connection
        for node in project.nodes
        if isinstance(node, (SourceLoadNode, SinkWriteNode)) and node.id in prepared.effective
    }
    settings = DuckSettings(
        memory_limit=duckdb.memory_limit,
        threads=duckdb.threads,
        temp_directory=_spill(prepared, directory, duckdb.temp_directory),
        allow_unsigned_extensions=any(project.connections[name].allow_unsigned_extensions for name in used),
    )
    database, resume = directory.staging_database, prepared.resume
    by_id = project.graph.by_id
    open_here = partial(DuckSession.open, settings=settings, instance=instance)
    copied: tuple[DuckSession, TakenOver] | None = None
    try:
        if resume is not None and resume.reuse:
            loads = [node for node_id in resume.reuse if isinstance(node := by_id[node_id], SourceLoadNode)]
            names = reused_tables(loads)
            copied = open_copy(resume.database, resume.run_id, database, open_here, names, note)
        if resume is not None:
            present = copied[1].tables if copied is not None else frozenset()
            reused = [node_id for node_id in resume.reuse if by_id[node_id].name in present]
            for text in resume.notes(len(reused)):
                note(text)
        if copied is not None:
            return copied
        return open_here(database), None if resume is not None and resume.reuse else TakenOver()
    except DuckStatementError as error:
        if (number := error.os_error) is not None:
            raise OSError(number, os.strerror(number), shown_in_state(database, project.state_dir)) from None
        raise PzInternalError(f"the staging database cannot be opened: {error.summary}") from None


def _spill(prepared: PreparedRun, directory: RunDirectory, configured: str | None) -> Path:
    """Return where DuckDB spills: the run's own folder unless another one is configured."""
    if not configured:
        return directory.spill
    first, *rest = Path(configured).parts
    places = prepared.compiled
    return places.state_dir.joinpath(*rest) if first == STATE_FOLDER else places.project_dir / configured
