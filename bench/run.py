"""Speed and size of this version, as ratios to the plain tool doing the same job in the same round.

    python bench/run.py [--rounds 5]

Row counts are verified before a time is reported. Nothing here gates a test.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
from large_project import write_project
from measure import interleave

HERE = Path(__file__).parent
DATA = HERE / ".data"
ROWS = 3_000_000
KEPT = "amount > 10"
MEMORY_LIMIT = "1GB"

COLUMNS = {
    "id": "bigint", "customer_id": "bigint", "amount": "double", "day": "date", "happened_at": "timestamp",
    "status": "varchar", "flag": "boolean", "code": "varchar", "quantity": "int", "score": "double",
}  # fmt: skip


def prepare() -> Path:
    """Write the input file and the project once."""
    DATA.mkdir(exist_ok=True)
    csv = DATA / "orders.csv"
    if not csv.exists():
        duckdb.execute(
            f"""copy (select i as id, i % 1000 as customer_id, (i * 7919 % 100000) / 100.0 as amount,
            date '2020-01-01' + cast(i % 1000 as integer) as day, timestamp '2020-01-01' + to_seconds(i) as happened_at,
            'status' || (i % 5) as status, i % 2 = 0 as flag, md5(cast(i as varchar)) as code, i % 97 as quantity,
            (i * 31 % 9973) / 9973 as score from range({ROWS}) t(i)) to '{csv}' (header)"""
        )
    project = DATA / "project"
    shutil.rmtree(project, ignore_errors=True)
    (project / "pipelines").mkdir(parents=True)
    (project / "project.yml").write_text(
        f'name: bench\nversion: "1"\nengine:\n  threads: 2\n  duckdb:\n    memory_limit: {MEMORY_LIMIT}\n    threads: 2\n'
    )
    contract = "\n".join(f"          {name}: {kind}" for name, kind in COLUMNS.items())
    (project / "connections.yml").write_text(
        "files:\n  connector: localfiles\n  root: ..\n  entities:\n    orders:\n      read:\n        path: orders.csv\n"
        f"        columns:\n{contract}\nlake:\n  connector: localfiles\n  root: output\n"
    )
    (project / "pipelines" / "kept.sql").write_text(
        "INSERT INTO {{ sink('lake', 'kept', format: 'parquet', strategy: 'replace') }}\n"
        f"SELECT * FROM {{{{ source('files', 'orders') }}}} WHERE {KEPT}\n"
    )
    types = {"int": "INTEGER"}
    declared = ", ".join(f"'{name}': '{types.get(kind, kind.upper())}'" for name, kind in COLUMNS.items())
    (DATA / "raw.py").write_text(
        "import duckdb\n"
        f"duckdb.execute(\"set memory_limit = '{MEMORY_LIMIT}'; set threads = 2\")\n"
        f"duckdb.execute(\"copy (select * from read_csv('{csv}', header = true, auto_detect = false, "
        f"columns = {{{declared}}}) where {KEPT}) to '{DATA / 'raw.parquet'}' (format parquet)\")\n"
    )
    return project


def bench_csv(rounds: int, project: Path) -> None:
    """3M-row CSV through a filter to Parquet, against one fused DuckDB statement."""
    ours, raw = interleave(
        rounds,
        ([sys.executable, "-m", "pz_engine", "run", "--project", str(project), "--all"], None),
        ([sys.executable, str(DATA / "raw.py")], None),
    )
    query = "select count(*), sum(id), sum(cast(amount as decimal(18,2))) from '{}'"
    expected = duckdb.execute(query.format(DATA / "raw.parquet")).fetchall()
    landed = duckdb.execute(query.format(project / "output" / "kept" / "kept.parquet")).fetchall()
    assert landed == expected, (landed, expected)
    budget = plan_budget(project)
    print(f"csv -> filter -> parquet, {ROWS} rows: pz {ours.spread()}, one DuckDB statement {raw.spread()}")
    print(f"  ratio {ours.wall / raw.wall:.2f} wall, {ours.cpu / raw.cpu:.2f} CPU")
    print(
        f"  peak memory {ours.peak_bytes} of the printed budget {budget} ({ours.peak_bytes / budget:.2f}); rows verified"
    )


def plan_budget(project: Path) -> int:
    """Return the budget that `pz plan` writes."""
    import json

    subprocess.run(
        [sys.executable, "-m", "pz_engine", "plan", "--project", str(project)], check=True, stdout=subprocess.DEVNULL
    )
    return int(json.loads((project / ".pz" / "target" / "plan.json").read_text())["memoryBudget"]["totalBytes"])


def bench_start(rounds: int) -> None:
    """`pz --help` over a bare interpreter, and a run of the sample template."""
    ours, bare = interleave(
        rounds, ([sys.executable, "-m", "pz_engine", "--help"], None), ([sys.executable, "-c", "pass"], None)
    )
    print(f"pz --help: {(ours.cpu - bare.cpu) * 1000:.0f} ms of CPU over a bare interpreter")
    sample = DATA / "sample"
    shutil.rmtree(sample, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-m", "pz_engine", "init", "sample", "--template", "sample"],
        cwd=DATA,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (run,) = interleave(rounds, ([sys.executable, "-m", "pz_engine", "run", "--all"], sample))
    print(f"pz run --all of the sample template: {run.spread()}")


def bench_definitions(rounds: int) -> None:
    """`dagster definitions validate` of the example against an empty file."""
    empty = DATA / "empty_definitions.py"
    empty.write_text("import dagster as dg\n\ndefs = dg.Definitions()\n")
    example = HERE.parent / "example_project" / "definitions.py"
    base = [sys.executable, "-m", "dagster", "definitions", "validate", "-f"]
    ours, bare = interleave(rounds, ([*base, str(example)], None), ([*base, str(empty)], None))
    print(
        f"dagster definitions validate: example {ours.spread()}, empty {bare.spread()}, "
        f"difference {ours.wall - bare.wall:.2f} s"
    )


def bench_large_project(rounds: int) -> None:
    """`validate` and `ls` of 1,000 pipelines, their growth from 250, and Dagster's definitions from a snapshot."""
    small, large = DATA / "large_250", DATA / "large_1000"
    write_project(small, 250)
    write_project(large, 1000)
    for verb in ("validate", "ls"):
        command = [sys.executable, "-m", "pz_engine", verb, "--project"]
        of_small, of_large = interleave(rounds, ([*command, str(small)], None), ([*command, str(large)], None))
        print(
            f"pz {verb}, 1,000 pipelines and 2,000 checks: {of_large.spread()}, peak {of_large.peak_bytes / 2**20:.0f} MiB; "
            f"250 pipelines: {of_small.spread()}, so 4 times the pipelines take {of_large.wall / of_small.wall:.2f} times as long"
        )
    definitions = DATA / "large_definitions.py"
    definitions.write_text(
        f"import pz_dagster\n\ndefs = pz_dagster.build_pz_definitions(pz_dagster.PzProject({str(large)!r}))\n"
    )
    prepare = f"import pz_dagster; pz_dagster.PzProject({str(large)!r}).prepare()"
    subprocess.run([sys.executable, "-c", prepare], check=True)
    empty = DATA / "empty_definitions.py"
    empty.write_text("import dagster as dg\n\ndefs = dg.Definitions()\n")
    load = "import runpy; runpy.run_path({!r})['defs'].get_repository_def()"
    ours, bare = interleave(
        rounds,
        ([sys.executable, "-c", load.format(str(definitions))], None),
        ([sys.executable, "-c", load.format(str(empty))], None),
    )
    print(
        f"Dagster definitions of 1,000 pipelines from a snapshot: {ours.spread()}, empty file {bare.spread()}, "
        f"difference {ours.wall - bare.wall:.2f} s"
    )


def main() -> None:
    """Run every case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, DuckDB {duckdb.__version__}"
    )
    print(f"medians of {rounds} (min-max), process start included")
    project = prepare()
    bench_start(rounds)
    bench_csv(rounds, project)
    bench_definitions(rounds)
    bench_large_project(rounds)


if __name__ == "__main__":
    main()
