"""What one op costs: the same SQL by this product, by a plain loop over DuckDB inside an op, and by dagster-dbt.

Every candidate is a script that materializes everything in one process with an instance of its own and prints the rows
of each asset; nothing is reported before all scripts agree. Whole processes are timed, `import dagster` included.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import duckdb
from inputs import DATA
from jobs import project
from measure import interleave, run_once

DBT_ENVIRONMENT = DATA / "dbt-environment"
_DBT_PACKAGES = ("dagster-dbt", "dbt-core<1.11", "dbt-duckdb<1.11", f"duckdb=={duckdb.__version__}")
"""A dbt whose parser is in its own package; later ones fetch it when they are installed."""

ROWS = 20_000
COLUMNS = {"id": "bigint", "amount": "double", "status": "varchar"}
DUCK_COLUMNS = "{'id': 'BIGINT', 'amount': 'DOUBLE', 'status': 'VARCHAR'}"

_OURS = """
import dagster as dg, json
from pz_dagster import PzProject, build_pz_definitions

defs = build_pz_definitions(PzProject({directory!r}))
{end}
"""

_END = """
if __name__ == "__main__":
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize([*defs.assets], instance=instance, resources=defs.resources)
        rows = {}
        for event in result.get_asset_materialization_events():
            found = event.materialization.metadata.get("dagster/row_count")
            if found is not None:
                rows[event.asset_key.path[-1].split("__")[-1]] = found.value
    print(json.dumps(rows))
"""

_LOOP = """
import dagster as dg, duckdb, json, pathlib

STATEMENTS = json.loads(pathlib.Path({statements!r}).read_text())
DATABASE = pathlib.Path({database!r})


@dg.multi_asset(specs=[dg.AssetSpec(name, skippable=True) for name in STATEMENTS], can_subset=True)
def everything(context):
    DATABASE.unlink(missing_ok=True)
    with duckdb.connect(str(DATABASE)) as connection:
        for name, sql in STATEMENTS.items():
            connection.execute(f"create table {{name}} as {{sql}}")
            rows = connection.execute(f"select count(*) from {{name}}").fetchone()[0]
            columns = connection.execute(f"describe {{name}}").fetchall()
            schema = dg.TableSchema([dg.TableColumn(each[0], each[1]) for each in columns])
            yield dg.MaterializeResult(
                asset_key=name, metadata={{"dagster/row_count": rows, "dagster/column_schema": schema}}
            )


defs = dg.Definitions(assets=[everything], resources={{}})
{end}
"""

_DBT = """
import dagster as dg, json
from pathlib import Path
from dagster_dbt import DbtCliResource, DbtProject, dbt_assets

project = DbtProject(Path({directory!r}), profiles_dir=Path({directory!r}))


@dbt_assets(manifest=project.manifest_path)
def everything(context: dg.AssetExecutionContext, dbt: DbtCliResource):
    yield from dbt.cli(["build"], context=context).stream().fetch_row_counts()


