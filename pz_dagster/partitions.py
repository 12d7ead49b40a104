"""Dagster's time partitions as exact slices of an entity.

A partition `[start, end)` is the slice `(start - 1 unit, end - 1 unit]`, the unit being what the cursor can tell apart:
a microsecond, or a day. Dagster's record of partitions then stands in place of the stored watermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time, timedelta, timezone
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import dagster as dg
from msgspec import Struct, field

from pz_dagster.errors import PzDagsterError, PzDefinitionError
from pz_dagster.snapshot import Snapshot
from pz_dagster.units import Unit
from pz_engine import (
    Diagnostic,
    NodeResult,
    PzError,
    SinkWriteNode,
    SourceLoadNode,
    Strategy,
)

if TYPE_CHECKING:
    from pz_dagster.project import PzProject

_UNITS = {"timestamp": timedelta(microseconds=1), "date": timedelta(days=1)}
_CARRIED = "carried_forward"
_MIDNIGHT = "0 0 "
"""How the cron schedule of partitions begins that are whole days."""


class Partitioning(Struct, frozen=True):
    """How the partitioned units of a project are cut."""

    definition: dg.TimeWindowPartitionsDefinition
    by: tuple[str, ...]
    """Entities to cut, as `<connection>.<entity>`."""

    backfill_policy: dg.BackfillPolicy

    @classmethod
    def of(
        cls,
        definition: dg.PartitionsDefinition[str] | None,
        by: Sequence[str],
        backfill_policy: dg.BackfillPolicy | None,
    ) -> Partitioning | None:
        """Take what definitions were given; None for a project without partitions.

        Raises:
            PzDefinitionError: `PZ0703`, an argument without the others, or partitions that are no time windows.
        """
        if definition is None and not by and backfill_policy is None:
            return None
        if isinstance(by, str):
            by = (by,)
        if definition is None or not by:
            raise _unsupported(
                "partitions_def and partition_by belong together",
                hint="give both, for example partition_by=['erp.orders'], or neither",
            )
        if not isinstance(definition, dg.TimeWindowPartitionsDefinition):
            raise _unsupported(
                f"{type(definition).__name__} does not cut time into windows",
                hint="use daily, hourly, weekly, monthly or other time partitions",
            )
        return cls(definition, tuple(by), backfill_policy or dg.BackfillPolicy.single_run())

    def cuts(self, snapshot: Snapshot, unit: Unit) -> bool:
        """Tell whether a unit reads an entity that is cut."""
        return any(node.key in self.by for node in _loads(snapshot, unit))

    def require(self, snapshot: Snapshot, units: Sequence[Unit]) -> None:
        """Check every unit that is cut.

        Raises:
            PzDefinitionError: `PZ0210`, no unit reads an entity; `PZ0703`, one cannot be cut, or a sink could not be
                written slice by slice.
        """
        read = {node.key for unit in units for node in _loads(snapshot, unit)}
        problems = [
            Diagnostic(
                "PZ0210",
                f"partition_by names '{key}', which nothing here reads",
                hint=f"name one of: {', '.join(sorted(read)) or 'nothing is read'}",
            )
            for key in self.by
            if key not in read
        ]
        for unit in units:
            if self.cuts(snapshot, unit):
                problems.extend(self._unit_problems(snapshot, unit))
        if problems:
            raise PzDefinitionError(problems)

    def _unit_problems(self, snapshot: Snapshot, unit: Unit) -> list[Diagnostic]:
        found = []
        for load in _loads(snapshot, unit):
            cursor, kind = snapshot.incremental.get(load.id), snapshot.cursor_types.get(load.id)
            if load.key not in self.by:
                if cursor is not None:
                    found.append(
                        _problem(
                            f"'{load.key}' is read incrementally beside partitioned entities: whichever partition runs "
                            "first would take its new rows",
                            load,
                            "add it to partition_by",
                        )
                    )
            elif cursor is None:
                found.append(
                    _problem(
                        f"'{load.key}' is read in full and has no cursor to cut it by",
                        load,
                        "declare sync: {mode: incremental, cursor: <date or timestamp column>}",
                    )
                )
            elif kind not in _UNITS:
                what = f"is {kind}" if kind is not None else "has no declared type"
                found.append(
                    _problem(
                        f"the cursor '{cursor}' of '{load.key}' {what}; partitions cut dates and timestamps",
                        load,
                        f"declare '{cursor}' as date or timestamp in columns, or remove the partitions",
                    )
                )
            elif kind == "date" and not self._has_whole_days:
                found.append(
                    _problem(
                        f"the cursor '{cursor}' of '{load.key}' is a date, and the partitions are not whole days",
                        load,
                        "use daily, weekly or monthly partitions that begin at midnight",
                    )
                )
        found.extend(problem for sink in _sinks(snapshot, unit) if (problem := _sink_problem(sink, snapshot)))
        return found

    @property
    def _has_whole_days(self) -> bool:
        window = self.definition.get_first_partition_window()
        return self.definition.cron_schedule.startswith(_MIDNIGHT) and (
            window is None or window.start.time() == window.end.time() == time()
        )


def _sink_problem(sink: SinkWriteNode, snapshot: Snapshot) -> Diagnostic | None:
    if sink.strategy is Strategy.REPLACE and sink.id not in snapshot.sliced:
        return _problem(
            f"'{sink.name}' is replaced as a whole, so each partition would erase the others",
            sink,
            "write strategy: merge with keys, or move the sink to a flow without partitions",
        )
    if sink.strategy is Strategy.APPEND and not sink.accepts_duplicates:
        return _problem(
            f"'{sink.name}' appends, so a partition that runs again would add its rows again",
            sink,
            "write strategy: merge with keys, or duplicates: accept",
        )
    return None


class PartitionRun(Struct, frozen=True):
    """The partitions that one op run materializes."""

    keys: tuple[str, ...] = ()
    windows: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    cuts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, context: dg.AssetExecutionContext, snapshot: Snapshot, by: Sequence[str]) -> PartitionRun:
        """Translate the partitions of the running op; without any, nothing is cut.

        Raises:
            PzDagsterError: `PZ0703`, the op is partitioned and was launched without partitions, or with some that do not
                join.
        """
        definition = context.assets_def.partitions_def
        if not by or not isinstance(definition, dg.TimeWindowPartitionsDefinition):
            return cls()
        if not context.has_partition_key and not context.has_partition_key_range:
            raise _refused(
                "the op is partitioned and was launched without a partition", "choose partitions and launch again"
            )
        windows = sorted((definition.time_window_for_partition_key(key).start, key) for key in context.partition_keys)
        spans = [definition.time_window_for_partition_key(key) for _, key in windows]
        if any(left.end != right.start for left, right in pairwise(spans)):
            raise _refused(
                "the partitions of this run leave out time between them", "launch each unbroken range by itself"
            )
        types = {
            node.key: snapshot.cursor_types[node.id]
            for node in snapshot.compiled.nodes
            if isinstance(node, SourceLoadNode) and node.key in by and node.id in snapshot.cursor_types
        }
        ends = {key: tuple(last_value(kind, span.end) for span in spans) for key, kind in types.items()}
        return cls(
            tuple(key for _, key in windows),
            {key: (last_value(kind, spans[0].start), ends[key][-1]) for key, kind in types.items()},
            ends,
        )

    def describe(self, context: dg.AssetExecutionContext, result: dg.MaterializeResult[Any], done: NodeResult) -> None:
        """Give each partition's event of one result its own number of rows, where that is known.

        A load's rows are counted partition by partition; what follows from them only when the run has one partition.
        """
        rows = done.stats.part_rows
        if rows is None and len(self.keys) == 1 and done.rows is not None and done.provenance != _CARRIED:
            rows = (done.rows,)
        for key, count in zip(self.keys, rows or (), strict=rows is not None):
            context.add_asset_metadata(
                {"dagster/partition_row_count": count}, asset_key=result.asset_key, partition_key=key
            )


_warned: set[tuple[str, str]] = set()
"""Project directory and entity of every warning this process has given."""


def watermark_warnings(project: PzProject, keys: Iterable[str], env: Mapping[str, str]) -> list[str]:
    """Return one warning for each partitioned entity that also has a stored watermark; once for each in a process."""
    wanted = {key for key in keys if (project.identity, key) not in _warned}
    if not wanted:
        return []
    from pz_engine import stored_watermark_keys

    try:
        stored = stored_watermark_keys(project.root, state_dir=project.state_path, env=env)
    except (PzError, OSError):  # only a warning is at stake; a run that needs the store says what is wrong with it
        return []
    found = sorted(wanted & stored)
    _warned.update((project.identity, key) for key in found)
    return [
        f"PZ0704 {key} is partitioned and also has a stored watermark: partitions neither read it nor move it, and a run "
        "without partitions goes on from it"
        for key in found
    ]


def last_value(cursor_type: str, end: datetime) -> str:
    """Return the last cursor value before a moment, as the engine spells it.

    >>> last_value("timestamp", datetime(2026, 1, 2, tzinfo=timezone.utc))
    '2026-01-01T23:59:59.999999'
    >>> last_value("date", datetime(2026, 1, 2, tzinfo=timezone.utc))
    '2026-01-01'
    """
    if cursor_type == "date":
        return (end.date() - _UNITS["date"]).isoformat()
    last = end.astimezone(timezone.utc).replace(tzinfo=None) - _UNITS["timestamp"]
    return last.isoformat(timespec="microseconds")


def _loads(snapshot: Snapshot, unit: Unit) -> list[SourceLoadNode]:
    """Return the loads of a unit, those included that it runs without defining them."""
    graph = snapshot.compiled.graph
    running = unit.node_ids | graph.ancestors(unit.node_ids)
    return [node for node in graph.nodes if node.id in running and isinstance(node, SourceLoadNode)]


def _sinks(snapshot: Snapshot, unit: Unit) -> list[SinkWriteNode]:
    return [node for node in snapshot.compiled.nodes if node.id in unit.node_ids and isinstance(node, SinkWriteNode)]


def _problem(message: str, node: SourceLoadNode | SinkWriteNode, hint: str) -> Diagnostic:
    return Diagnostic("PZ0703", message, node.file, node.line, hint=hint)


def _unsupported(message: str, hint: str) -> PzDefinitionError:
    return PzDefinitionError([Diagnostic("PZ0703", message, hint=hint)])


def _refused(message: str, hint: str) -> PzDagsterError:
    problem = Diagnostic("PZ0703", message, hint=hint)
    return PzDagsterError(f"nothing ran: {problem}", problems=[problem])
