"""Validate a project, tiers 1 to 4 and on request 5; only the last writes, and only the schema cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from pz_engine.app.hiding import hidden_problem, hiding_values
from pz_engine.app.open_project import open_project
from pz_engine.app.state_owner import mark_owner
from pz_engine.compile.dag import CompiledProject
from pz_engine.connectors.registry import find_connector
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.errors.exceptions import PzValidationError
from pz_engine.validate.tiers import ValidationReport, check_connectors, check_sql

if TYPE_CHECKING:
    from pz_engine.duck.instance import DuckInstance


class ValidateReport(Struct, frozen=True):
    """What validation found."""

    problems: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    pipelines: int = 0
    """All pipelines, ephemerals included."""

    connections: int = 0
    """Connections whose connector is known."""


def validate_project(
    project_dir: Path,
    *,
    vars: Mapping[str, Any] | None = None,  # noqa: A002 - the option's name
    env: Mapping[str, str] | None = None,
    connect: bool = False,
) -> ValidateReport:
    """Run tiers 1 to 4; a tier starts only when the previous one found no error.

    Args:
        project_dir: the project's directory.
        vars: overrides of `vars:`.
        env: laid over the process environment.
        connect: also run tier 5, which reaches out to every connection and stores the schemas it finds.

    Raises:
        OSError: the schema cache cannot be written.
    """
    try:
        from pz_engine.duck.instance import DuckInstance

        with DuckInstance() as instance:
            compiled = open_project(project_dir, vars=vars, env=env, instance=instance)
            warnings, notes = check_compiled(compiled, instance=instance)
    except PzValidationError as error:
        return ValidateReport(problems=error.errors)
    problems: tuple[Diagnostic, ...] = ()
    if connect:
        report = _connect(compiled)
        problems = tuple(hidden_problem(problem, compiled.hidden) for problem in report.errors)
        notes = (*notes, *map(compiled.hidden.hide, report.notes))
    known = sum(find_connector(connection.connector) is not None for connection in compiled.connections.values())
    return ValidateReport(problems, warnings, notes, compiled.pipeline_count, known)


def _connect(compiled: CompiledProject) -> ValidationReport:
    """Run tier 5; what is cached of an entity that does not answer now is kept."""
    from pz_engine.execute.setup_ledger import SetupLedger
    from pz_engine.validate.connectivity import check_connectivity
    from pz_engine.validate.schema_cache import read_schema_cache, write_schema_cache

    assert compiled.project is not None
    mark_owner(compiled)
    allow_download = compiled.project.engine.duckdb.allow_extension_download
    found = check_connectivity(compiled, lambda: SetupLedger(allow_extension_download=allow_download))
    cached = read_schema_cache(compiled.state_dir)
    kept = {key: columns for key, columns in cached.items() if key in found.unanswered}
    write_schema_cache(compiled.state_dir, {**kept, **found.schemas})
    return found.report


def check_compiled(
    compiled: CompiledProject, *, with_sql: bool = True, instance: DuckInstance | None = None
) -> tuple[tuple[Diagnostic, ...], tuple[str, ...]]:
    """Run tier 3, and tier 4 unless told otherwise; return all warnings and notes so far.

    Raises:
        PzValidationError: every error of the first tier that found any.
    """
    warnings, notes = list(compiled.warnings), list(compiled.notes)
    checks: list[Callable[[CompiledProject], ValidationReport]] = [
        check_connectors,
        partial(check_sql, instance=instance),
    ]
    for check in checks if with_sql else checks[:1]:
        report = check(compiled)
        with hiding_values(compiled):
            if report.errors:
                raise PzValidationError(report.errors)
        warnings.extend(hidden_problem(warning, compiled.hidden) for warning in report.warnings)
        notes.extend(map(compiled.hidden.hide, report.notes))
    return tuple(warnings), tuple(notes)
