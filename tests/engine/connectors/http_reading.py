"""Reads an entity of a local HTTP service, for the tests of the http connector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import BatchOptions, ReadHints, ReadSpec
from pz_engine.connectors.builtin.http.connector import HttpConnector
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.resilience.operation_gate import OperationGate
from pz_engine.testing.http_api import Answer, HttpApi, Request

CONTRACT = {"id": "bigint", "name": "varchar"}


def items(*ids: int) -> list[dict[str, Any]]:
    return [{"id": number, "name": f"n{number}"} for number in ids]


def read(
    api: HttpApi,
    options: dict[str, Any],
    *,
    config: dict[str, Any] | None = None,
    cancel: CancelToken | None = None,
    gate: OperationGate | None = None,
    on_partition: Callable[[Any], None] = lambda partition: None,
    **spec: Any,
) -> list[dict[str, Any]]:
    """Read an entity; returns its rows."""
    source = HttpConnector().open_source({"base_url": api.url, **(config or {})})
    if gate is not None:
        source.use_gate(gate)
    token = cancel or CancelToken()
    try:
        read_spec = ReadSpec("api", "things", options, **spec)
        (partition,) = source.plan_read(read_spec, ReadHints(), token)
        schema = source.get_schema(read_spec, token)
        found: list[dict[str, Any]] = []
        for batch in partition.read(BatchOptions(), token):
            assert batch.schema == schema
            found += batch.to_pylist()
        on_partition(partition)
        return found
    finally:
        source.close()


def refusal(api: HttpApi, options: dict[str, Any], **arguments: Any) -> PzConnectorError:
    with pytest.raises(PzConnectorError) as caught:
        read(api, options, **arguments)
    return caught.value


def paged(request: Request) -> Answer:
    """Seven records, three a page, in every style."""
    everything = items(1, 2, 3, 4, 5, 6, 7)
    if request.path == "/page":
        number = int(request.query["page"])
        return Answer(body=everything[(number - 1) * 3 : number * 3])
    if request.path == "/offset":
        start = int(request.query["from"])
        return Answer(body={"data": everything[start : start + int(request.query["n"])]})
    if request.path == "/cursor":
        start = int(request.query.get("after", 0))
        following = str(start + 3) if start + 3 < len(everything) else None
        return Answer(body={"data": everything[start : start + 3], "meta": {"next": following}})
    start = int(request.query.get("s", 0))
    links = [f'</link?s={start + 3}>; title="a, b"; rel="next"'] if start + 3 < len(everything) else []
    return Answer(body=everything[start : start + 3], headers={"Link": ", ".join(['</link>; rel="first"', *links])})
