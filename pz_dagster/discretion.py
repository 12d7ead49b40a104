"""What of an engine text may reach Dagster's event log and the step's captured output, which many people read.

Error messages become summaries without values, samples of failing checks stay behind, and no absolute path is shown.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import quote, quote_plus

from msgspec import structs

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
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SHORTEST_SECRET = 4
_ABSOLUTE = re.compile(r"(?<![\w.:/~-])/(?:[^\s/'\",:;()]+/)+([^\s/'\",:;()]*)")

_POSITION = re.compile(r"(the watermark )\S+( has reached)")


@dataclass(frozen=True)
class Discretion:
    """Shortens texts for one op.

    Args:
        root: the project's directory; paths below it are shown from there.
        state_path: where its runs and state live; shown as `.pz`.
        is_full: show sanitized engine messages in full; for a development instance.
        shows_samples: show the sampled rows of failing checks.
        counting_checks: names of the checks whose detail is a count, which is no row value.
        hidden: texts that are never shown, each with what stands for it: values of `${NAME}`, also as URLs and SQL
            write them.
    """

    root: Path
    state_path: Path | None = None
    is_full: bool = False
    shows_samples: bool = False
    counting_checks: frozenset[str] = frozenset()
    hidden: Mapping[str, str] = field(default_factory=dict, repr=False)
    shows_positions: bool = True
    """Show the values of watermarks."""

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        root: Path,
        state_path: Path,
        *,
        env: Mapping[str, str],
        is_full: bool,
        shows_samples: bool,
        shows_positions: bool = True,
    ) -> Discretion:
        """Build it for a project; `env` is what `${NAME}` is read from."""
        counting = frozenset(
            node.name
            for node in snapshot.compiled.nodes
            if isinstance(node, CheckNode) and node.check.type is CheckType.ROW_COUNT
        )
        return cls(root, state_path, is_full, shows_samples, counting, _values_in_use(root, env), shows_positions)

    def text(self, message: str) -> str:
        """Return an engine message as it may be shown."""
        if self.is_full:
            return self.without_values(message)
        summary = ErrorSummary.from_message(self.without_values(message))  # a summary may cut a value in two
        return self.relative(f"{summary.kind}: {summary.message}" if summary.kind else summary.message)

    def error(self, result: NodeResult) -> str:
        """Return why a node failed, without its code."""
        if result.error is None:
            return ""
        if result.error.code != CHECK_FAILED:
            return self.text(result.error.message)
        first, _, detail = result.error.message.partition("\n")
        is_shown = self.shows_samples or result.name in self.counting_checks
        return self.without_values(f"{first}: {detail}" if detail and is_shown else first)

    def event(self, event: RunEvent) -> RunEvent:
        """Return an event whose free texts may be shown."""
        if isinstance(event, NodeCompleted):
            return _with_texts(event, lambda _: self.error(event.result))
        return _with_texts(event, self.text)

    def named(self, event: RunEvent) -> RunEvent:
        """Return an event whose free texts name variables; what shortens them later might cut a value in two."""
        return _with_texts(event, self.without_values)

    def diagnostic(self, problem: Diagnostic) -> Diagnostic:
        """Return a problem without absolute paths."""
        hint = self.relative(problem.hint) if problem.hint else problem.hint
        return dataclasses.replace(problem, message=self.relative(problem.message), hint=hint)

    def relative(self, text: str) -> str:
        """Show paths from the project's directory, and of others the last part only.

        >>> Discretion(Path("/srv/shop")).relative("cannot write /srv/shop/out/a.csv or /mnt/x/b.csv, see http://a/b/c")
        'cannot write out/a.csv or …/b.csv, see http://a/b/c'
        >>> Discretion(Path("/srv/shop"), Path("/data")).relative("in /srv/shop, /data/runs, /data, /srv/shop-2/x and /mnt/data/y")
        'in ., .pz/runs, .pz, …/x and …/y'
        """
        text = self.without_values(text)
        if not self.shows_positions:
            text = _POSITION.sub(r"\1…\2", text)
        if self.is_full:
            return text
        homes = {str(self.root): "", str(self.state_path or self.root / ".pz"): ".pz/"}
        for home in sorted(homes, key=len, reverse=True):  # one may lie in the other
            text = _under(home).sub(homes[home], text)
            text = _alone(home).sub(homes[home].rstrip("/") or ".", text)
        return _ABSOLUTE.sub(lambda found: f"…/{found[1]}", text)

    def without_values(self, text: str) -> str:
        """Put the names of variables in place of their values."""
        for value, name in self.hidden.items():
            text = text.replace(value, name)
        return text


@cache
def _under(home: str) -> re.Pattern[str]:
    """Match a folder before the names below it, but no other one whose path merely holds its letters."""
    return re.compile(rf"(?<![\w./~-]){re.escape(home)}/")


@cache
def _alone(home: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./~-]){re.escape(home)}(?![\w/-])")


def _with_texts(event: RunEvent, change: Callable[[str], str]) -> RunEvent:
    """Replace the texts of an event that others than the engine have written."""
    if isinstance(event, NodeCompleted) and event.result.error is not None:
        error = structs.replace(event.result.error, message=change(event.result.error.message))
        return structs.replace(event, result=dataclasses.replace(event.result, error=error))
    if isinstance(event, RetryScheduled):
        return structs.replace(event, reason=change(event.reason))
    if isinstance(event, ConnectorLog):
        return structs.replace(event, message=change(event.message))
    return event


def _values_in_use(root: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the variables that the project's files name, longest first; very short ones tell nothing."""
    names: set[str] = set()
    for file in ("project.yml", "connections.yml"):
        with contextlib.suppress(OSError):
            names.update(_REFERENCE.findall((root / file).read_text(encoding="utf-8", errors="replace")))
    found: dict[str, str] = {}
    for name in names:
        value = env.get(name, "")
        if len(value) >= _SHORTEST_SECRET:
            forms = {value, quote(value), quote(value, safe=""), quote_plus(value), value.replace("'", "''")}
            found.update(dict.fromkeys(forms, f"${{{name}}}"))
    return dict(sorted(found.items(), key=lambda entry: -len(entry[0])))
