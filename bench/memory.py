"""Peak memory: flat while rows grow, and a merge that is larger than its memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from jobs import Job, csv_filter, join, merge
from measure import run_once

LIMIT = "512MB"
ENGINE = f"engine: {{ duckdb: {{ memory_limit: {LIMIT} }} }}\n"
SMALL, LARGE = 1_000_000, 20_000_000


def bench_flat_memory(rounds: int) -> list[str]:
    """Peak of 20 times the rows against once the rows, streamed and staged, beside the printed budget."""
    lines = []
    shapes: list[tuple[str, Callable[[int], Job]]] = [
        ("CSV → filter → Parquet, fused", lambda rows: csv_filter(rows, engine=ENGINE)),
        ("CSV → join, aggregate with a check", lambda rows: join(rows, has_check=True, engine=ENGINE)),
    ]
    for label, make in shapes:
        small = _peak(make(SMALL), rounds)
        job = make(LARGE)
        large, budget = _peak(job, rounds), _budget(job)
        lines.append(
            f"{label}: peak {small / 2**20:.0f} MiB for {SMALL // 1_000_000}M rows, {large / 2**20:.0f} MiB for "
            f"{LARGE // 1_000_000}M; ratio {large / small:.2f} (target 1.15), {large / budget:.2f} of the budget that "
            "'pz plan' prints"
        )
    return lines


def bench_large_merge(rows: int = 5_000_000) -> str:
    """A merge of as many rows as the table has, within 512 MB; says what was left of its spilled files."""
    job = merge(rows, 0.0, ENGINE, f"set memory_limit = '{LIMIT}'; ", ", memory_limit 512MB")
    ours, other = job.measure(1)
    directory = Path(job.ours[-1])
    spilled = [path for path in (directory / ".pz").rglob("spill/*") if path.is_file()]
    return (
        f"{job.name}: {ours.spread()}, DuckDB {other.spread()}; ratio {ours.wall / other.wall:.2f}; peak "
        f"{ours.peak_bytes / 2**20:.0f} MiB, DuckDB {other.peak_bytes / 2**20:.0f} MiB; files left in the spill folder: {len(spilled)}"
    )


def _peak(job: Job, rounds: int) -> int:
    return max(run_once(job.ours).peak_bytes for _ in range(rounds))


def _budget(job: Job) -> int:
    project = job.ours[-1]
    subprocess.run(
        [sys.executable, "-m", "pz_engine", "plan", "--project", project], check=True, stdout=subprocess.DEVNULL
    )
    return int(json.loads((Path(project) / ".pz" / "target" / "plan.json").read_text())["memoryBudget"]["totalBytes"])
