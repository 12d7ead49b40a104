"""What can go wrong between Dagster and a pz project.

`PzDagsterError` fails an op and carries the diagnostics as values; `PzDefinitionError` is raised while definitions are
built. Neither holds a value, a credential or a stack trace of the engine.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from pz_engine import Diagnostic, NodeResult


class PzDagsterError(dg.Failure):
    """An op failed; `failed_nodes` and `problems` say why."""

    def __init__(
        self,
        description: str,
        *,
        metadata: dict[str, dg.MetadataValue] | None = None,
        failed_nodes: Sequence[NodeResult] = (),
        problems: Sequence[Diagnostic] = (),
        allow_retries: bool = False,
    ) -> None:
        self.failed_nodes = tuple(failed_nodes)
        """Results of the nodes that failed."""

        self.problems = tuple(problems)
        """Problems found before the run started."""

        super().__init__(description=description, metadata=metadata, allow_retries=allow_retries)


class PzDefinitionError(dg.DagsterInvalidDefinitionError):
    """Definitions cannot be built from the project."""

    def __init__(self, problems: Sequence[Diagnostic]) -> None:
        self.problems = tuple(problems)
        """Everything that is wrong."""

        super().__init__("\n".join(str(problem) for problem in self.problems))
