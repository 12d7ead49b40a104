"""What `project.yml` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import Struct

from pz_engine.model.policies import DriftPolicy


class DuckDbSettings(Struct, frozen=True):
    """`engine.duckdb:`; None leaves DuckDB's own default."""

    memory_limit: str | None = None
    threads: int | None = None
    temp_directory: str | None = None
    allow_extension_download: bool = False


class BreakerSettings(Struct, frozen=True):
    """Limits of every connection's circuit breaker."""

    failure_threshold: int
    """Transient failures in a row that open the breaker; at least 1."""

    cool_down: timedelta
    """Shortest time spent open."""


class EngineSettings(Struct, frozen=True):
    """`engine:`."""

    threads: int = 4
    batch_bytes: int = 33_554_432
    force_universal: bool = False
    fusion: bool = True
    check_samples: bool = True
    node_timeout: timedelta | None = None
    duckdb: DuckDbSettings = msgspec.field(default_factory=DuckDbSettings)
    breaker: BreakerSettings | None = None


@dataclass(frozen=True, slots=True)
class StateSettings:
    """`state:` after its environment defaults were applied; credentials never appear in a repr."""

    backend: str = "local"
    origin: str = "default"
    """Where the backend's name came from: `default`, `project.yml`, or the variable's name."""

    connection: str | None = None
    schema: str = "pz"
    artifacts: bool = False
    events: bool = False
    url: str | None = None
    timeout_seconds: int = 30
    connection_string: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)


class ConnectorRequirement(Struct, frozen=True):
    """One entry of `connectors:`: an external connector package at an exact version."""

    package: str
    version: str
    line: int | None = None


class Project(Struct, frozen=True):
    """`project.yml`, with `--vars` applied."""

    name: str
    version: str
    pz: str | None = None
    connectors: tuple[ConnectorRequirement, ...] = ()
    vars: Mapping[str, Any] = msgspec.field(default_factory=dict)
    engine: EngineSettings = msgspec.field(default_factory=EngineSettings)
    retention_keep_last: int | None = 10
    """Runs whose staging database is kept; None switches retention off."""

    state: StateSettings = msgspec.field(default_factory=StateSettings)
    on_source_drift: DriftPolicy = DriftPolicy.IGNORE
