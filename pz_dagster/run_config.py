"""Config of one op run; it never selects nodes, selection is Dagster's."""

from typing import Any

import dagster as dg


class PzRunConfig(dg.Config):
    """What can be changed for one launch."""

    full_refresh: bool = False
    """Ignore stored watermarks while reading; they are still advanced."""

    fail_fast: bool = False
    """Cancel the rest on the first failed node."""

    vars: dict[str, Any] = {}
    """Overrides of the project's `vars:`; stored and shown by Dagster, so never for secrets."""

    checks: str | None = None
    """`gate` or `observe` in place of what the definitions say."""
