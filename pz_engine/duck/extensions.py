"""DuckDB extensions: loaded from installed Python packages, downloaded only when the project allows it."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import duckdb

from pz_engine.duck.quoting import quote_identifier, quote_literal
from pz_engine.duck.session import DuckCursor
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.errors.exceptions import PzConnectorError

BUILT_IN = frozenset({"core_functions", "icu", "json", "parquet"})
"""Part of DuckDB's own package."""

EXTRAS = {
    "httpfs": "s3",
    "excel": "excel",
    "sqlite_scanner": "sqlite",
    "mysql_scanner": "mysql",
    "postgres_scanner": "postgres",
    "azure": "azure",
    "iceberg": "lake",
    "avro": "lake",
    "ducklake": "lake",
}
"""Extension to the extra of our distribution that brings it."""


def is_available(name: str) -> bool:
    """Tell whether an extension can be loaded without a download."""
    return name in BUILT_IN or _packaged_file(name) is not None or _installed_file(name) is not None


def missing_hint(name: str) -> str:
    """Return the line to type that makes an extension available."""
    extra = EXTRAS.get(name)
    if extra is None:
        return f"pip install duckdb-extension-{name.replace('_', '-')}=={duckdb.__version__}"
    return f'pip install "pz-dagster[{extra}]"'


def load_extension(cursor: DuckCursor, name: str, *, allow_download: bool) -> None:
    """Load an extension once; loading it again does nothing.

    Raises:
        PzConnectorError: permanent, code `PZ0311`; it is not installed, or DuckDB refuses it.
    """
    if name in BUILT_IN or _is_loaded(cursor, name):
        return
    packaged = _packaged_file(name)
    try:
        if packaged is not None:
            cursor.execute(f"load {quote_literal(str(packaged))}")
        elif _installed_file(name) is not None:
            cursor.execute(f"load {quote_identifier(name)}")
        elif allow_download:
            cursor.execute(f"install {quote_identifier(name)}")
            cursor.execute(f"load {quote_identifier(name)}")
        else:
            raise PzConnectorError(
                f"the DuckDB extension '{name}' is not installed",
                is_transient=False,
                code="PZ0311",
                hint=missing_hint(name),
            )
    except DuckStatementError as error:
        raise PzConnectorError(
            f"the DuckDB extension '{name}' could not be loaded: {error.summary.splitlines()[0]}",
            is_transient=error.is_transient,
            code="PZ0311",
            hint=missing_hint(name),
        ) from None
    if name == "httpfs":
        cursor.execute("set global http_retries = 0")


def _is_loaded(cursor: DuckCursor, name: str) -> bool:
    return bool(cursor.scalar("select loaded from duckdb_extensions() where extension_name = ?", [name]))


def _packaged_file(name: str) -> Path | None:
    """Return the extension file of an installed package for the running DuckDB version."""
    try:
        distribution = metadata.distribution(f"duckdb-extension-{name.replace('_', '-')}")
    except metadata.PackageNotFoundError:
        return None
    wanted = f"extensions/v{duckdb.__version__}/{name}.duckdb_extension"
    for file in distribution.files or ():
        if file.as_posix().endswith(wanted):
            path = Path(str(distribution.locate_file(file)))
            return path if path.is_file() else None
    return None


def _installed_file(name: str) -> Path | None:
    """Return the file in DuckDB's own extension directory."""
    directory = Path.home() / ".duckdb" / "extensions" / f"v{duckdb.__version__}"
    return next(iter(sorted(directory.glob(f"*/{name}.duckdb_extension"))), None)