defs = dg.Definitions(assets=[everything], resources={{"dbt": DbtCliResource(project, dbt_executable={dbt!r})}})
{end}
"""


def bench_ops(rounds: int, *, with_dbt: bool) -> list[str]:
    """Compare 10 and 50 pipelines of the same SQL."""
    lines = []
    for count in (10, 50):
        ours, loop = _write_ours(count), _write_loop(count)
        commands = [[sys.executable, str(ours)], [sys.executable, str(loop)]]
        if with_dbt:
            commands.append([str(_dbt_python()), str(_write_dbt(count))])
        answers = [_rows(command) for command in commands]
        if any(answer != answers[0] for answer in answers) or len(answers[0]) != count + 1:
            raise AssertionError(f"{count} pipelines: {answers}")
        mine, plain, *dbt = interleave(rounds, *((command, None) for command in commands))
        lines.append(
            f"{count} pipelines in one op, in process: {mine.spread()}, a loop over DuckDB {plain.spread()}; "
            f"ratio {mine.wall / plain.wall:.2f} (target 1.15)"
        )
        if dbt:
            lines[-1] += f"; dagster-dbt {dbt[0].spread()}, ratio {mine.wall / dbt[0].wall:.2f} (target 0.35)"
    return lines


def _sql(number: int, source: str) -> str:
    return (
        f"select id % {number + 2} as bucket, status, count(*) as orders, sum(amount) as amount "
        f"from {source} group by all"
    )


def _input() -> Path:
    path = DATA / "dagster_orders.csv"
    if not path.exists():
        lines = (f"{number},{number % 997}.5,{'abc'[number % 3]}\n" for number in range(ROWS))
        path.write_text("id,amount,status\n" + "".join(lines))
    return path


def _write_ours(count: int) -> Path:
    path = _input()
    contract = ", ".join(f"{name}: {kind}" for name, kind in COLUMNS.items())
    made = project(
        f"ops_{count}",
        f"files: {{ connector: localfiles, root: {DATA}, entities: {{ orders: {{ read: {{ path: {path.name}, "
        f"columns: {{ {contract} }} }} }} }} }}\n",
        {f"model_{number:02}": _sql(number, "{{ source('files', 'orders') }}") + "\n" for number in range(count)},
    )
    prepare = f"import pz_dagster; pz_dagster.PzProject({str(made.directory)!r}).prepare()"
    subprocess.run([sys.executable, "-c", prepare], check=True)
    script = DATA / f"ops_{count}_ours.py"
    script.write_text(_OURS.format(directory=str(made.directory), end=_END))
    return script


def _write_loop(count: int) -> Path:
    scan = f"read_csv('{_input()}', header = true, columns = {DUCK_COLUMNS})"
    statements = {"orders": f"select * from {scan}"}
    statements.update({f"model_{number:02}": _sql(number, "orders") for number in range(count)})
    stored = DATA / f"ops_{count}_statements.json"
    stored.write_text(json.dumps(statements))
    script = DATA / f"ops_{count}_loop.py"
    script.write_text(_LOOP.format(statements=str(stored), database=str(DATA / f"ops_{count}_loop.duckdb"), end=_END))
    return script


def _write_dbt(count: int) -> Path:
    directory = DATA / "projects" / f"dbt_{count}"
    shutil.rmtree(directory, ignore_errors=True)
    models = directory / "models"
    models.mkdir(parents=True)
    (directory / "dbt_project.yml").write_text(
        "name: ops\nversion: '1.0'\nprofile: ops\nmodel-paths: [models]\nmodels: { +materialized: table }\n"
    )
    (directory / "profiles.yml").write_text(
        "ops:\n  target: dev\n  outputs:\n    dev: { type: duckdb, path: '" + str(directory / "dbt.duckdb") + "' }\n"
    )
    scan = f"read_csv('{_input()}', header = true, columns = {DUCK_COLUMNS})"
    (models / "orders.sql").write_text(f"select * from {scan}\n")
    for number in range(count):
        (models / f"model_{number:02}.sql").write_text(_sql(number, "{{ ref('orders') }}") + "\n")
    dbt = _dbt_python().parent / "dbt"
    subprocess.run([str(dbt), "parse", "--quiet", "--profiles-dir", "."], cwd=directory, check=True)
    script = DATA / f"ops_{count}_dbt.py"
    script.write_text(_DBT.format(directory=str(directory), dbt=str(dbt), end=_END))
    return script


def _dbt_python() -> Path:
    """Return the interpreter of an environment with dagster-dbt, made on first use; the project never needs it."""
    python = DBT_ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(DBT_ENVIRONMENT)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *_DBT_PACKAGES], check=True)
    return python


def _rows(command: list[str]) -> dict[str, int]:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


_RAW_SAMPLE = """
import dagster as dg, duckdb, json

SOURCE, TARGET, COLUMNS = {source!r}, {target!r}, {columns!r}


@dg.asset(check_specs=[dg.AssetCheckSpec("amount_not_null", asset="orders")])
def orders():
    scan = f"read_csv('{{SOURCE}}', header = true, columns = {{COLUMNS}})"
    with duckdb.connect() as connection:
        connection.execute(f"create table orders as select * from {{scan}} where amount > 2")
        rows = connection.execute("select count(*) from orders").fetchone()[0]
        missing = connection.execute("select count(*) from orders where amount is null").fetchone()[0]
        connection.execute(f"copy orders to '{{TARGET}}' (format parquet)")
    return dg.MaterializeResult(
        metadata={{"dagster/row_count": rows}},
        check_results=[dg.AssetCheckResult(check_name="amount_not_null", passed=missing == 0)],
    )


