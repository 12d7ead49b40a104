"""Generated input files, the same bytes every time, written once below `.data`."""

from __future__ import annotations

from pathlib import Path

import duckdb

DATA = Path(__file__).parent / ".data"

ORDERS = {
    "id": "bigint", "customer_id": "bigint", "amount": "double", "day": "date", "happened_at": "timestamp",
    "status": "varchar", "flag": "boolean", "code": "varchar", "quantity": "int", "score": "double",
}  # fmt: skip
"""Columns of the orders and their types, as a contract spells them."""

CUSTOMERS = {"customer_id": "bigint", "name": "varchar", "region": "varchar"}
CUSTOMER_COUNT = 1000


def contract(columns: dict[str, str]) -> str:
    """Return columns as a YAML or DuckDB mapping without its braces."""
    return ", ".join(f"{name}: {kind}" for name, kind in columns.items())


def raw_csv(path: Path, columns: dict[str, str]) -> str:
    """Return DuckDB's typed scan of a file."""
    types = ", ".join(f"'{name}': '{kind.upper()}'" for name, kind in columns.items())
    return f"read_csv('{path}', header = true, auto_detect = false, columns = {{{types}}})"


def _orders(first: int, rows: int) -> str:
    return (
        f"select i as id, i % {CUSTOMER_COUNT} as customer_id, (i * 7919 % 100000) / 100.0 as amount, "
        "date '2020-01-01' + cast(i % 1000 as integer) as day, timestamp '2020-01-01' + to_seconds(i) as happened_at, "
        "'status' || (i % 5) as status, i % 2 = 0 as flag, md5(cast(i as varchar)) as code, cast(i % 97 as integer) as quantity, "
        f"(i * 31 % 9973) / 9973 as score from range({first}, {first + rows}) t(i)"
    )


def _write(path: Path, query: str, options: str) -> Path:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        duckdb.execute(f"copy ({query}) to '{partial}' ({options})")
        partial.rename(path)
    return path


def orders_csv(rows: int, first: int = 0) -> Path:
    """Orders in ten columns."""
    return _write(DATA / f"orders_{first}_{rows}.csv", _orders(first, rows), "header")


def orders_parquet(rows: int) -> Path:
    """The same orders as Parquet."""
    return _write(DATA / f"orders_{rows}.parquet", _orders(0, rows), "format parquet")


def customers_csv() -> Path:
    """What orders are joined with."""
    query = f"select i as customer_id, 'name ' || i as name, 'region' || (i % 7) as region from range({CUSTOMER_COUNT}) t(i)"
    return _write(DATA / "customers.csv", query, "header")


def small_files(count: int, rows: int) -> Path:
    """A folder of Parquet files of a few rows each."""
    folder = DATA / f"small_{count}_{rows}"
    for number in range(count):
        _write(folder / f"part_{number:05}.parquet", _orders(number * rows, rows), "format parquet")
    return folder


def warehouse(rows: int) -> Path:
    """A DuckDB file with orders, to merge into."""
    path = DATA / f"warehouse_{rows}.duckdb"
    if not path.exists():
        partial = path.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        duckdb.execute(f"attach '{partial}' as w; create table w.orders as {_orders(0, rows)}; detach w")
        partial.rename(path)
    return path
