"""Opening a node's side of its connection for one attempt.

A connector that takes an operation gate gets it before anything else. Its notices become events here, each distinct
text once per connection and run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from pz_engine.base.durations import format_duration
from pz_engine.base.redact import sanitize
from pz_engine.compile.dag import SinkWriteNode, SourceLoadNode
from pz_engine.connectors.api import (
    Connector,
    GatedOperations,
    NoticeEmitter,
    ReadSpec,
    Sink,
    SinkConnector,
    Source,
    SourceConnector,
)
from pz_engine.connectors.capabilities import Capability
from pz_engine.errors.exceptions import PzConnectorError, PzError
from pz_engine.events.types import ConnectorLog
from pz_engine.execute.bounds import Bounds
from pz_engine.execute.context import RunContext
from pz_engine.model.run import OperationCounts
from pz_engine.plan.effective_policies import retry_policy_of
from pz_engine.plan.specs import connector_config, connector_of, read_spec
from pz_engine.resilience.operation_gate import OperationGate
from pz_engine.resilience.rate_limit import LONGEST_BUDGET_WAIT

_LONG_PAUSE = (
    "the quota is used up, as the far side says; requests wait until it starts anew, "
    f"{format_duration(LONGEST_BUDGET_WAIT)} at most each"
)


class _Opened(Struct, frozen=True):
    connector: Connector
    gate: OperationGate | None

    @property
    def ops(self) -> OperationCounts | None:
        """What the gate counted; None for a connector that takes none."""
        return self.gate.counts if self.gate is not None else None


class OpenedSource(_Opened, frozen=True):
    """A read side of one attempt."""

    source: Source

    def spec_of(
        self, context: RunContext, node: SourceLoadNode, bounds: Bounds, *, is_native: bool = False
    ) -> ReadSpec:
        """Build the spec of a bounded read.

        An inclusive floor is handed only to a connector that honours one; narrowed to an exclusive one it would lose the
        rows that share the last value. What lands is trimmed in any case, and a native scan inside its own statement.
        """
        lower = bounds.lower
        if bounds.is_lower_inclusive and Capability.INCLUSIVE_BOUND not in self.connector.capabilities:
            lower = None
            if not is_native and context.first_notice(node.connection, f"inclusive floor of {node.key}"):
                context.note(f"{node.key}: its connector takes no inclusive bound, so more is read than lands")
        return read_spec(
            node,
            watermark=lower,
            lower_inclusive=bounds.is_lower_inclusive and lower is not None,
            upper_bound=bounds.upper,
            null_cursor=bounds.wants_null_cursor,
            prior_token=context.stored_token(node.key),
        )


class OpenedSink(_Opened, frozen=True):
    """A write side of one attempt."""

    sink: Sink


@contextmanager
def open_source(context: RunContext, node: SourceLoadNode) -> Iterator[OpenedSource]:
    """Open the read side and close it at the end of the block.

    Raises:
        PzConnectorError: the connector cannot read.
    """
    connector = connector_of(context.compiled, node.connection)
    if not isinstance(connector, SourceConnector):
        raise PzConnectorError(f"connector '{connector.info.name}' cannot read", is_transient=False)
    source = connector.open_source(connector_config(context.compiled, node.connection))
    try:
        yield OpenedSource(connector, _equip(context, node, source), source)
    finally:
        close_quietly(context, node, source.close)


@contextmanager
def open_sink(context: RunContext, node: SinkWriteNode) -> Iterator[OpenedSink]:
    """Open the write side and close it at the end of the block.

    Raises:
        PzConnectorError: the connector cannot write.
    """
    connector = connector_of(context.compiled, node.connection)
    if not isinstance(connector, SinkConnector):
        raise PzConnectorError(f"connector '{connector.info.name}' cannot write", is_transient=False)
    sink = connector.open_sink(connector_config(context.compiled, node.connection))
    try:
        yield OpenedSink(connector, _equip(context, node, sink), sink)
    finally:
        close_quietly(context, node, sink.close)


def close_quietly(context: RunContext, node: SourceLoadNode | SinkWriteNode, close: Callable[[], None]) -> None:
    """Close something whose work is done or has already failed.

    A failure to close changes nothing about what was read or committed, so it is a note and never an error.
    """
    try:
        close()
    except Exception as error:
        kind = type(error).__name__
        text = sanitize(str(error) if isinstance(error, PzError) else f"{kind}: {error}")
        cause = text.split("\n", 1)[0].removeprefix(f"{kind}: ") or kind
        context.note(context.safe(f"{node.name}: closing '{node.connection}' afterwards failed: {cause}"))


def _equip(context: RunContext, node: SourceLoadNode | SinkWriteNode, side: Source | Sink) -> OperationGate | None:
    """Hand an opened side what it may use."""
    gate = None
    if isinstance(side, GatedOperations):
        pacer = context.instances.pacer(node.connection)
        say, policy = _notices(context, node.connection), retry_policy_of(context.compiled, node)
        gate = OperationGate(pacer, policy, context.jitter, lambda: say("warn", _LONG_PAUSE))
        side.use_gate(gate)
    if isinstance(side, NoticeEmitter):
        side.use_notices(_notices(context, node.connection))
    return gate


def _notices(context: RunContext, connection: str) -> Callable[[str, str], None]:
    def publish(level: str, text: str) -> None:
        if context.first_notice(connection, text):
            context.publisher.emit(
                ConnectorLog, level=level, connection=connection, message=context.safe(sanitize(text))
            )

    return publish
