"""What the guarantees allow, worked out from the sources' history alone; knows nothing of how the engine does it.

Every check returns complaints, so that one look at a step shows all that is wrong with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.resume.cases import Case, PipelineCase, SinkCase, SourceCase, Step

Row = tuple[str, int, int]
Rows = tuple[Row, ...]


@dataclass(frozen=True)
class Seen:
    """Everything visible from outside after a step."""

    shown: dict[str, Counter[Row]]
    """Rows by sink."""

    state: dict[str, tuple[int, str]]
    """Watermark or token, and the run that stored it, by source."""

    results: dict[str, Any] | None
    """The newest run's `run_results.json`."""

    log: list[dict[str, Any]]
    """Operations of this step."""


@dataclass
class Prior:
    """What a retry goes on from."""

    status: str = "none"
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    slices: dict[str, Rows | None] = field(default_factory=dict)
    """Rows of each load that succeeded; None when parts of it are of different times."""

    first_read: dict[str, int] = field(default_factory=dict)
    """Length of the history when the oldest part that may be taken was read, for loads that failed."""

    confirmed: dict[str, tuple[int, Rows]] = field(default_factory=dict)
    """Confirmed leading rows of a failed write, and the rows it was writing."""


class Model:
    """Follows one case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.history: dict[str, list[Row]] = {source.name: [] for source in case.sources}
        self.prior = Prior()

    def happen(self, grows: dict[str, list[dict[str, Any]]]) -> None:
        """Let the sources change."""
        for name, rows in grows.items():
            self.history[name] += [(row["id"], row["seq"], row["v"]) for row in rows]

    def check(self, step: Step, answer: dict[str, Any], before: Seen, after: Seen) -> list[str]:
        """Compare a step with what is allowed, and remember it."""
        complaints = [*self._always(after)]
        end, expected = answer["end"], self._expected_end(step)
        if end not in expected:
            complaints.append(f"the step ended {end} {answer.get('code', '')}, expected {expected}")
        elif end == "refused" and answer["code"] != {"none": "PZ0502", "running": "PZ0503"}[self.prior.status]:
            complaints.append(f"a retry of a run that is {self.prior.status} was refused with {answer['code']}")
        if end in ("nothing", "refused"):
            complaints += self._untouched(before, after)
        elif end == "died":
            complaints += self._died(before, after)
        else:
            complaints += self._finished(step, answer, before, after)
        return complaints

    def converged(self, after: Seen) -> Iterator[str]:
        """Compare the destinations after a clean run with those of a world without faults."""
        for sink in self.case.sinks:
            pipeline = self.case.pipelines[sink.pipeline]
            wanted = Counter(self._relation(pipeline, {name: self._current(name) for name in pipeline.sources}))
            shown = after.shown[sink.name]
            if sink.strategy == "append" and wanted - shown:
                yield f"{sink.name}: rows never arrived: {sorted(wanted - shown)}"
            if sink.strategy != "append" and shown != wanted:
                yield f"{sink.name}: lacks {sorted(wanted - shown)}, has beside {sorted(shown - wanted)}"

    def _current(self, source: str, after: int | None = None) -> Rows:
        newest = {row[0]: row for row in self.history[source]}
        return tuple(sorted(row for row in newest.values() if after is None or row[1] > after))

    def _relation(self, pipeline: PipelineCase, slices: dict[str, Rows]) -> Rows:
        rows = [row for name in pipeline.sources for row in slices[name]]
        return tuple(sorted(self._mapped(pipeline, row) for row in rows))

    @staticmethod
    def _mapped(pipeline: PipelineCase, row: Row) -> Row:
        return (row[0], row[1], row[2] + 1000 * (row[2] % 3 + 1)) if pipeline.joins else row

    def _always(self, after: Seen) -> Iterator[str]:
        """Whatever happened: only true rows, keys once, and no state beyond what every sink has."""
        for sink in self.case.sinks:
            pipeline, shown = self.case.pipelines[sink.pipeline], after.shown[sink.name]
            true = {self._mapped(pipeline, row) for name in pipeline.sources for row in self.history[name]}
            if set(shown) - true:
                yield f"{sink.name} shows rows that never existed: {sorted(set(shown) - true)}"
            if sink.strategy == "merge" and len({row[0] for row in shown}) != shown.total():
                yield f"{sink.name} shows a key twice"
            newest = {row[0]: row[1] for row in shown}
            for name in pipeline.sources:
                if name not in after.state:
                    continue
                reached = after.state[name][0]
                for row in (self._mapped(pipeline, each) for each in self._current(name) if each[1] <= reached):
                    has = newest.get(row[0], -1) >= row[1] if sink.strategy == "merge" else row in shown
                    if not has:
                        yield f"state of {name} stands at {reached}, but {sink.name} lacks {row}"

    def _expected_end(self, step: Step) -> tuple[str, ...]:
        ends = {"none": ("refused",), "running": ("refused",), "success": ("nothing",)}
        if step.action == "retry" and self.prior.status in ends:
            return ends[self.prior.status]
        point, _, action = (step.engine_fault or "").partition("=")
        escapes = action == "raise" and point == "after_node_results"
        return ("finished", "died") if step.may_kill or escapes else ("finished",)

    def _untouched(self, before: Seen, after: Seen) -> Iterator[str]:
        if before.shown != after.shown or before.state != after.state or before.results != after.results or after.log:
            yield "a refused step left a trace"

    def _died(self, before: Seen, after: Seen) -> Iterator[str]:
        results = after.results
        if results is None or results == before.results:
            return
        if results["status"] != "running":
            yield f"the process died, and results say {results['status']}"
        names = [node["name"] for node in results["nodes"]]
        if len(names) != len(set(names)):
            yield f"a node has two results: {names}"
        self.prior = Prior("running")

    def _finished(self, step: Step, answer: dict[str, Any], before: Seen, after: Seen) -> Iterator[str]:
        results = after.results or {"nodes": [], "status": "missing", "runId": ""}
        nodes = {node["name"]: node for node in results["nodes"]}
        now = Prior(results["status"], nodes)
        yield from self._statuses(step, answer, results, nodes)
        for source in self.case.sources:
            yield from self._load(step, source, nodes, before, after, now)
        for sink in self.case.sinks:
            yield from self._sink(step, sink, nodes, before, after, now)
        for source in self.case.sources:
            yield from self._gate(source, nodes, before, after, now, answer["run_id"])
        self.prior = now

    def _statuses(
        self, step: Step, answer: dict[str, Any], results: dict[str, Any], nodes: dict[str, Any]
    ) -> Iterator[str]:
        if results["runId"] != answer["run_id"] or results["status"] != answer["status"]:
            yield f"results {results['runId']} {results['status']} belong to another end than {answer}"
        failed = any(node["status"] == "failed" for node in nodes.values())
        if (answer["status"], answer["exit_code"]) != (("completed_with_failures", 1) if failed else ("success", 0)):
            yield f"the run ended {answer['status']} with {answer['exit_code']}"
        if len(results["nodes"]) != len(nodes):
            yield "a node has two results"
        everything = {load_name(source) for source in self.case.sources} | {sink_name(sink) for sink in self.case.sinks}
        everything |= {f"p{number}" for number in range(len(self.case.pipelines))}
        if any(pipeline.joins for pipeline in self.case.pipelines):
            everything.add("src_plain__dim")
        if step.action == "run" and set(nodes) != everything:
            yield f"nodes without a result: {everything - set(nodes)}, unknown ones: {set(nodes) - everything}"
        if step.action == "retry":
            again = {name for name, node in self.prior.nodes.items() if node["status"] in ("failed", "skipped")}
            yield from self._carrying(nodes)
            if not again <= set(nodes) <= everything:
                yield f"the retry has results for {sorted(nodes)}, not for all of {sorted(again)}"

    def _carrying(self, nodes: dict[str, Any]) -> Iterator[str]:
        """A sink that committed all of what is taken again counts as done."""
        for sink in self.case.sinks:
            pipeline = self.case.pipelines[sink.pipeline]
            above = {load_name(source) for source in self.case.sources if source.name in pipeline.sources}
            above |= {"src_plain__dim"} if pipeline.joins else set()
            proven = (
                f"p{sink.pipeline}",
                sink_name(sink),
            )  # a pipeline that had no part in the prior run proves nothing
            committed = all(self.prior.nodes.get(name, {}).get("status") == "success" for name in proven)
            if committed and above <= set(nodes) and nodes.get(sink_name(sink), {}).get("provenance") is None:
                yield f"{sink_name(sink)} had committed and is not carried forward"

    def _load(
        self, step: Step, source: SourceCase, nodes: dict[str, Any], before: Seen, after: Seen, now: Prior
    ) -> Iterator[str]:
        name = load_name(source)
        node, was = nodes.get(name), self.prior.nodes.get(name) if step.action == "retry" else None
        reads = [entry for entry in after.log if entry["op"] == "read" and entry["entity"] == source.name]
        length = len(self.history[source.name])
        if node is None:
            if reads:
                yield f"{name} was read, but has no result"
            return
        if node.get("provenance") == "reused":
            if was is None or was["status"] != "success" or reads:
                yield f"{name} claims to be reused"
            now.slices[source.name] = self.prior.slices.get(source.name)
            return
        if was is not None and was["status"] == "success":
            yield f"{name} succeeded before and was read again"
        if node["status"] != "success":
            first = self.prior.first_read.get(source.name, length) if was is not None else length
            now.first_read[source.name] = first
            return
        floor = before.state[source.name][0] if source.name in before.state and source.shape != "full" else None
        fresh = self._current(source.name, floor)
        partitions = node.get("partitions") or {"reused": 0, "resumed": 0, "completed": 1, "total": 1}
        is_older = was is not None and self.prior.first_read.get(source.name, length) != length
        is_mixed = is_older and bool(partitions["reused"] or partitions["resumed"])
        now.slices[source.name] = None if is_mixed else fresh
        if partitions["completed"] != partitions["total"]:
            yield f"{name} succeeded with {partitions}"
        if partitions["reused"] and was is None:
            yield f"{name} took partitions from nowhere"
        if not is_mixed and node["rows"] != len(fresh):
            yield f"{name} landed {node['rows']} rows of {len(fresh)}"
        if source.shape == "incremental" and not is_mixed:
            captured = node.get("watermark", {}).get("value")
            wanted = str(max(row[1] for row in fresh)) if fresh else None
            is_of_several_readings = bool(partitions["reused"]) or (source.partitions > 1 and self.case.attempts > 1)
            is_fine = captured is None or (wanted is not None and int(captured) <= int(wanted))
            if captured != wanted and not (is_of_several_readings and is_fine):
                yield f"{name} captured {captured}, not {wanted}"

    def _gate(
        self, source: SourceCase, nodes: dict[str, Any], before: Seen, after: Seen, now: Prior, run_id: str
    ) -> Iterator[str]:
        was, stands = before.state.get(source.name), after.state.get(source.name)
        load = nodes.get(load_name(source))
        wanted = was
        if load is not None and load["status"] == "success" and self._all_committed(source, load, nodes):
            candidate: str | None = None
            if source.shape == "incremental" and "watermark" in load:
                candidate = load["watermark"]["value"]
            if source.shape == "feed" and load.get("provenance") != "reused" and self.history[source.name]:
                candidate = str(self.history[source.name][-1][1])
            if candidate is not None and (was is None or int(candidate) >= was[0]):
                wanted = (int(candidate), run_id)
        if stands != wanted:
            yield f"state of {source.name} stands at {stands}, expected {wanted}"

    def _all_committed(self, source: SourceCase, load: dict[str, Any], nodes: dict[str, Any]) -> bool:
        for sink in self.case.sinks:
            if source.name not in self.case.pipelines[sink.pipeline].sources:
                continue
            node = nodes.get(sink_name(sink))
            if node is None or node["status"] != "success":
                return False
            if node.get("provenance") == "carried_forward" and load.get("provenance") != "reused":
                return False
        return True

    def _sink(
        self, step: Step, sink: SinkCase, nodes: dict[str, Any], before: Seen, after: Seen, now: Prior
    ) -> Iterator[str]:
        name = sink_name(sink)
        node, was = nodes.get(name), self.prior.nodes.get(name) if step.action == "retry" else None
        shown, showed = after.shown[sink.name], before.shown[sink.name]
        log = [entry for entry in after.log if entry.get("entity") == sink.name]
        if node is None or node["status"] == "skipped" or node.get("provenance") == "carried_forward":
            if shown != showed or any(entry["op"] == "begin" for entry in log):
                yield f"{name} was written, its result is {node}"
            if node is not None and node["status"] != "skipped" and (was is None or was["status"] != "success"):
                yield f"{name} is carried forward without a commit"
            return
        if was is not None and was["status"] == "success":
            yield f"{name} had committed and was written again"
        pipeline = self.case.pipelines[sink.pipeline]
        slices = {each: now.slices.get(each) for each in pipeline.sources}
        known = {each: rows for each, rows in slices.items() if rows is not None}
        relation = self._relation(pipeline, known) if len(known) == len(slices) else None
        resumed = yield from self._deliveries(sink, node, relation, log, now, may_resume=was is not None)
        dirty = bool(_acted(log) & {"landed", "unknown", "half", "wrong_count"}) or step.engine_fault is not None
        if node["status"] == "failed":
            if sink.kind != "confirming" and not dirty and shown != showed:
                yield f"{name} failed and left a trace"
            return
        if relation is not None:
            yield from self._delivered(sink, node, relation, resumed, showed, shown, dirty=dirty)

    def _delivered(
        self,
        sink: SinkCase,
        node: dict[str, Any],
        relation: Rows,
        resumed: int,
        showed: Counter[Row],
        shown: Counter[Row],
        *,
        dirty: bool,
    ) -> Iterator[str]:
        name = sink_name(sink)
        if not dirty and node["rows"] != len(relation):
            yield f"{name} says {node['rows']} rows of {len(relation)}"
        if sink.strategy == "append":
            missing, new = Counter(relation) - shown, shown - showed
            if missing:
                yield f"{name} succeeded and lacks {sorted(missing)}"
            if not dirty and node_attempts_once(self.case) and new != Counter(relation[resumed:]):
                yield f"{name} was sent {sorted(new.elements())} of {relation} from {resumed}"
            return
        kept = {} if sink.strategy == "replace" else {row[0]: row for row in showed}
        kept.update({row[0]: row for row in relation})
        if set(kept.values()) != set(shown):
            yield f"{name} shows {sorted(shown)}, expected {sorted(kept.values())}"

    def _deliveries(
        self,
        sink: SinkCase,
        node: dict[str, Any],
        relation: Rows | None,
        log: Sequence[dict[str, Any]],
        now: Prior,
        *,
        may_resume: bool,
    ) -> Generator[str, None, int]:
        """Check that each session goes on after what was confirmed; returns how many rows the first one skipped."""
        if sink.kind != "confirming" or relation is None:
            return 0
        name = sink_name(sink)
        kept: tuple[int, Rows] = self.prior.confirmed.get(sink.name, (0, ())) if may_resume else (0, ())
        confirmed, of = kept
        confirmed = confirmed if of == relation else 0
        first: int | None = None
        current = 0
        for number, entry in enumerate(log):
            if entry["op"] == "begin":
                following = log[number + 1] if number + 1 < len(log) else {"op": "nothing"}
                current = int(following["rows"]) if following["op"] == "resume" else 0
                first = current if first is None else first
                if current != confirmed and not (confirmed == 0 and current == 0):
                    yield f"{name}: {confirmed} rows were confirmed, the session skips {current}"
            if entry["op"] == "confirmed":
                confirmed = max(confirmed, entry["rows"])
            if entry["op"] == "batch" and not {tuple(row) for row in entry["rows"]} <= set(relation):
                yield f"{name}: a request holds rows that are not of the relation"
        if node["status"] == "failed":
            now.confirmed[sink.name] = (confirmed, relation)
            told = (node.get("delivery") or {}).get("rows_visible")
            if told is not None and told != max(confirmed, current):
                yield f"{name}: {told} rows are said to be visible, {confirmed} were confirmed"
        return first or 0


def _acted(log: Sequence[dict[str, Any]]) -> set[str]:
    return {entry["action"] for entry in log if entry["op"] == "fault"}


def node_attempts_once(case: Case) -> bool:
    """Whether a node has one try, so that nothing of a first try may be visible."""
    return case.attempts == 1


def load_name(source: SourceCase) -> str:
    """Return the name of a source's node."""
    return f"src_{source.connection}__{source.name}"


def sink_name(sink: SinkCase) -> str:
    """Return the name of a sink's node."""
    return f"{ {'transactional': 'whole', 'confirming': 'slow', 'parquet': 'lake'}[sink.kind] }.{sink.name}"
