"""Config of one op run; it never selects nodes, selection is Dagster's."""

from typing import Any

import dagster as dg
from pydantic import Field, field_validator


class PzRunConfig(dg.Config):
    """What can be changed for one launch."""

    full_refresh: bool = False
    """Ignore stored watermarks while reading; they are still advanced."""

    fail_fast: bool = False
    """Cancel the rest on the first failed node."""

    until_caught_up: int = Field(default=1, ge=1)
    """Most runs of the engine in this op: one window after another until every source has reached its `until`."""

    vars: Any = {}
    """Overrides of the project's `vars:`, a mapping of names to JSON values; stored and shown by Dagster, so never for
    secrets."""  # Dagster's own mappings refuse null as a value

    checks: str | None = None
    """`gate` or `observe` in place of what the definitions say."""

    @field_validator("vars")
    @classmethod
    def _is_mapping(cls, found: Any) -> dict[str, Any]:
        if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
            raise ValueError("write a mapping of names to values")
        return found
