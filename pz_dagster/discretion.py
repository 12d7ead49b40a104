"""What of an engine text may reach Dagster's event log and the step's captured output, which many people read.

Error messages become summaries without values, samples of failing checks stay behind, and no absolute path is shown.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path

from pz_dagster.snapshot import Snapshot
from pz_engine import (
    CheckNode,
    CheckType,
    ConnectorLog,
    Diagnostic,
    ErrorSummary,
    NodeCompleted,
    NodeResult,
    RetryScheduled,
    RunEvent,
)

CHECK_FAILED = "PZ0510"
_ABSOLUTE = re.compile(r"(?<![\w.:/~-])/(?:[^\s/'\",:;()]+/)+([^\s/'\",:;()]*)")


@dataclass(frozen=True)
class Discretion:
    """Shortens texts for one op.

    Args:
        root: the project's directory; paths below it are shown from there.
        is_full: show sanitized engine messages in full; for a development instance.
        shows_samples: show the sampled rows of failing checks.
        counting_checks: names of the checks whose detail is a count, which is no row value.
    """

    root: Path
    is_full: bool = False
    shows_samples: bool = False
    counting_checks: frozenset[str] = frozenset()

    @classmethod
    def of(cls, snapshot: Snapshot, root: Path, *, is_full: bool, shows_samples: bool) -> Discretion:
        """Build it for a project."""
        counting = frozenset(
            node.name
            for node in snapshot.compiled.nodes
            if isinstance(node, CheckNode) and node.check.type is CheckType.ROW_COUNT
        )
        return cls(root, is_full, shows_samples, counting)

    def text(self, message: str) -> str:
        """Return an engine message as it may be shown."""
        if self.is_full:
            return message
        summary = ErrorSummary.from_message(message)
        return self.relative(f"{summary.kind}: {summary.message}" if summary.kind else summary.message)

    def error(self, result: NodeResult) -> str:
        """Return why a node failed, without its code."""
        if result.error is None:
            return ""
        if result.error.code != CHECK_FAILED:
            return self.text(result.error.message)
        first, _, detail = result.error.message.partition("\n")
        is_shown = self.shows_samples or result.name in self.counting_checks
        return f"{first}: {detail}" if detail and is_shown else first

    def event(self, event: RunEvent) -> RunEvent:
        """Return an event whose free texts may be shown."""
        if isinstance(event, NodeCompleted) and event.result.error is not None:
            error = dataclasses.replace(event.result.error, message=self.error(event.result))
            return dataclasses.replace(event, result=dataclasses.replace(event.result, error=error))
        if isinstance(event, RetryScheduled):
            return dataclasses.replace(event, reason=self.text(event.reason))
        if isinstance(event, ConnectorLog):
            return dataclasses.replace(event, message=self.text(event.message))
        return event

    def diagnostic(self, problem: Diagnostic) -> Diagnostic:
        """Return a problem without absolute paths."""
        hint = self.relative(problem.hint) if problem.hint else problem.hint
        return dataclasses.replace(problem, message=self.relative(problem.message), hint=hint)

    def relative(self, text: str) -> str:
        """Show paths from the project's directory, and of others the last part only.

        >>> Discretion(Path("/srv/shop")).relative("cannot write /srv/shop/out/a.csv or /mnt/x/b.csv, see http://a/b/c")
        'cannot write out/a.csv or …/b.csv, see http://a/b/c'
        """
        if self.is_full:
            return text
        shorter = text.replace(f"{self.root}/", "").replace(str(self.root), ".")
        return _ABSOLUTE.sub(lambda found: f"…/{found[1]}", shorter)
