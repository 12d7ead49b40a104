"""Jobs of data movement: this product, and one program that does the same with DuckDB alone.

Every job is a whole process. Results are compared row by row in aggregate before a time is reported.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
from inputs import (
    CUSTOMERS,
    DATA,
    ORDERS,
    contract,
    customers_csv,
    orders_csv,
    orders_parquet,
    raw_csv,
    small_files,
    warehouse,
)
from measure import Series, run_once

from pz_engine.testing.project_factory import ProjectFactory

FILTER = "amount > 10"
JOIN = (
    "select c.region, o.status, count(*) as orders, sum(o.amount) as amount, max(o.happened_at) as last_at\n"
    "from {orders} o join {customers} c using (customer_id) group by all"
)


@dataclass(frozen=True)
class Job:
    """One line of the table.

    Attributes:
        name: what moves.
        target: highest ratio that is good enough.
        ours: command of this product.
        other: command it is compared with.
        fingerprint: query over `{file}` that both outputs have to answer alike.
        outputs: relation of our output and of the other one.
        reset: brings both destinations back to where they were; not timed.
    """

    name: str
    target: float
    ours: list[str]
    other: list[str]
    fingerprint: str
    outputs: tuple[str, str]
    reset: Callable[[], None] = lambda: None
    against: str = "DuckDB"

    def measure(self, rounds: int) -> tuple[Series, Series]:
        """Run both in turn and verify what each delivered; raises when they differ."""
        ours, other = [], []
        for _ in range(rounds):
            self.reset()
            ours.append(run_once(self.ours))
            other.append(run_once(self.other))
            answers = [duckdb.execute(self.fingerprint.format(file=output)).fetchall() for output in self.outputs]
            if answers[0] != answers[1] or not answers[0][0][0]:
                raise AssertionError(f"{self.name}: {answers}")
        return Series(tuple(ours)), Series(tuple(other))


def run_command(project: Path) -> list[str]:
    """Return the command that runs a project."""
    return [sys.executable, "-m", "pz_engine", "run", "--all", "--project", str(project)]


def duckdb_command(sql: str) -> list[str]:
    """Return the command that lets DuckDB alone execute statements."""
    return [sys.executable, "-c", "import duckdb, sys; duckdb.execute(sys.argv[1])", sql]


def project(name: str, connections: str, pipelines: dict[str, str], engine: str = "") -> ProjectFactory:
    """Write a project below the data folder, from nothing."""
    directory = DATA / "projects" / name
    shutil.rmtree(directory, ignore_errors=True)
    made = ProjectFactory(directory, f'name: bench\nversion: "1"\n{engine}').connections(connections)
    for pipeline, sql in pipelines.items():
        made.pipeline(pipeline, sql)
    return made


def _files(**entities: str) -> str:
    reads = ", ".join(f"{name}: {{ read: {read} }}" for name, read in entities.items())
    return f"files: {{ connector: localfiles, root: {DATA}, entities: {{ {reads} }} }}\n"


def _csv(path: Path, columns: dict[str, str]) -> str:
    return f"{{ path: {path.name}, columns: {{ {contract(columns)} }} }}"


_LAKE = "lake: { connector: localfiles, root: output }\n"
_TO_LAKE = "insert into {{ sink('lake', 'result', format: 'parquet', strategy: 'replace') }}\n"
_SUMS = "select count(*), sum(id), sum(cast(amount as decimal(18, 2))), count(distinct status) from '{file}'"
_GROUPS = "select count(*), sum(orders), sum(cast(amount as decimal(18, 2))), max(last_at) from '{file}'"


def _outputs(made: ProjectFactory) -> tuple[str, str]:
    return (
        str(made.directory / "output" / "result" / "result.parquet"),
        str(made.directory / "raw.parquet"),
    )


def csv_filter(rows: int, target: float = 0.0, *, engine: str = "") -> Job:
    """CSV with a contract, a filter, Parquet."""
    path = orders_csv(rows)
    made = project(
        f"filter_{rows}",
        _files(orders=_csv(path, ORDERS)) + _LAKE,
        {"result": f"{_TO_LAKE}select * from {{{{ source('files', 'orders') }}}} where {FILTER}\n"},
        engine,
    )
    outputs = _outputs(made)
    raw = f"copy (select * from {raw_csv(path, ORDERS)} where {FILTER}) to '{outputs[1]}' (format parquet)"
    return Job(
        f"{millions(rows)} CSV → filter → Parquet",
        target,
        run_command(made.directory),
        duckdb_command(raw),
        _SUMS,
        outputs,
    )


def join(rows: int, target: float = 0.0, *, kind: str = "CSV", has_check: bool = False, engine: str = "") -> Job:
    """Orders and customers, joined and aggregated, to Parquet."""
    customers = customers_csv()
    path = orders_csv(rows) if kind == "CSV" else orders_parquet(rows)
    read = _csv(path, ORDERS) if kind == "CSV" else f"{{ path: {path.name}, format: parquet }}"
    name = f"join_{kind.lower()}_{rows}{'_check' if has_check else ''}"
    made = project(
        name,
        _files(orders=read, customers=_csv(customers, CUSTOMERS)) + _LAKE,
        {"result": _TO_LAKE + _join_of_sources()},
        engine,
    )
    if has_check:
        made.sidecar("result", "checks:\n  - not_null: [region]\n")
    outputs = _outputs(made)
    relation = raw_csv(path, ORDERS) if kind == "CSV" else f"'{path}'"
    raw = f"copy ({JOIN.format(orders=relation, customers=raw_csv(customers, CUSTOMERS))}) to '{outputs[1]}' (format parquet)"
    extra = ", with a check" if has_check else ""
    return Job(
        f"{millions(rows)} {kind} → join, aggregate{extra} → Parquet",
        target,
        run_command(made.directory),
        duckdb_command(raw),
        _GROUPS,
        outputs,
    )


def universal(rows: int, target: float) -> Job:
    """The universal tier against our own native one, both staged."""
    connections = _files(orders=_csv(orders_csv(rows), ORDERS), customers=_csv(customers_csv(), CUSTOMERS)) + _LAKE
    pipelines = {"result": _TO_LAKE + _join_of_sources()}
    forced = project("universal", connections, pipelines, "engine: { force_universal: true }\n")
    staged = project("unfused", connections, pipelines, "engine: { fusion: 'off' }\n")
    return Job(
        f"{millions(rows)} CSV → join, aggregate → Parquet, universal tier",
        target,
        run_command(forced.directory),
        run_command(staged.directory),
        _GROUPS,
        (_outputs(forced)[0], _outputs(staged)[0]),
        against="our staged native tier",
    )


def merge(rows: int, target: float, engine: str = "", settings: str = "", suffix: str = "") -> Job:
    """Half new, half changed rows of a CSV merged into a table of the same size."""
    path, base = orders_csv(rows, first=rows // 2), warehouse(rows)
    made = project(
        f"merge_{rows}{suffix}",
        _files(orders=_csv(path, ORDERS)) + "store: { connector: duckdb, path: ours.duckdb }\n",
        {
            "result": "insert into {{ sink('store', 'orders', strategy: 'merge', keys: ['id']) }}\n"
            "select * replace (amount + 1 as amount) from {{ source('files', 'orders') }}\n"
        },
        engine,
    )
    ours, other = made.directory / "ours.duckdb", made.directory / "raw.duckdb"

    def reset() -> None:
        for each in (ours, other):
            shutil.copyfile(base, each)

    source = f"select * replace (amount + 1 as amount) from {raw_csv(path, ORDERS)}"
    raw = (
        f"{settings}attach '{other}' as w; merge into w.orders t using ({source}) s using (id) "
        "when matched then update when not matched then insert; detach w"
    )
    return Job(
        f"{millions(rows)} CSV → merge into {millions(rows)} of a DuckDB file{suffix}",
        target,
        run_command(made.directory),
        duckdb_command(raw),
        "attach if not exists '{file}' as x (read_only); select count(*), sum(id), sum(cast(amount as decimal(18, 2))) from x.orders",
        (str(ours), str(other)),
        reset,
    )


def many_files(count: int, target: float) -> Job:
    """Small Parquet files into one table of a DuckDB file."""
    folder = small_files(count, 100)
    made = project(
        "small_files",
        _files(parts=f"{{ path: {folder.name}/*.parquet, format: parquet }}")
        + "store: { connector: duckdb, path: ours.duckdb }\n",
        {
            "result": "insert into {{ sink('store', 'orders', strategy: 'replace') }}\nselect * from {{ source('files', 'parts') }}\n"
        },
    )
    ours, other = made.directory / "ours.duckdb", made.directory / "raw.duckdb"

    def reset() -> None:
        for each in (ours, other):
            each.unlink(missing_ok=True)

    raw = f"attach '{other}' as w; create table w.orders as select * from '{folder}/*.parquet'; detach w"
    return Job(
        f"{count:,} small Parquet files → one table",
        target,
        run_command(made.directory),
        duckdb_command(raw),
        "attach if not exists '{file}' as x (read_only); select count(*), sum(id) from x.orders",
        (str(ours), str(other)),
        reset,
    )


def cold(target: float) -> Job:
    """Three rows, where everything but the work is what is measured."""
    (DATA / "three.csv").write_text("id,amount,status\n1,5.5,a\n2,7.5,b\n3,1.5,a\n")
    made = project(
        "cold",
        _files(orders="{ path: three.csv, columns: { id: bigint, amount: double, status: varchar } }") + _LAKE,
        {"result": f"{_TO_LAKE}select * from {{{{ source('files', 'orders') }}}} where amount > 2\n"},
    )
    outputs = _outputs(made)
    columns = {"id": "bigint", "amount": "double", "status": "varchar"}
    raw = f"copy (select * from {raw_csv(DATA / 'three.csv', columns)} where amount > 2) to '{outputs[1]}' (format parquet)"
    return Job("3 rows, cold", target, run_command(made.directory), duckdb_command(raw), _SUMS, outputs)


def millions(rows: int) -> str:
    """Return a number of rows as it is read."""
    return f"{rows // 1_000_000}M"


def _join_of_sources() -> str:
    return JOIN.format(orders="{{ source('files', 'orders') }}", customers="{{ source('files', 'customers') }}") + "\n"


def all_jobs() -> list[Callable[[], Job]]:
    """Return every job, to be prepared one after the other."""
    return [
        lambda: csv_filter(3_000_000, 1.3),
        lambda: csv_filter(20_000_000, 1.2),
        lambda: join(1_000_000, 1.6),
        lambda: join(5_000_000, 1.3),
        lambda: join(5_000_000, 1.3, kind="Parquet"),
        lambda: join(5_000_000, 1.7, has_check=True),
        lambda: universal(5_000_000, 1.3),
        lambda: merge(1_000_000, 1.3),
        lambda: cold(3.0),
        lambda: many_files(1000, 1.3),
    ]
