"""Opening a connection's read or write side for one attempt.

A connector's notices become events here, each distinct text once per connection and run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pz_engine.base.redact import sanitize
from pz_engine.connectors.api import (
    Connector,
    NoticeEmitter,
    Sink,
    SinkConnector,
    Source,
    SourceConnector,
)
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.events.types import ConnectorLog
from pz_engine.execute.context import RunContext
from pz_engine.plan.specs import connector_config, connector_of


@contextmanager
def open_source(context: RunContext, connection: str) -> Iterator[tuple[Connector, Source]]:
    """Open the read side and close it at the end of the block.

    Raises:
        PzConnectorError: the connector cannot read.
    """
    connector = connector_of(context.compiled, connection)
    if not isinstance(connector, SourceConnector):
        raise PzConnectorError(f"connector '{connector.info.name}' cannot read", is_transient=False)
    source = connector.open_source(connector_config(context.compiled, connection))
    try:
        if isinstance(source, NoticeEmitter):
            source.use_notices(_notices(context, connection))
        yield connector, source
    finally:
        source.close()


@contextmanager
def open_sink(context: RunContext, connection: str) -> Iterator[tuple[Connector, Sink]]:
    """Open the write side and close it at the end of the block.

    Raises:
        PzConnectorError: the connector cannot write.
    """
    connector = connector_of(context.compiled, connection)
    if not isinstance(connector, SinkConnector):
        raise PzConnectorError(f"connector '{connector.info.name}' cannot write", is_transient=False)
    sink = connector.open_sink(connector_config(context.compiled, connection))
    try:
        if isinstance(sink, NoticeEmitter):
            sink.use_notices(_notices(context, connection))
        yield connector, sink
    finally:
        sink.close()


def _notices(context: RunContext, connection: str) -> Callable[[str, str], None]:
    def publish(level: str, text: str) -> None:
        if context.first_notice(connection, text):
            context.publisher.emit(ConnectorLog, level=level, connection=connection, message=sanitize(text))

    return publish
