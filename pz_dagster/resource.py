"""The resource through which an op runs the engine."""

import os
from typing import Any, Literal

import dagster as dg

from pz_dagster.invocation import PzInvocation
from pz_dagster.run_config import PzRunConfig


class PzResource(dg.ConfigurableResource[Any]):
    """Engine settings of one deployment.

    Everything left out follows the project's own `engine:` keys.
    """

    threads: int | None = None
    """Nodes run at once."""

    memory_limit: str | None = None
    """DuckDB's memory limit."""

    duckdb_threads: int | None = None
    """Size of DuckDB's own thread pool."""

    env: dict[str, str] = {}
    """Variables for `${NAME}` and `env()` of this engine only; never exported to the process."""

    log_progress_seconds: int = 30
    """Shortest time between two progress lines of one node."""

    state_copy: Literal["auto", "off"] = "auto"
    """Keep a copy of watermarks and public sync tokens in the Dagster instance, from which a lost disk is restored; `off`
    keeps every position out of the instance's storage."""

    error_detail: Literal["auto", "summary", "full"] = "auto"
    """Engine messages in Dagster's event log: summaries without values, or sanitized in full; `auto` is full under
    `dagster dev` only."""

    @property
    def shows_full_errors(self) -> bool:
        """Tell whether engine messages are shown in full."""
        return self.error_detail == "full" or (
            self.error_detail == "auto" and bool(os.environ.get("DAGSTER_IS_DEV_CLI"))
        )

    def run(self, *, context: dg.AssetExecutionContext, config: PzRunConfig | None = None) -> PzInvocation:
        """Start the engine for the running op; read the returned invocation's `stream()` to its end."""
        return PzInvocation(resource=self, context=context, config=config or PzRunConfig())

    def __repr__(self) -> str:
        return (
            f"PzResource(threads={self.threads}, memory_limit={self.memory_limit!r}, env=<{len(self.env)} variables>)"
        )
