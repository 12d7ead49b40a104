"""Read side of `http`: one partition per entity, read page by page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx

from pz_engine.base.cancellation import CancelToken
from pz_engine.base.clock import SystemClock
from pz_engine.connectors.api import BatchOptions, Partition, ReadHints, ReadSpec
from pz_engine.connectors.builtin.http.bindings import bind
from pz_engine.connectors.builtin.http.json_text import find, pointer_parts
from pz_engine.connectors.builtin.http.options import connection_problems, read_problems
from pz_engine.connectors.builtin.http.pagination import Page, Pagination, build_pagination
from pz_engine.connectors.builtin.http.records import ContractLanding, Landing, RawLanding, batches, records_of
from pz_engine.connectors.builtin.http.transport import GoneError, Response, Settings, Transport
from pz_engine.errors.exceptions import PzConnectorError

if TYPE_CHECKING:
    import pyarrow as pa

    from pz_engine.resilience.operation_gate import OperationGate

MOST_PAGES: Final = 50_000
"""Pages of one read that declares no `max_pages`."""


class HttpSource:
    """Reads the entities of one connection."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._gate: OperationGate | None = None
        self._transports: list[Transport] = []

    def use_gate(self, gate: OperationGate) -> None:
        """Run every request through the gate."""
        self._gate = gate

    def native_scan(self, spec: ReadSpec) -> None:
        """DuckDB does not read pages."""

    def natural_read_shape(self, spec: ReadSpec) -> str:
        """A read with `delta_pointer` is a feed."""
        return "feed" if "delta_pointer" in spec.options else "full"

    def get_schema(self, spec: ReadSpec, cancel: CancelToken) -> pa.Schema:
        """Return the schema that the options give; nothing is asked."""
        cancel.raise_if_set()
        _refuse_problems(self._config, spec)
        return _landing(spec).schema

    def plan_read(self, spec: ReadSpec, hints: ReadHints, cancel: CancelToken) -> Sequence[Partition]:
        """Return the entity's one partition; nothing is asked yet."""
        del hints
        cancel.raise_if_set()
        _refuse_problems(self._config, spec)
        settings = Settings.of(self._config)
        gate = self._gate
        transport = Transport(settings, gate.report_budget if gate is not None else None)
        self._transports.append(transport)
        return [HttpPartition(spec, settings, transport, gate)]

    def close(self) -> None:
        """Close every connection."""
        for transport in self._transports:
            transport.close()


