"""How many rows each scan of one statement delivered, from DuckDB's profile of the cursor.

The cardinality of a scan operator is exact; a failed statement leaves no profile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from pz_engine.duck.session import DuckCursor

_METRICS = '{"OPERATOR_NAME": "true", "OPERATOR_CARDINALITY": "true", "EXTRA_INFO": "true"}'
_SEPARATOR = ", "
_MORE = "..."


class ScanCount(Struct, frozen=True):
    """One scan operator of the last statement."""

    operator: str
    files: tuple[str, ...]
    """Files it read as the profile lists them: at most five, then `...`; compare with `reads_files`."""

    table: str | None
    """`database.schema.table`, unquoted, when it read a table."""

    rows: int
    file_count: int = 0
    """Number of files, also beyond the listed ones; 0 when DuckDB stopped before it had counted them."""

    def reads_files(self, files: Sequence[Path]) -> bool:
        """Tell whether it read exactly these files, in any order; file names may hold the list's separator."""
        if not self.files or (self.file_count and self.file_count != len(files)):
            return False
        rest = _SEPARATOR.join(self.files)
        known = sorted({str(path) for path in files}, key=len, reverse=True)
        matched = 0
        while rest and rest != _MORE:
            name = next((name for name in known if rest == name or rest.startswith(name + _SEPARATOR)), None)
            if name is None:
                return False
            matched += 1
            rest = rest[len(name) + len(_SEPARATOR) :]
        return rest == _MORE or matched == len(files)


def enable(cursor: DuckCursor) -> None:
    """Make the cursor keep the profile of each statement until it is closed."""
    cursor.execute("set enable_profiling = 'no_output'")
    cursor.execute(f"set custom_profiling_settings = '{_METRICS}'")


def collect(cursor: DuckCursor) -> tuple[ScanCount, ...]:
    """Return the scans of the last statement, in the order of its plan; call before the cursor runs anything else."""
    profile: Any = cursor.raw.get_profiling_information()
    if isinstance(profile, str):
        profile = json.loads(profile) if profile else {}
    return tuple(_scans(profile))


def _scans(node: dict[str, Any]) -> Iterator[ScanCount]:
    details = node.get("extra_info")
    if isinstance(details, dict) and not node.get("children"):
        files = details.get("Filename(s)")
        table = details.get("Table")
        if files or table:
            names = tuple(str(files).split(_SEPARATOR)) if files else ()
            yield ScanCount(
                str(node.get("operator_name", "")).strip(),
                names,
                str(table) if table else None,
                int(node.get("operator_cardinality") or 0),
                int(details.get("Total Files Read") or 0),
            )
    for child in node.get("children", ()):
        yield from _scans(child)
