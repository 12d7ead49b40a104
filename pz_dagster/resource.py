"""The resource through which an op runs the engine."""

import os
from collections.abc import Mapping
from typing import Any, Literal

import dagster as dg

from pz_dagster.errors import PzDagsterError
from pz_dagster.invocation import PzInvocation
from pz_dagster.run_config import PzRunConfig
from pz_engine import Diagnostic

_HIDDEN_MARK = "hidden value of "
_hidden: dict[str, str] = {}
"""Values of `PzResource.env` by what stands for them in Dagster, which stores and shows the config of resources."""


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
    """Variables for `${NAME}` and `env()` of this engine only; never exported to the process. Of a value that is no
    `dg.EnvVar` Dagster only gets a placeholder."""

    log_progress_seconds: int = 30
    """Shortest time between two progress lines of one node."""

    state_copy: Literal["auto", "off"] = "auto"
    """Keep a copy of watermarks and public sync tokens in the Dagster instance, from which a lost disk is restored; `off`
    keeps every position out of the instance's storage."""

    error_detail: Literal["auto", "summary", "full"] = "auto"
    """Engine messages in Dagster's event log: summaries without values, or sanitized in full; `auto` is full under
    `dagster dev` only."""

    def __init__(self, **fields: Any) -> None:
        if isinstance(fields.get("env"), Mapping):
            fields["env"] = {name: _hide(name, value) for name, value in fields["env"].items()}
        super().__init__(**fields)

    @property
    def variables(self) -> dict[str, str]:
        """The values of `env`.

        Raises:
            PzDagsterError: `PZ0701`, a launch holds the placeholder of a value that the definitions have no more.
        """
        return {name: _reveal(name, value) for name, value in self.env.items()}

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


def _hide(name: str, value: Any) -> Any:
    """Return what stands for a value; the same in every process that loads the same definitions."""
    if not isinstance(value, str) or isinstance(value, dg.EnvVar) or value.startswith(_HIDDEN_MARK):
        return value
    number, mark = 1, f"{_HIDDEN_MARK}{name}"
    while _hidden.get(mark, value) != value:
        number += 1
        mark = f"{_HIDDEN_MARK}{name} ({number})"
    _hidden[mark] = value
    return mark


def _reveal(name: str, value: str) -> str:
    if value.startswith(_HIDDEN_MARK) and value not in _hidden:
        problem = Diagnostic(
            "PZ0701", f"PzResource.env: the value of {name} has changed", hint="reload the definitions and launch again"
        )
        raise PzDagsterError(str(problem), problems=[problem])
    return _hidden.get(value, value)
