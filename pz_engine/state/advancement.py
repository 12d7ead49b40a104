"""The commit gate: a watermark or token moves only after every sink below its load has committed.

Each entity stands alone: one that cannot be stored never stops the next, and never changes how the run ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from msgspec import Struct

from pz_engine.compile.dag import Graph, SinkWriteNode, SourceLoadNode
from pz_engine.errors.exceptions import PzStateError
from pz_engine.model.cursor_values import canonicalize, compare
from pz_engine.model.run import NodeResult, NodeStatus
from pz_engine.state.store import StateStores, SyncTokenEntry, WatermarkEntry

_CARRIED: Final = "carried_forward"
_REUSED: Final = "reused"


class _Failure(Struct, frozen=True):
    key: str
    reason: str


def advance_state(
    graph: Graph,
    results: Sequence[NodeResult],
    stores: StateStores,
    *,
    run_id: str,
    full_refresh: bool,
    note: Callable[[str], None],
    observed: Mapping[str, WatermarkEntry] | None = None,
    says_held: bool = False,
) -> dict[str, str]:
    """Store the candidate of each load whose sinks all committed in this run: watermarks first, then tokens.

    Args:
        graph: the whole project's graph, not the selection's.
        results: this run's results.
        stores: the run's own stores, which remember the versions they saw before dispatch.
        run_id: stored with each value.
        full_refresh: lets a watermark go back.
        note: receives one sentence per value held back by the guard, and one about everything that failed.
        observed: watermarks as the run saw them before dispatch, by key. The guard compares with these: whatever moved
            since, the store refuses. Without them it takes the present ones.
        says_held: note also what a sink holds back that did not fail; where one failed, the failure says it.

    Returns:
        The reason for each key whose candidate was not stored.
    """
    gate = _CommitGate(graph, results)
    failures: list[_Failure] = []

    @cache
    def known() -> Mapping[str, WatermarkEntry]:
        return observed if observed is not None else stores.watermarks.list_all() or {}

    def store_watermark(node: SourceLoadNode, result: NodeResult) -> str | None:
        candidate = result.watermark
        if candidate is None:
            return None
        entry = WatermarkEntry(candidate.cursor, candidate.type, candidate.value, run_id)
        reason = None if full_refresh else _guard(entry, known().get(node.key))
        if reason is None:
            stores.watermarks.set(node.key, entry)
        else:
            note(f"the watermark of {node.key} stays: {reason}")
        return reason

    def store_token(node: SourceLoadNode, result: NodeResult) -> str | None:
        if result.sync_token is not None:
            stores.sync_tokens.set(node.key, SyncTokenEntry(result.sync_token, run_id))
        return None

    held = {
        **gate.advance(lambda result: result.watermark is not None, store_watermark, failures),
        **gate.advance(lambda result: result.sync_token is not None, store_token, failures),
    }
    if says_held and not any(result.status is NodeStatus.FAILED for result in results):
        for key, reason in gate.held_by_sinks.items():
            note(f"the watermark of {key} stays: {reason}")
    if failures:
        note(_not_advanced(failures))
    return held


class _CommitGate:
    """Decides, load by load, whether everything below has committed."""

    def __init__(self, graph: Graph, results: Sequence[NodeResult]) -> None:
        self._graph = graph
        self._results = {result.id: result for result in reversed(results)}
        self.held_by_sinks: dict[str, str] = {}

    def advance(
        self,
        has_candidate: Callable[[NodeResult], bool],
        store: Callable[[SourceLoadNode, NodeResult], str | None],
        failures: list[_Failure],
    ) -> dict[str, str]:
        """Store what may be stored; returns why the rest was not."""
        held: dict[str, str] = {}
        for node in self._graph.nodes:
            result = self._results.get(node.id)
            if not isinstance(node, SourceLoadNode) or result is None or result.status is not NodeStatus.SUCCESS:
                continue
            if not has_candidate(result):
                continue
            reason = _gate(self._graph, node, result, self._results)
            if reason is not None:
                self.held_by_sinks[node.key] = reason
            if reason is None:
                try:
                    reason = store(node, result)
                except Exception as error:
                    reason = _describe(error)
                    failures.append(_Failure(node.key, reason))
            if reason is not None:
                held[node.key] = reason
        return held


def _gate(graph: Graph, node: SourceLoadNode, load: NodeResult, results: Mapping[str, NodeResult]) -> str | None:
    below = graph.descendants([node.id])
    sinks = [each for each in graph.nodes if isinstance(each, SinkWriteNode) and each.id in below]
    if load.provenance != _REUSED:
        for sink in sinks:
            if sink.id in results and results[sink.id].provenance == _CARRIED:
                return f"sink '{sink.name}' committed an older slice than the one just read"
    for sink in sinks:
        if sink.id not in results:
            return f"sink '{sink.name}' was not part of this run"
        if results[sink.id].status is not NodeStatus.SUCCESS:
            return f"sink '{sink.name}' did not commit"
    return None


def _guard(entry: WatermarkEntry, current: WatermarkEntry | None) -> str | None:
    """Return why a smaller value may not replace a larger one."""
    if current is None or current.type != entry.type:
        return None
    stored, candidate = canonicalize(current.type, current.value), canonicalize(entry.type, entry.value)
    if stored is None or candidate is None or compare(entry.type, candidate, stored) >= 0:
        return None
    return "this run captured a smaller value than the stored one"


def _describe(error: Exception) -> str:
    if isinstance(error, PzStateError):
        return f"{error.code} {error.message}"
    return type(error).__name__


def _not_advanced(failures: Sequence[_Failure]) -> str:
    listed = "; ".join(f"{failure.key}: {failure.reason}" for failure in failures)
    return (
        f"PZ0527 the data was delivered but state was not stored ({listed}); the next run reads on from the value that "
        "is stored, so outputs that append may hold rows twice"
    )
