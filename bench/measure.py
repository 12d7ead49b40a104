"""Times whole processes: wall, CPU and peak memory, process start included."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sample:
    """One run of a command."""

    wall: float
    cpu: float
    peak_bytes: int


def run_once(command: list[str], cwd: Path | None = None) -> Sample:
    """Run a command to its end, as it is once its modules are compiled; raises when it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode != 0:
        raise RuntimeError(f"{command} exited with {process.returncode}: {errors.decode(errors='replace')[-2000:]}")
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


@dataclass(frozen=True)
class Series:
    """Samples of one command."""

    samples: tuple[Sample, ...]

    @property
    def wall(self) -> float:
        """Median wall time in seconds."""
        return statistics.median(sample.wall for sample in self.samples)

    @property
    def cpu(self) -> float:
        """Median CPU time in seconds."""
        return statistics.median(sample.cpu for sample in self.samples)

    @property
    def peak_bytes(self) -> int:
        """Highest peak of resident memory."""
        return max(sample.peak_bytes for sample in self.samples)

    def spread(self) -> str:
        """Return median, minimum and maximum of the wall time."""
        walls = [sample.wall for sample in self.samples]
        return f"{self.wall:.2f} s ({min(walls):.2f}-{max(walls):.2f})"


def interleave(rounds: int, *commands: tuple[list[str], Path | None]) -> list[Series]:
    """Run several commands in turn, so that all of them meet the same machine."""
    samples: list[list[Sample]] = [[] for _ in commands]
    for _ in range(rounds):
        for index, (command, cwd) in enumerate(commands):
            samples[index].append(run_once(command, cwd))
    return [Series(tuple(each)) for each in samples]
