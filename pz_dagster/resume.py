"""Which pz run an attempt of an op continues, and what is left to do then.

A run is found by the record its host left: Dagster run, op and attempt; never because it is the newest. Whatever cannot be
proven is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import dagster as dg
import msgspec
from msgspec import Struct, structs

from pz_dagster.bindings import Binding
from pz_dagster.selection import OpSelection
from pz_engine import Graph, NodeKind, NodeResult, NodeStatus, PzStateError, RunStatus, SourceLoadNode

if TYPE_CHECKING:
    from pz_engine import RunRecord

_FROM_FAILURE = "dagster/is_resume_retry"
_FROM_ASSET_FAILURE = "dagster/is_asset_resume_retry"
_ENDED = (RunStatus.SUCCESS, RunStatus.COMPLETED_WITH_FAILURES)
_MOST_ANCESTORS = 50
"""How far a chain of re-executions is followed."""


class Resumption(Struct, frozen=True):
    """What an attempt takes from earlier runs."""

    retry_from: str | None = None
    """The pz run to continue; None for a fresh one."""

    names: frozenset[str] | None = None
    """The selected nodes that run; None means all of them, an empty set that nothing is left."""

    proven: Mapping[str, NodeResult] = msgspec.field(default_factory=dict)
    """Selected nodes that succeeded before and do not run, by name."""

    yielded: frozenset[str] = frozenset()
    """Nodes whose success Dagster has from earlier attempts of this step."""

    earlier: tuple[RunRecord, ...] = ()
    """The pz runs that are continued, newest first."""

    ignores_full_refresh: bool = False
    notes: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Tell whether earlier runs have left nothing to do."""
        return self.names is not None and not self.names

    def finished(self) -> Resumption:
        """Return what is left of it for another run of the same attempt."""
        return Resumption(yielded=self.yielded)