defs = dg.Definitions(assets=[orders], resources={{}})
{end}
"""


def bench_sample(rounds: int) -> list[str]:
    """Three rows with a check to one file: by this product, and by one asset that calls DuckDB."""
    source = DATA / "dagster_three.csv"
    source.write_text("id,amount,status\n1,5.5,a\n2,7.5,b\n3,1.5,a\n")
    contract = ", ".join(f"{name}: {kind}" for name, kind in COLUMNS.items())
    made = project(
        "dagster_three",
        f"files: {{ connector: localfiles, root: {DATA}, entities: {{ three: {{ read: {{ path: {source.name}, "
        f"columns: {{ {contract} }} }} }} }} }}\nlake: {{ connector: localfiles, root: output }}\n",
        {
            "orders": "insert into {{ sink('lake', 'orders', format: 'parquet', strategy: 'replace') }}\n"
            "select * from {{ source('files', 'three') }} where amount > 2\n"
        },
    )
    made.sidecar("orders", "checks:\n  - not_null: [amount]\n")
    subprocess.run(
        [sys.executable, "-c", f"import pz_dagster; pz_dagster.PzProject({str(made.directory)!r}).prepare()"],
        check=True,
    )
    ours, raw = DATA / "three_ours.py", DATA / "three_raw.py"
    ours.write_text(_OURS.format(directory=str(made.directory), end=_END))
    raw.write_text(
        _RAW_SAMPLE.format(source=str(source), target=str(DATA / "three.parquet"), columns=DUCK_COLUMNS, end=_END)
    )
    lines = []
    for label, before in (
        ("in process", []),
        ("by command", ["-m", "dagster", "asset", "materialize", "--select", "*", "-f"]),
    ):
        mine, plain = interleave(rounds, *(([sys.executable, *before, str(script)], None) for script in (ours, raw)))
        lines.append(
            f"3 rows with a check, {label}: {mine.spread()}, one asset over DuckDB {plain.spread()}; "
            f"ratio {mine.wall / plain.wall:.2f} (target 1.1)"
        )
    return lines


_LOAD = """
import time, dagster
started = time.perf_counter()
import pz_dagster
imported = time.perf_counter()
defs = pz_dagster.build_pz_definitions(pz_dagster.PzProject({directory!r}))
defs.get_repository_def()
print(imported - started, time.perf_counter() - imported)
"""


def bench_loading(rounds: int) -> list[str]:
    """Time to definitions after `import dagster`, from a prepared snapshot."""
    lines = []
    for nodes, target in ((1_000, 0.5), (5_000, 2.5)):
        count = nodes // 5
        made = project(
            f"load_{nodes}",
            "files: { connector: localfiles, root: . }\nlake: { connector: localfiles, root: out }\n",
            {
                f"p{number:04}": f"insert into {{{{ sink('lake', 't{number:04}', format: 'parquet', strategy: 'replace') }}}}\n"
                f"select id, amount from {{{{ source('files', 's{number:04}', path: 'x.csv', columns: {{ id: 'bigint', amount: 'double' }}) }}}}\n"
                for number in range(count)
            },
        )
        for number in range(count):
            made.sidecar(f"p{number:04}", "checks:\n  - not_null: [id]\n  - unique: [id]\n")
        prepare = f"import pz_dagster; pz_dagster.PzProject({str(made.directory)!r}).prepare()"
        subprocess.run([sys.executable, "-c", prepare], check=True)
        code = _LOAD.format(directory=str(made.directory))
        found = [
            tuple(
                map(
                    float,
                    subprocess.run(
                        [sys.executable, "-c", code], check=True, capture_output=True, text=True
                    ).stdout.split(),
                )
            )
            for _ in range(rounds)
        ]
        imports, loads = zip(*found, strict=True)
        lines.append(
            f"definitions of {nodes:,} nodes from a snapshot, after 'import dagster': {statistics.median(loads):.2f} s "
            f"({min(loads):.2f}-{max(loads):.2f}; target {target}); import pz_dagster {statistics.median(imports):.3f} s (target 0.15)"
        )
    return lines


_IN_OP = """
import dagster as dg, tempfile
from pz_dagster import PzProject, PzResource, build_pz_assets, engine_thread

if {drops}:
    take = engine_thread.EngineThread._receive
    engine_thread.EngineThread._receive = lambda self, event: event.name == "node_progress" or take(self, event)
with dg.DagsterInstance.local_temp(tempfile.mkdtemp()) as instance:
    assets = build_pz_assets(PzProject({directory!r}))
    assert dg.materialize(assets, instance=instance, resources={{"pz": PzResource(log_progress_seconds=1)}}).success
"""

_ALONE = """
from pathlib import Path
from pz_engine import RunRequest, Selection, run_project

everything = Selection(everything=True)
assert run_project(RunRequest(Path({directory!r}), selection=everything, event_sink=lambda event: None)).exit_code == 0
"""


def bench_progress(rounds: int, rows: int = 10_000_000) -> list[str]:
    """Ten million rows through the universal tier in an op with an instance on disk: with reports of progress, with each
    dropped as the engine hands it over, and without Dagster.
    """
    path = DATA / f"progress_{rows}.csv"
    if not path.exists():
        duckdb.execute(f"copy (select i as id, i * 1.5 as amount from range({rows}) t(i)) to '{path}' (header)")
    made = project(
        "progress",
        f"files: {{ connector: localfiles, root: {DATA}, entities: {{ many: {{ read: {{ path: {path.name}, "
        "columns: { id: bigint, amount: double } } } } }\n",
        {"p": "select count(*) as n, sum(id) as total from {{ source('files', 'many') }}\n"},
        "engine: { force_universal: true, batch_bytes: 1048576 }\n",
    )
    codes = [_IN_OP.format(directory=str(made.directory), drops=drops) for drops in (False, True)]
    codes.append(_ALONE.format(directory=str(made.directory)))
    times: dict[str, list[int]] = {code: [] for code in codes}
    updates = 0
    for _ in range(rounds):
        for code, kept in times.items():
            run_once([sys.executable, "-c", code])
            newest = max((made.directory / ".pz" / "journal").glob("*.jsonl"))
            events = [json.loads(line) for line in newest.read_text().splitlines()]
            updates = sum(event["event"] == "node_progress" for event in events)
            kept += [event["durationMs"] for event in events if event["event"] == "run_completed"]
    reported, silent, alone = (statistics.median(times[code]) for code in codes)
    line = (
        f"{rows // 10**6}M rows with {updates} reports of progress in an op: the run takes {reported / 1000:.2f} s, "
        f"{silent / 1000:.2f} s with the reports dropped (ratio {reported / silent:.3f}, target 1.01), "
        f"{alone / 1000:.2f} s without Dagster (ratio {reported / alone:.3f})"
    )
    return [line]
