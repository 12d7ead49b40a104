"""Small tables of text as Dagster metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import dagster as dg

from pz_engine import Diagnostic

PROBLEM_COLUMNS = ("code", "place", "message", "next_step")


def table(rows: Iterable[Mapping[str, str | int]], columns: Sequence[str]) -> dg.MetadataValue:
    """Build a table; its columns are shown even when there is no row."""
    schema = dg.TableSchema([dg.TableColumn(name, "string") for name in columns])
    return dg.MetadataValue.table([dg.TableRecord(dict(row)) for row in rows], schema=schema)


def problem_table(problems: Sequence[Diagnostic]) -> dg.MetadataValue:
    """Show problems with their place and next step."""
    rows = [{"code": p.code, "place": p.place or "", "message": p.message, "next_step": p.hint or ""} for p in problems]
    return table(rows, PROBLEM_COLUMNS)
