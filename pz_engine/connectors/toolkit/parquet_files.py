"""What DuckDB does not check when it reads parquet files: that each one is whole, and that they fit each other.

Several files are read as one table whose column types hold all of theirs as well as they can, which rounds whole
numbers next to floating ones and cuts fractions. Such files are refused instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pz_engine.errors.exceptions import PzConnectorError

if TYPE_CHECKING:
    import pyarrow as pa

_MAGIC = b"PAR1"
_SMALLEST = 12


def parquet_check(
    files: Sequence[Path],
    partition_columns: Sequence[str],
    contract: Mapping[str, str] | None,
    shown: Callable[[Path], str],
) -> Callable[[], None]:
    """Return the check to run before the files are read; it raises `PzConnectorError` naming file and column."""

    def check() -> None:
        for path in files:
            _require_whole(path, shown(path))
        if len(files) > 1 or partition_columns:
            _require_alike(files, partition_columns, contract, shown)

    return check


def folder_column_clash(file: str, column: str) -> PzConnectorError:
    """Refuse a column that both a file and a `key=value` folder have: one of the two values would be lost."""
    return PzConnectorError(
        f"file '{file}' has a column '{column}' of its own, and its folder gives one of that name too",
        is_transient=False,
        hint="set hive_partitioning: false to read the file's column, or rename one of them",
    )


def _require_whole(path: Path, name: str) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(4)
            size = file.seek(0, 2)
            file.seek(max(0, size - 4))
            end = file.read(4)
    except OSError as error:
        raise PzConnectorError(
            f"file '{name}' cannot be read: {error.strerror}", is_transient=False, hint="correct 'path'"
        ) from None
    if size < _SMALLEST or start != _MAGIC or end != _MAGIC:
        raise PzConnectorError(
            f"file '{name}' is no whole parquet file", is_transient=False, hint="write or fetch the file again"
        )


def _require_alike(
    files: Sequence[Path],
    partition_columns: Sequence[str],
    contract: Mapping[str, str] | None,
    shown: Callable[[Path], str],
) -> None:
    from pyarrow import ArrowException, parquet

    folders = {column.lower() for column in partition_columns}
    wanted = [column for column in contract or {} if column.lower() not in folders]
    first: dict[str, tuple[str, pa.DataType]] = {}
    for path in files:
        name = shown(path)
        try:
            schema = parquet.read_schema(path)
        except (ArrowException, OSError):
            raise PzConnectorError(
                f"file '{name}' is no whole parquet file", is_transient=False, hint="write or fetch the file again"
            ) from None
        own = {field.name.lower() for field in schema}
        for column in wanted:
            if column.lower() not in own:
                raise PzConnectorError(
                    f"column '{column}' of the contract is not in file '{name}'",
                    is_transient=False,
                    code="PZ0353",
                    hint="read that file as an entity of its own, or leave the column out of the contract",
                )
        for field in schema:
            if field.name.lower() in folders:
                raise folder_column_clash(name, field.name)
            other, kind = first.setdefault(field.name.lower(), (name, field.type))
            if not _fits(kind, field.type):
                raise PzConnectorError(
                    f"column '{field.name}' is {kind} in file '{other}' and {field.type} in file '{name}'; read together, "
                    "values could change",
                    is_transient=False,
                    hint="read the files as entities of their own and cast in a pipeline",
                )


def _fits(left: pa.DataType, right: pa.DataType) -> bool:
    """Tell whether DuckDB unites two types without changing a value of either."""
    from pyarrow import types

    if left == right:
        return True
    texts = (types.is_string, types.is_large_string)
    if any(test(left) for test in texts) and any(test(right) for test in texts):
        return True
    if types.is_integer(left) and types.is_integer(right):
        return bool(types.is_signed_integer(left) == types.is_signed_integer(right))
    return bool(types.is_floating(left) and types.is_floating(right))