@dataclass(frozen=True)
class Launch:
    """What one launch of an op is given beside its selection; what was done for another one proves nothing for it."""

    vars: Mapping[str, Any] = field(default_factory=dict)
    """Overrides of the project's variables, its definitions' ones included."""

    overrides_vars: bool = False
    """Whether the launch itself has some."""

    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Laid over the process environment."""

    partitions: tuple[str, ...] = ()
    """Keys of the partitions it materializes."""


def plan_resumption(
    context: dg.AssetExecutionContext, binding: Binding, selection: OpSelection, launch: Launch
) -> Resumption:
    """Find what an op continues; the answer is a fresh run wherever nothing is proven.

    Args:
        context: of the running op.
        binding: its project.
        selection: what Dagster asked for.
        launch: with what.
    """
    return _Planner(context, binding, selection, launch).plan()


class _Planner:
    def __init__(
        self, context: dg.AssetExecutionContext, binding: Binding, selection: OpSelection, launch: Launch
    ) -> None:
        self._context = context
        self._op = context.op_execution_context
        self._binding = binding
        self._selection = selection
        self._launch = launch

    def plan(self) -> Resumption:
        run, attempt = self._op.run, self._op.retry_number
        own = self._records(run.run_id)
        if attempt == 0:
            return self._from_others(own)
        mine = [record for record in own if _host(record, "step") == self._op.op.name]
        return self._next_attempt([each for each in mine if int(_host(each, "attempt") or 0) < attempt], own)

    def _from_others(self, own: list[RunRecord]) -> Resumption:
        """Continue what another part of this op or a parent Dagster run has done, given the op's runs in this one."""
        shared = self._from_siblings(own)
        if shared is not None:
            return shared
        run = self._op.run
        if run.parent_run_id is None or not _is_resuming(run.tags):
            return Resumption()
        earlier = self._of_parents(run.parent_run_id)
        return self._re_execution(earlier, run.tags) if earlier else Resumption()

    def _from_siblings(self, own: list[RunRecord]) -> Resumption | None:
        """Take the loads of another part of this op, so that all of them see the same rows; None where there are none."""
        siblings = [each for each in own if _host(each, "step") != self._op.op.name and each.status in _ENDED]
        shared = next((each for each in siblings if self._shares_loads(each)), None)
        if shared is None:
            return None
        note = f"takes the loads of pz run {shared.run_id}, a part of this op"
        return Resumption(shared.run_id, earlier=tuple(siblings), notes=(note,))

    def _next_attempt(self, earlier: list[RunRecord], own: list[RunRecord]) -> Resumption:
        yielded = self._materialized()
        if not earlier or earlier[0].status not in _ENDED:
            # an attempt that began may have delivered what its parent run left, but never what other parts read
            found = self._from_siblings(own) if earlier else self._from_others(own)
            if found is None or found.retry_from is None:
                found = Resumption(notes=(_nothing_known(earlier[0] if earlier else None),))
            return structs.replace(found, yielded=yielded)
        earlier = [*self._continued_by_hand(earlier[0]), *earlier]
        graph = self._graph(earlier)
        return self._rest(earlier, _proven(earlier, graph), graph, yielded | self._evaluated())

    def _re_execution(self, earlier: list[RunRecord], tags: Mapping[str, str]) -> Resumption:
        prior = earlier[0]
        if prior.status not in _ENDED:
            return Resumption(notes=(_nothing_known(prior),))
        by_hand = self._continued_by_hand(prior)
        earlier = [*by_hand, *earlier]
        graph = self._graph(earlier)
        proven = _proven(earlier, graph)
        if tags.get(_FROM_FAILURE) == "true":
            return self._rest(earlier, proven, graph, frozenset())
        committed = {
            each.name
            for each in prior.results
            if each.kind is NodeKind.SINK_WRITE and each.status is NodeStatus.SUCCESS
        }
        if committed & self._selection.names:  # the tag is inherited, also by what re-executes everything
            return Resumption()
        if by_hand:
            return self._rest(earlier, proven, graph, frozenset())
        note = f"continues pz run {prior.run_id}"
        return Resumption(prior.run_id, earlier=tuple(earlier), ignores_full_refresh=True, notes=(note,))

    def _rest(
        self, earlier: list[RunRecord], proven: Mapping[str, NodeResult], graph: Graph, yielded: frozenset[str]
    ) -> Resumption:
        """Run what has not succeeded, and the checks of every pipeline that is computed again for it."""
        selected = self._selection.names
        left = {name for name in selected if name not in proven}
        above = graph.ancestors(graph.by_name[name].id for name in left if name in graph.by_name)
        for name, (node, _, _) in self._selection.checks.items():
            pipeline = graph.by_name.get(node.pipeline)
            if pipeline is not None and pipeline.id in above:
                left.add(name)
        running = above | {graph.by_name[name].id for name in left if name in graph.by_name}
        kept = {name: proven[name] for name in selected - left if graph.by_name[name].id not in running}
        prior = earlier[0].run_id
        note = f"continues pz run {prior}: {len(left)} of {len(selected)} selected node(s) are left"
        return Resumption(
            prior, frozenset(left), kept, yielded, tuple(earlier), ignores_full_refresh=True, notes=(note,)
        )

    def _records(self, dagster_run_id: str) -> list[RunRecord]:
        """Return the runs this op had in a Dagster run, newest first, those of its other parts too."""
        op, partitions = self._op.op_def.name, list(self._launch.partitions)

        def is_ours(record: Mapping[str, Any]) -> bool:
            name = record.get("op", record.get("step"))
            is_same = name == op and record.get("partitions", []) == partitions
            return is_same and record.get("host") == "dagster" and record.get("run_id") == dagster_run_id

        return [*self._runs(host=is_ours)]

    def _runs(self, *, host: Callable[[Mapping[str, Any]], bool] | None = None) -> tuple[RunRecord, ...]:
        from pz_engine import list_runs

        project = self._binding.project
        try:
            return list_runs(project.root, state_dir=project.state_path, host=host)
        except PzStateError:  # the folder is another project's; the engine meets the same and says so
            return ()

    def _continued_by_hand(self, prior: RunRecord) -> list[RunRecord]:
        """Return the runs that `pz retry` made of a run and of one another, newest first."""
        newer = [*takewhile(lambda each: each.run_id != prior.run_id, self._runs())]
        found: list[RunRecord] = []
        for record in reversed(newer):
            last = found[0] if found else prior
            if record.host is not None or record.continues != last.run_id:
                continue
            if record.status not in _ENDED:
                break
            found.insert(0, record)
        return found

    def _of_parents(self, dagster_run_id: str) -> list[RunRecord]:
        """Return the op's runs in the chain of Dagster runs that continued each other, newest first."""
        found: list[RunRecord] = []
        following: str | None = dagster_run_id
        for _ in range(_MOST_ANCESTORS):
            if following is None:
                break
            found.extend(self._records(following))
            parent = self._context.instance.get_run_by_id(following)
            if parent is None or not _is_resuming(parent.tags):
                break
            following = parent.parent_run_id
        return found

    def _shares_loads(self, record: RunRecord) -> bool:
        graph = self._binding.snapshot.compiled.graph
        wanted = graph.ancestors(graph.by_name[name].id for name in self._selection.names)
        loads = {graph.by_id[node_id].name for node_id in wanted if isinstance(graph.by_id[node_id], SourceLoadNode)}
        return any(result.name in loads and result.status is NodeStatus.SUCCESS for result in record.results)

    def _materialized(self) -> frozenset[str]:
        """Return the nodes that earlier attempts of this step have told Dagster about."""
        instance, run_id = self._context.instance, self._op.run.run_id
        found = set()
        for name, key in self._selection.assets.items():
            event = instance.get_latest_materialization_event(key)
            if event is not None and event.run_id == run_id:
                found.add(name)
        return frozenset(found)

    def _evaluated(self) -> frozenset[str]:
        """Return the checks that earlier attempts of this step have told Dagster about and that passed."""
        names = {key: name for name, (_, key, _) in self._selection.checks.items()}
        found = set()
        for entry in self._context.instance.all_logs(
            self._op.run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION
        ):
            event = entry.dagster_event
            data = event.asset_check_evaluation_data if event is not None else None
            if data is not None and data.passed and data.asset_check_key in names:
                found.add(names[data.asset_check_key])
        return frozenset(found)

    def _graph(self, earlier: Iterable[RunRecord]) -> Graph:
        """Return the graph that this launch runs: a node that has changed since is proven by nothing.

        The loaded definitions know no value of the environment and no variable of a launch, both of which may be part
        of a node.
        """
        project, snapshot = self._binding.project, self._binding.snapshot
        loaded = snapshot.compiled.graph
        if project.fingerprint == snapshot.fingerprint and not self._launch.overrides_vars:
            results = (result for record in earlier for result in record.results)
            if all(r.name not in loaded.by_name or loaded.by_name[r.name].id == r.id for r in results):
                return loaded
        from pz_engine import compile_project

        return compile_project(project.root, vars=self._launch.vars, env=self._launch.env).graph