@dataclass
class HttpPartition:
    """All pages of one entity."""

    spec: ReadSpec
    settings: Settings
    transport: Transport
    gate: OperationGate | None
    _token: str | None = field(default=None, repr=False)
    _resumed_at: httpx.URL | None = field(default=None, repr=False)
    _boundary: str | None = field(default=None, repr=False)
    _is_truncated: bool = False

    @property
    def partition_id(self) -> str:
        """The same for every read of the entity."""
        return f"{self.spec.connection}.{self.spec.entity}"

    def read(self, options: BatchOptions, cancel: CancelToken) -> Iterator[pa.RecordBatch]:
        """Yield the records of every page.

        Raises:
            PzConnectorError: a request failed, a page is not what was declared, or the crawl does not end.
            Cancelled: the token was set.
        """
        read_options, landing = self.spec.options, _landing(self.spec)
        schema = landing.schema
        items = pointer_parts(str(read_options.get("items", ""))) or ()
        pagination = build_pagination(read_options.get("pagination"))
        watch = _CursorWatch(self.spec.cursor)
        url: httpx.URL | None = self._first(pagination)
        seen: set[str] = set()
        number = 0
        while url is not None:
            if str(url) in seen:
                raise self._endless("the crawl came back to a page it had read")
            seen.add(str(url))
            response = self._fetch(url, cancel, is_first=number == 0)
            document, records = records_of(response.text, items, self.spec.entity)
            fetched_at = SystemClock().now()
            rows = [landing.row(record, number, fetched_at) for record in records]
            watch.see(rows)
            self._remember_token(document)
            number += 1
            is_last = pagination.ends_when_empty and not records
            page = Page(url, response.url, response.headers, document, len(records))
            url = self._bounded(None if is_last else pagination.next(page), number, watch)
            for last, batch in _with_last(batches(rows, schema, options.max_rows)):
                self._boundary = str(url) if last and url is not None else None
                yield batch

    def try_resume_from(self, token: str) -> bool:
        """Go on with the page whose address a token holds."""
        try:
            self._resumed_at = _url(token)
        except PzConnectorError:
            return False
        return True

    def checkpoint(self) -> str | None:
        """Return the address of the next page, once and only when every row before it was yielded."""
        token, self._boundary = self._boundary, None
        return token

    def sync_state_candidate(self) -> str | None:
        """Return the link of the next run; none after a crawl that stopped before its end."""
        return None if self._is_truncated else self._token

    def _first(self, pagination: Pagination) -> httpx.URL:
        if self._resumed_at is not None:
            return self._resumed_at
        if self.spec.prior_token is not None:
            return _url(self.spec.prior_token)
        parameters = bind(self.spec.options.get("query") or {}, self.spec.watermark, self.spec.upper_bound)
        url = self.settings.address(str(self.spec.options["path"]))
        return pagination.first(url.copy_merge_params(parameters) if parameters else url)

    def _fetch(self, url: httpx.URL, cancel: CancelToken, *, is_first: bool) -> Response:
        def get() -> Response:
            return self.transport.get(url, cancel)

        try:
            return get() if self.gate is None else self.gate.execute("http.get_page", True, get, cancel)
        except GoneError:
            if is_first and self.spec.prior_token is not None and self._resumed_at is None:
                raise PzConnectorError(
                    f"entity '{self.spec.entity}': the stored position of the feed has expired",
                    is_transient=False,
                    hint="run with --full-refresh",
                ) from None
            raise

    def _remember_token(self, document: Any) -> None:
        pointer = self.spec.options.get("delta_pointer")
        if isinstance(pointer, str):
            found, value = find(document, pointer_parts(pointer) or ())
            if found and isinstance(value, str) and value:
                self._token = str(value)

    def _bounded(self, url: httpx.URL | None, number: int, watch: _CursorWatch) -> httpx.URL | None:
        """Return the next page, unless the crawl has to stop before it."""
        if url is None:
            return None
        most = self.spec.options.get("max_pages")
        if most is None:
            if number >= MOST_PAGES:
                raise self._endless(f"more than {MOST_PAGES} pages")
            return url
        if number < most:
            return url
        if self.spec.cursor is not None and (self._resumed_at is not None or not watch.allows_stop):
            raise PzConnectorError(
                f"entity '{self.spec.entity}': max_pages ended the crawl, and the pages are not in the order of cursor "
                f"'{self.spec.cursor}', so the rest would never be read",
                is_transient=False,
                hint="raise max_pages, or ask the server to sort ascending by the cursor",
            )
        self._is_truncated = True
        return None

    def _endless(self, cause: str) -> PzConnectorError:
        return PzConnectorError(
            f"entity '{self.spec.entity}': {cause}", is_transient=False, hint="correct pagination, or set max_pages"
        )


class _CursorWatch:
    """Sees whether cursor values only ever rose, so that stopping early loses nothing."""

    def __init__(self, cursor: str | None) -> None:
        self._cursor = cursor
        self._last: Any = None
        self._has_risen = False
        self._has_fallen = False

    def see(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Look at a page's rows; nulls are passed over."""
        if self._cursor is None:
            return
        for row in rows:
            value = row.get(self._cursor)
            if value is None:
                continue
            if self._last is not None:
                self._has_risen = self._has_risen or value > self._last
                self._has_fallen = self._has_fallen or value < self._last
            self._last = value

    @property
    def allows_stop(self) -> bool:
        """Tell whether what was not read comes after everything that was."""
        return self._has_risen and not self._has_fallen


def _with_last(found: Iterator[pa.RecordBatch]) -> Iterator[tuple[bool, pa.RecordBatch]]:
    """Yield each batch, and whether it is the last one."""
    waiting = next(found, None)
    while waiting is not None:
        following = next(found, None)
        yield following is None, waiting
        waiting = following


def _landing(spec: ReadSpec) -> Landing:
    if spec.columns:
        return ContractLanding(spec.entity, spec.columns)
    cursor, kind = spec.options.get("cursor"), spec.options.get("cursor_type")
    pointer = pointer_parts(str(spec.options.get("cursor_pointer", f"/{cursor}"))) or ()
    return RawLanding(spec.entity, cursor, kind, pointer)


def _refuse_problems(config: Mapping[str, Any], spec: ReadSpec) -> None:
    """Raise everything that is wrong with the options, before anything is asked."""
    problems = [*connection_problems(config), *read_problems(spec.options, spec.cursor)]
    if problems:
        raise PzConnectorError(
            f"entity '{spec.entity}': " + "; ".join(problem.message for problem in problems),
            is_transient=False,
            code=problems[0].code,
            hint=problems[0].hint,
        )


def _url(text: str) -> httpx.URL:
    try:
        return httpx.URL(text)
    except httpx.InvalidURL:
        raise PzConnectorError("a link to follow is no address", is_transient=False) from None
