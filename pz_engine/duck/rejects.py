"""Rows that `ragged: reject` set aside: from DuckDB's own tables to one relation in staging.

Only rows with another number of fields may be set aside; anything else wrong with a file fails the load.
"""

from __future__ import annotations

from pz_engine.base.csv_records import LONGEST_ROW_BYTES
from pz_engine.duck.session import DuckCursor
from pz_engine.errors.exceptions import PzConnectorError

_ERRORS = "pz_csv_rejects"
_SCANS = "pz_csv_reject_scans"
_TOO_LONG = "LINE SIZE OVER MAXIMUM"
_RAGGED = "('MISSING COLUMNS', 'TOO MANY COLUMNS')"


def forget_rejects(cursor: DuckCursor) -> None:
    """Drop what earlier scans of this cursor collected; call right before the landing statement."""
    for table in (_ERRORS, _SCANS):
        cursor.execute(f"drop table if exists temp.main.{table}")


def land_rejects(cursor: DuckCursor, relation: str) -> int:
    """Create a relation with the rejected rows (`file`, `line`, `row_text`) and return how many there are.

    Args:
        cursor: the one that ran the landing statement, in which the rejects are.
        relation: quoted name; replaced when it exists.

    Raises:
        PzConnectorError: permanent; a row was rejected for another reason than its number of fields.
    """
    collected = cursor.scalar("select count(*) from duckdb_tables() where temporary and table_name = ?", [_ERRORS])
    if not collected:
        cursor.execute(f"create or replace table {relation} (file varchar, line ubigint, row_text varchar)")
        return 0
    other = cursor.rows(
        f"select s.file_path, e.line, e.error_type from temp.main.{_ERRORS} e join temp.main.{_SCANS} s "
        f"using (scan_id, file_id) where e.error_type not in {_RAGGED} order by s.file_path, e.line limit 1"
    )
    if other:
        path, line, kind = other[0]
        reason = f"a row of more than {LONGEST_ROW_BYTES // 1024**2} MiB" if kind == _TOO_LONG else str(kind).lower()
        raise PzConnectorError(
            f"file '{str(path).rpartition('/')[2]}', line {line}: {reason}",
            is_transient=False,
            hint="correct the file, or set 'encoding' or 'delimiter' to what it uses",
        )
    cursor.execute(
        f"create or replace table {relation} as select distinct s.file_path as file, e.line, e.csv_line as row_text "
        f"from temp.main.{_ERRORS} e join temp.main.{_SCANS} s using (scan_id, file_id) order by file, line"
    )
    return cursor.count(relation)
