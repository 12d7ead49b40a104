"""Runs one unit: attempts, retries, timeouts, and failures turned into results.

Whatever an executor raises becomes a result; nothing escapes into the scheduler.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.base.durations import milliseconds
from pz_engine.base.redact import sanitize
from pz_engine.compile.dag import CheckNode, Node, PipelineNode, SinkWriteNode, SourceLoadNode
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.errors.exceptions import PzConnectorError, PzError, PzExecutionError
from pz_engine.errors.unexpected import diagnose, obstacle
from pz_engine.events.types import NodeStarted, RetryScheduled
from pz_engine.execute.admission import Admission
from pz_engine.execute.context import Attempt, RunContext
from pz_engine.execute.deadline import run_within
from pz_engine.execute.executors.check import run_check
from pz_engine.execute.executors.fused_group import run_group
from pz_engine.execute.executors.pipeline import build_pipeline
from pz_engine.execute.executors.sink_write import write_sink
from pz_engine.execute.executors.source_load import load_source
from pz_engine.execute.outcome import (
    UNRESPONSIVE,
    BreakerRefusal,
    EventDraft,
    Execution,
    MemberFailure,
    NodeFailure,
    WarningSlot,
    WriteFailure,
    in_contract_order,
)
from pz_engine.execute.units import Unit
from pz_engine.model.policies import RetryPolicy
from pz_engine.model.run import (
    ChannelTimings,
    DeliveryReport,
    NodeError,
    NodeResult,
    NodeStats,
    NodeStatus,
    ObservedSchema,
)
from pz_engine.plan.effective_policies import retry_policy_of
from pz_engine.resilience.backoff import retry_delay

_UNEXPECTED = "PZ0500"
_UNTOLD = frozenset({"PZ0506", "PZ0525", UNRESPONSIVE})
_TRY_AGAIN = "run 'pz retry' later; if it stays, check the connection's settings and the network"
_OUT_OF_MEMORY_ADVICE = "\n\npz: raise engine.duckdb.memory_limit, or lower engine.duckdb.threads"
_SPILL_IS_FULL = (
    "rows that do not fit in memory do not fit on the disk of the spill folder either\nnext step: free space there, set "
    "engine.duckdb.temp_directory to a folder of a larger disk, or raise engine.duckdb.memory_limit"
)
_LONG_ROW_ADVICE = "\n\npz: set engine.force_universal: true for files with very long rows"


class UnitOutcome(Struct, frozen=True):
    """Results of a unit's members in topological order, and the data warnings to publish before them."""

    results: tuple[NodeResult, ...]
    warnings: tuple[EventDraft, ...] = ()


class _Failure(Struct, frozen=True):
    """Why an attempt failed, and whose failure it is."""

    node: Node
    code: str
    message: str
    is_transient: bool
    rows: int = 0
    delivery: DeliveryReport | None = None
    timings: ChannelTimings | None = None
    retry_after: timedelta | None = None
    observed_schema: ObservedSchema | None = None