def _proven(records: Iterable[RunRecord], graph: Graph) -> dict[str, NodeResult]:
    """Return what succeeded last, as long as it and everything above it is still the same node.

    Args:
        records: runs that continued each other, newest first; one that did not come to its end ends what is known.
        graph: the project as it is now.
    """
    last: dict[str, NodeResult] = {}
    for record in takewhile(lambda each: each.status in _ENDED, records):
        for result in record.results:
            last.setdefault(result.name, result)
    same = {
        result.id: result
        for name, result in last.items()
        if result.status is NodeStatus.SUCCESS and name in graph.by_name and graph.by_name[name].id == result.id
    }
    return {result.name: result for node_id, result in same.items() if graph.ancestors([node_id]) <= same.keys()}


def _is_resuming(tags: Mapping[str, str]) -> bool:
    return any(tags.get(tag) == "true" for tag in (_FROM_FAILURE, _FROM_ASSET_FAILURE))


def _host(record: RunRecord, field_name: str) -> Any:
    return (record.host or {}).get(field_name)


def _nothing_known(record: RunRecord | None) -> str:
    if record is None:
        return "the earlier attempt left no pz run on this machine, so everything is extracted again"
    how = "was interrupted" if record.status is RunStatus.RUNNING else "ended fatally"
    return f"pz run {record.run_id} of the earlier attempt {how}, so everything is extracted again"
