"""Config of one op run; it never selects nodes, selection is Dagster's."""

from typing import Any

import dagster as dg
from pydantic import Field


class PzRunConfig(dg.Config):
    """What can be changed for one launch."""

    full_refresh: bool = False
    """Ignore stored watermarks while reading; they are still advanced."""

    fail_fast: bool = False
    """Cancel the rest on the first failed node."""

    until_caught_up: int = Field(default=1, ge=1)
    """Most runs of the engine in this op: one window after another until every source has reached its `until`."""

    vars: dict[str, Any] = {}
    """Overrides of the project's `vars:`; stored and shown by Dagster, so never for secrets."""

    checks: str | None = None
    """`gate` or `observe` in place of what the definitions say."""
