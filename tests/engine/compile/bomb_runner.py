"""Renders hostile templates, each in a process of its own with little memory, and says what it cost.

Reads JSON texts from standard input, one a line; writes one JSON object a line: codes, lines, seconds, megabytes.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

from pz_engine.compile.template.lint import lint_templates
from pz_engine.compile.template.renderer import render_pipelines
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.pipeline import PipelineFile

SPARE_MEGABYTES = 400
WALL_SECONDS = 20
VARS = {"xs": list(range(1000)), "text": "x" * 1000, "deep": {"a": [{"b": [1, 2]}] * 100}, "big": ["y" * 100] * 5000}


def render(text: str) -> dict[str, object]:
    """Render and lint one template in this process."""
    problems = ProblemCollector()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    pipeline = PipelineFile("p", "pipelines/p.sql", text)
    rendered = render_pipelines(
        [pipeline], ephemerals=frozenset(), variables=VARS, env={}, run_id="r",
        started_at=datetime(2026, 11, 30, tzinfo=timezone.utc), problems=problems,
    )  # fmt: skip
    seconds = time.process_time() - start
    lint_templates([pipeline], {"p"}, ProblemCollector())
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "found": [[problem.code, problem.line] for problem in problems.errors],
        "length": len(rendered[0].sql) if rendered else None,
        "longest": max((len(problem.message) for problem in problems.errors), default=0),
        "seconds": seconds,
        "megabytes": growth / 1024,
    }


def in_child(text: str) -> dict[str, object]:
    """Render in a forked child under limits of time and memory."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) if sys.platform == "linux" else 0
        limit = pages * resource.getpagesize() + SPARE_MEGABYTES * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        signal.alarm(WALL_SECONDS)
        try:
            answer = render(text)
        except BaseException as error:
            answer = {"error": repr(error)[:300]}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        answer_text = stream.read()
    _, status = os.waitpid(child, 0)
    return dict(json.loads(answer_text)) if answer_text else {"error": f"process ended with {status}"}


if __name__ == "__main__":
    in_child("{{ 1 }}")
    render(
        "{{ for x in var('xs') }}{{ if x == 1 }}{{ [x] | join(',') }}{{ end }}{{ end }}"
    )  # imports, once for all children
    for line in sys.stdin:
        sys.stdout.write(json.dumps(in_child(json.loads(line))) + "\n")
        sys.stdout.flush()
