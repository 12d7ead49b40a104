"""Speed and size of this version, as ratios to the plain tool doing the same job in the same round.

    python bench/run.py [--rounds 5] [jobs] [overhead] [memory] [start] [definitions] [large-project] [dagster] [dbt]

Row counts are verified before a time is reported. Nothing here gates a test.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
from dagster_ops import bench_loading, bench_ops, bench_progress, bench_sample
from inputs import DATA
from jobs import all_jobs
from large_project import write_project
from measure import interleave
from memory import bench_flat_memory, bench_large_merge
from overhead import bench_many_nodes, bench_slow_sources

HERE = Path(__file__).parent


def bench_jobs(rounds: int) -> None:
    """The same jobs by this product and by DuckDB alone."""
    print("| Job | pz | compared with | ratio | CPU | peak memory | target |\n|---|---|---|---|---|---|---|")
    for make in all_jobs():
        job = make()
        ours, other = job.measure(rounds)
        print(
            f"| {job.name} | {ours.spread()} | {job.against} {other.spread()} | {ours.wall / other.wall:.2f} "
            f"| {ours.cpu / other.cpu:.2f} | {ours.peak_bytes / 2**20:.0f}, {other.peak_bytes / 2**20:.0f} MiB | {job.target} |",
            flush=True,
        )


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


def bench_memory(rounds: int) -> None:
    """Peak memory while rows grow, and a merge beyond its memory."""
    for line in bench_flat_memory(rounds):
        print(line, flush=True)
    print(bench_large_merge(), flush=True)


def bench_overhead(rounds: int) -> None:
    """Many tiny nodes, and slow sources."""
    print(bench_many_nodes(rounds), flush=True)
    print(bench_slow_sources(rounds), flush=True)


def bench_dagster(rounds: int) -> None:
    """One op beside a loop over DuckDB, three rows, loading, and progress."""
    for lines in (partial(bench_ops, with_dbt=False), bench_sample, bench_loading, bench_progress):
        print("\n".join(lines(rounds)), flush=True)


def bench_dbt(rounds: int) -> None:
    """The same SQL by dagster-dbt too, in an environment of its own that is made on first use."""
    print("\n".join(bench_ops(rounds, with_dbt=True)), flush=True)


SECTIONS: dict[str, Callable[[int], None]] = {
    "jobs": bench_jobs,
    "overhead": bench_overhead,
    "memory": bench_memory,
    "start": bench_start,
    "definitions": bench_definitions,
    "large-project": bench_large_project,
    "dagster": bench_dagster,
    "dbt": bench_dbt,
}


def main() -> None:
    """Run the sections that were asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sections", nargs="*", help=f"what to measure, of {', '.join(SECTIONS)}; default: all but dbt")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"
    DATA.mkdir(exist_ok=True)
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, DuckDB {duckdb.__version__}"
    )
    print(
        f"medians of {arguments.rounds} (min-max), process start included, rows verified before a time counts",
        flush=True,
    )
    for name in arguments.sections or [name for name in SECTIONS if name != "dbt"]:  # that one installs packages
        SECTIONS[name](arguments.rounds)


if __name__ == "__main__":
    main()
