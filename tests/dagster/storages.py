"""The kinds of storage a Dagster instance may have, each as a real one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from tests.dagster.postgres import cluster, find_binaries

KINDS = ("ephemeral", "sqlite", "postgres")


@contextmanager
def storage(kind: str, home: Path) -> Iterator[dg.DagsterInstance]:
    """Open an instance of a kind; skips where there is no PostgreSQL."""
    if kind == "ephemeral":
        with dg.DagsterInstance.ephemeral() as found:
            yield found
    elif kind == "sqlite":
        with at_home(home) as found:
            yield found
    else:
        with warnings.catch_warnings():  # its release may follow Dagster's by days
            warnings.filterwarnings("ignore", "Found version mismatch")
            pytest.importorskip("dagster_postgres")
        binaries = find_binaries()
        if binaries is None:
            pytest.skip("there is no PostgreSQL on this machine")
        with (
            cluster(binaries) as url,
            at_home(home, f"storage: {{ postgres: {{ postgres_url: '{url}' }} }}\n") as found,
        ):
            yield found


@contextmanager
def at_home(home: Path, settings: str = "") -> Iterator[dg.DagsterInstance]:
    """Open the instance that a Dagster home describes."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "dagster.yaml").write_text(f"telemetry: {{ enabled: false }}\n{settings}")
    before = os.environ.get("DAGSTER_HOME")
    os.environ["DAGSTER_HOME"] = str(home)
    try:
        with dg.DagsterInstance.get() as found:
            yield found
    finally:
        if before is None:
            os.environ.pop("DAGSTER_HOME")
        else:
            os.environ["DAGSTER_HOME"] = before
