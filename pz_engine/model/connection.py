"""Connections: places with credentials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pz_engine.model.entity import Entity
from pz_engine.model.places import Lines, nearest_line
from pz_engine.model.policies import RateLimit, RetryDeclaration


@dataclass(frozen=True, slots=True)
class Connection:
    """One top-level key of `connections.yml`."""

    name: str
    connector: str
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Connector configuration with variables resolved: secret, lives in memory only."""

    entities: Mapping[str, Entity] = field(default_factory=dict)
    max_concurrency: int | None = None
    rate_limit: RateLimit | None = None
    retry: RetryDeclaration | None = None
    allow_unsigned_extensions: bool = False
    line: int | None = None
    lines: Lines = field(default_factory=dict, compare=False, repr=False)

    def line_of(self, path: str) -> int | None:
        """Return the line of a key, for example `auth.user`."""
        return nearest_line(self.lines, path, self.line)