class NodeRunner:
    """Runs units of one run; called from several worker threads."""

    def __init__(self, context: RunContext) -> None:
        self._context = context

    def run(self, unit: Unit, cancel: CancelToken) -> UnitOutcome:
        """Run a unit to its end; never raises."""
        context, started = self._context, self._context.clock.monotonic()
        for member in unit.members:
            context.publisher.emit(NodeStarted, node_id=member.id, kind=member.kind, node_name=member.name)
        admission = Admission(context.instances, unit.connections, context.engine.node_timeout)
        ordinal, warnings = 0, WarningSlot()
        while True:
            ordinal, warnings = ordinal + 1, WarningSlot()
            try:
                admission.enter(cancel)
                executions = self._attempt(unit, ordinal, cancel, warnings)
            except Cancelled:
                admission.abandon()
                return _outcome(warnings, [self._skipped(node, ordinal) for node in unit.members])
            except Exception as error:
                failure = self._classify(unit, error)
                failure = replace(failure, message=context.safe(failure.message))
                _report(admission, failure)
            else:
                admission.succeed()
                return _outcome(
                    warnings,
                    [
                        self._success(node, executions[node.id], started, ordinal, warnings.examined(node.id))
                        for node in unit.members
                    ],
                )
            policy = retry_policy_of(context.compiled, failure.node)
            if not failure.is_transient or ordinal >= policy.max_attempts:
                return _outcome(warnings, [self._failed(node, failure, started, ordinal) for node in unit.members])
            if not self._wait(failure, ordinal + 1, policy, cancel):
                return _outcome(warnings, [self._skipped(node, ordinal) for node in unit.members])

    def _attempt(self, unit: Unit, ordinal: int, cancel: CancelToken, warnings: WarningSlot) -> dict[str, Execution]:
        context = self._context

        def attempt(token: CancelToken) -> dict[str, Execution]:
            with context.session.cursor(token) as cursor:
                current = Attempt(context, ordinal, token, cursor, warnings)
                if len(unit.members) > 1:
                    return run_group(current, unit.members, unit.root)
                return {unit.root.id: _execute(current, unit.root)}

        return run_within(context.engine.node_timeout, attempt, cancel=cancel, subject=unit.root.name)

    def _wait(self, failure: _Failure, attempt: int, policy: RetryPolicy, cancel: CancelToken) -> bool:
        delay = retry_delay(policy, attempt - 1, self._context.jitter(), failure.retry_after)
        self._context.publisher.emit(
            RetryScheduled,
            node_id=failure.node.id,
            node_name=failure.node.name,
            attempt=attempt,
            max_attempts=policy.max_attempts,
            delay_ms=milliseconds(delay),
            reason=sanitize(failure.message).split("\n", 1)[0],
        )
        return not cancel.wait(delay.total_seconds())

    def _classify(self, unit: Unit, error: Exception) -> _Failure:
        """Turn any exception into a failure with an owner, a code and a safe message."""
        node: Node = unit.root
        if isinstance(error, MemberFailure):
            node = next(member for member in unit.members if member.id == error.node_id)
            error = error.cause
        if isinstance(error, BreakerRefusal):
            refused = next(member for member in unit.members if getattr(member, "connection", None) == error.connection)
            return _Failure(refused, "PZ0506", error.message, False)
        delivery: DeliveryReport | None = None
        timings: ChannelTimings | None = None
        if isinstance(error, WriteFailure):
            delivery, timings, error = error.delivery, error.timings, error.cause
        if isinstance(error, NodeFailure):
            return _Failure(
                node,
                error.code,
                error.message,
                False,
                error.rows,
                delivery,
                error.timings or timings,
                observed_schema=error.observed_schema,
            )
        if isinstance(error, PzConnectorError):
            hint = error.hint or (_TRY_AGAIN if error.is_transient else None)
            message = f"{error.message}\nnext step: {hint}" if hint else error.message
            return _Failure(
                node, error.code or "PZ0501", message, error.is_transient, 0, delivery, timings, error.retry_after
            )
        if isinstance(error, PzExecutionError):
            message = f"{error.message}\nnext step: {error.hint}" if error.hint else error.message
            return _Failure(node, error.code, message, False, 0, delivery, timings)
        if isinstance(error, DuckStatementError):
            if error.is_out_of_space:
                message = "there is no space left where the rows were to go\nnext step: free space there and run again"
                return _Failure(node, "PZ0532", message, False, 0, delivery, timings)
            if error.is_out_of_spill_space:
                return _Failure(node, "PZ0532", _SPILL_IS_FULL, False, 0, delivery, timings)
            is_transient = error.is_transient and isinstance(node, (SourceLoadNode, SinkWriteNode))
            message = f"{error.summary}\nnext step: {_TRY_AGAIN}" if is_transient else _with_advice(error.summary)
            return _Failure(node, "PZ0501", message, is_transient, 0, delivery, timings)
        if isinstance(error, OSError):
            return _Failure(node, *self._input_output(error), False, 0, delivery, timings)
        message = str(error) if isinstance(error, PzError) else sanitize(f"{type(error).__name__}: {error}")
        return _Failure(node, "PZ0501", message, False, 0, delivery, timings)

    def _input_output(self, error: OSError) -> tuple[str, str]:
        """Return code and message of a failure of the operating system; its path is shown from the project."""
        problem = diagnose(error)
        shown = self._context.shown_location(error.filename) if isinstance(error.filename, str) else None
        if problem.code == _UNEXPECTED:
            return "PZ0501", f"{error.strerror or type(error).__name__}{f': {shown}' if shown else ''}"
        message = problem.message
        for path in (error.filename, obstacle(error.filename)) if isinstance(error.filename, str) else ():
            message = message.replace(f"'{path}'", self._context.shown_location(path) or path)
        return problem.code, f"{message}\nnext step: {problem.hint}"

    def _duration(self, started: float) -> int:
        return int((self._context.clock.monotonic() - started) * 1000)

    def _stats(self, node: Node, ordinal: int, *, is_transient: bool | None = None) -> NodeStats:
        entry = self._context.plan.by_id.get(node.id)
        return NodeStats(
            strategy=entry.strategy if entry is not None else None,
            is_fused=entry.fused_into is not None if entry is not None else False,
            attempts=ordinal,
            is_transient=is_transient,
        )

    def _success(
        self, node: Node, done: Execution, started: float, ordinal: int, examined: frozenset[str]
    ) -> NodeResult:
        base = self._stats(node, ordinal)
        return NodeResult(
            node.id,
            node.kind,
            node.name,
            NodeStatus.SUCCESS,
            done.rows,
            self._duration(started),
            provenance=done.provenance,
            timings=done.timings,
            ops=done.ops,
            partitions=done.partitions,
            delivery=done.delivery,
            observed_schema=done.observed_schema,
            watermark=done.watermark,
            caught_up=done.caught_up,
            rejected=done.rejected,
            sync_token=done.sync_token,
            stats=NodeStats(
                columns=done.columns,
                row_count=done.row_count,
                strategy=base.strategy,
                is_fused=base.is_fused,
                watermark_from=done.watermark_from,
                watermark_to=done.watermark.value if done.watermark is not None else None,
                window=done.window,
                part_rows=done.part_rows,
                attempts=ordinal,
                bytes=done.bytes,
                location=done.location,
                examined=examined,
            ),
        )

    def _failed(self, node: Node, failure: _Failure, started: float, ordinal: int) -> NodeResult:
        if node.id != failure.node.id:
            return self._skipped(node, ordinal)
        return NodeResult(
            node.id,
            node.kind,
            node.name,
            NodeStatus.FAILED,
            failure.rows,
            self._duration(started),
            error=NodeError(failure.code, failure.message),
            delivery=failure.delivery,
            observed_schema=failure.observed_schema,
            timings=failure.timings,
            stats=self._stats(node, ordinal, is_transient=failure.is_transient),
        )

    def _skipped(self, node: Node, ordinal: int) -> NodeResult:
        return NodeResult(node.id, node.kind, node.name, NodeStatus.SKIPPED, 0, 0, stats=self._stats(node, ordinal))


def _report(admission: Admission, failure: _Failure) -> None:
    """Tell the breakers; an attempt that ran out of time says nothing about its connection."""
    if failure.code in _UNTOLD:
        admission.abandon()
        return
    connection = getattr(failure.node, "connection", None)
    admission.fail(connection, is_transient=failure.is_transient, retry_after=failure.retry_after)


def _outcome(warnings: WarningSlot, results: list[NodeResult]) -> UnitOutcome:
    return UnitOutcome(tuple(results), tuple(in_contract_order(warnings.drafts)))


def _execute(attempt: Attempt, node: Node) -> Execution:
    if isinstance(node, SourceLoadNode):
        return load_source(attempt, node)
    if isinstance(node, PipelineNode):
        return build_pipeline(attempt, node)
    if isinstance(node, CheckNode):
        return run_check(attempt, node)
    if isinstance(node, SinkWriteNode):
        return write_sink(attempt, node)
    raise TypeError(node)


def _with_advice(message: str) -> str:
    lowered = message.lower()
    if "out of memory" in lowered:
        return message + _OUT_OF_MEMORY_ADVICE
    if "maximum line size" in lowered:
        return message + _LONG_ROW_ADVICE
    return message
