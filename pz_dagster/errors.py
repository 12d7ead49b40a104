"""What can go wrong between Dagster and a pz project.

`PzDagsterError` fails an op and carries the diagnostics as values; `PzDefinitionError` is raised while definitions are
built. Neither holds a value, a credential or a stack trace of the engine.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg
from msgspec import Struct

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


class FailedNode(Struct, frozen=True):
    """A node that failed, as Dagster's event log keeps it."""

    node: str
    code: str
    message: str
    """A summary without values."""

    attempts: int | None
    """None when nobody counted them."""


def failed_nodes(event: dg.DagsterEvent | None) -> tuple[FailedNode, ...]:
    """Read the failed nodes of a failure event: `context.failure_event` of a run-failure sensor, or a step's own.

    Empty for a failure that is not a pz op's, such as a process that was killed.
    """
    if event is not None and event.is_job_failure:
        event = event.job_failure_data.first_step_failure_event
    if event is None or not event.is_step_failure:
        return ()
    data = event.step_failure_data.user_failure_data
    found = data.metadata.get("pz/failed") if data is not None else None
    if not isinstance(found, dg.TableMetadataValue):
        return ()
    rows = [record.data for record in found.records]
    return tuple(
        FailedNode(
            str(row["node"]),
            str(row["code"]),
            str(row["message"]),
            int(attempts) if (attempts := str(row["attempts"])) else None,
        )
        for row in rows
    )


class PzDefinitionError(dg.DagsterInvalidDefinitionError):
    """Definitions cannot be built from the project."""

    def __init__(self, problems: Sequence[Diagnostic]) -> None:
        self.problems = tuple(problems)
        """Everything that is wrong."""

        super().__init__("\n".join(str(problem) for problem in self.problems))
