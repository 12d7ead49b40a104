"""What a retry saves: the same failed run continued with `pz retry`, against running everything again.

    python bench/retry.py [--rounds 5]

A load of three million rows, staged because two pipelines read it, succeeds; the sinks below fail because their folder
cannot be made; then it can. Rows are verified before a time is reported. Nothing here gates a test.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
from inputs import CUSTOMER_COUNT, DATA, ORDERS, contract, orders_csv
from measure import Sample, Series, run_once

ROWS = 3_000_000


def write_project() -> Path:
    """Write a project that sums orders by customer and by day."""
    project = DATA / "retry"
    shutil.rmtree(project, ignore_errors=True)
    (project / "pipelines").mkdir(parents=True)
    (project / "project.yml").write_text('name: bench\nversion: "1"\n')
    (project / "connections.yml").write_text(
        f"files: {{ connector: localfiles, root: .., entities: {{ orders: {{ read: {{ path: {orders_csv(ROWS).name}, columns: "
        f"{{ {contract(ORDERS)} }} }} }} }} }}\nlake: {{ connector: localfiles, root: lake }}\n"
    )
    for name, key in (("spending", "customer_id"), ("days", "day")):
        (project / "pipelines" / f"{name}.sql").write_text(
            f"INSERT INTO {{{{ sink('lake', '{name}', format: 'parquet', strategy: 'replace') }}}}\n"
            f"SELECT {key}, count(*) AS orders, sum(amount) AS amount FROM {{{{ source('files', 'orders') }}}} GROUP BY ALL\n"
        )
    return project


def fail(project: Path) -> None:
    """Run with a file where the sink's folder has to be."""
    reset(project)
    (project / "lake").write_text("in the way")
    done = subprocess.run(pz(project, "run", "--all"), capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    (project / "lake").unlink()


def reset(project: Path) -> None:
    """Forget every run and what it delivered."""
    shutil.rmtree(project / ".pz", ignore_errors=True)
    lake = project / "lake"
    if lake.is_file():
        lake.unlink()
    shutil.rmtree(lake, ignore_errors=True)


def pz(project: Path, *arguments: str) -> list[str]:
    """Return a call of the command line."""
    return [sys.executable, "-m", "pz_engine", *arguments, "--project", str(project)]


def timed(project: Path, *arguments: str) -> Sample:
    """Time a call and verify what it delivered."""
    sample = run_once(pz(project, *arguments))
    query = f"select count(*), sum(orders) from '{project / 'lake' / 'spending' / 'spending.parquet'}'"
    assert duckdb.execute(query).fetchone() == (CUSTOMER_COUNT, ROWS)
    return sample


def main() -> None:
    """Run the case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    project = write_project()
    runs, retries = [], []
    for _ in range(rounds):
        reset(project)
        runs.append(timed(project, "run", "--all"))
        fail(project)
        retries.append(timed(project, "retry"))
    run, retry = Series(tuple(runs)), Series(tuple(retries))
    print(f"{ROWS} rows loaded, then a sink that failed: pz run {run.spread()}, pz retry {retry.spread()}")
    print(f"  ratio {retry.wall / run.wall:.2f} wall, {retry.cpu / run.cpu:.2f} CPU; rows verified")


if __name__ == "__main__":
    main()
