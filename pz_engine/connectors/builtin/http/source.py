"""Read side of `http`: one partition per entity, read page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx

from pz_engine.base.cancellation import CancelToken
from pz_engine.base.clock import SystemClock
from pz_engine.connectors.api import BatchOptions, Partition, ReadHints, ReadSpec
from pz_engine.connectors.builtin.http.addresses import joined, parsed, same_page_key
from pz_engine.connectors.builtin.http.bindings import bind
from pz_engine.connectors.builtin.http.crawl_order import CursorOrder, Objection
from pz_engine.connectors.builtin.http.json_text import NumberText, find, pointer_parts
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
        self._notice: Callable[[str, str], None] = _say_nothing
        self._transports: list[Transport] = []

    def use_gate(self, gate: OperationGate) -> None:
        """Run every request through the gate."""
        self._gate = gate

    def use_notices(self, callback: Callable[[str, str], None]) -> None:
        """Take the callback for what the user should know."""
        self._notice = callback

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
        return [HttpPartition(spec, settings, transport, gate, self._notice)]

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
    notice: Callable[[str, str], None]
    """Takes a level and what the user should know about the crawl."""

    _token: str | None = field(default=None, repr=False)
    _resumed_at: httpx.URL | None = field(default=None, repr=False)
    _boundary: str | None = field(default=None, repr=False)

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
        pagination = build_pagination(read_options.get("pagination"), self.spec.entity)
        order = self._order(schema.names)
        url: httpx.URL | None = self._first(pagination)
        seen: set[str] = set()
        number = 0
        while url is not None:
            self._note_page(url, seen)
            response = self._fetch(url, cancel, is_first=number == 0)
            if same_page_key(response.url) != same_page_key(url):
                self._note_page(response.url, seen)
            document, records = records_of(response.text, items, self.spec.entity)
            fetched_at = SystemClock().now()
            rows = [landing.row(record, number, fetched_at) for record in records]
            if order is not None:
                rows = order.pass_on(rows)
            self._remember_token(document, response.url)
            number += 1
            is_last = pagination.ends_when_empty and not records
            page = Page(url, response.url, response.headers, document, len(records))
            following = None if is_last else pagination.next(page)
            is_cut = following is not None and self._is_cut(number, order)
            url = None if is_cut else following
            if url is None and not is_cut and order is not None:
                rows += order.rest()
            # Rows that are kept back are in no batch, so no address speaks for everything before it.
            boundary = str(url) if url is not None and order is None else None
            for is_last_batch, batch in _with_last(batches(rows, schema, options.max_rows)):
                self._boundary = boundary if is_last_batch else None
                yield batch

    def try_resume_from(self, token: str) -> bool:
        """Go on with the page whose address a token holds."""
        try:
            self._resumed_at = parsed(token)
        except PzConnectorError:
            return False
        return True

    def checkpoint(self) -> str | None:
        """Return the address of the next page, once and only when every row before it was yielded."""
        token, self._boundary = self._boundary, None
        return token

    def sync_state_candidate(self) -> str | None:
        """Return the link of the next run; a feed has no `max_pages`, so its crawl has come to its end."""
        return self._token

    def _first(self, pagination: Pagination) -> httpx.URL:
        if self._resumed_at is not None:
            return self._resumed_at
        if self.spec.prior_token is not None:
            return parsed(self.spec.prior_token)
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

    def _order(self, columns: Sequence[str]) -> CursorOrder | None:
        """Return what keeps rows back, for an incremental crawl that may be cut short."""
        cursor = self.spec.cursor
        return CursorOrder(cursor, columns) if cursor is not None and "max_pages" in self.spec.options else None

    def _note_page(self, url: httpx.URL, seen: set[str]) -> None:
        """Remember an address that was asked or has answered; no page is taken twice."""
        key = same_page_key(url)
        if key in seen:
            raise self._endless("the crawl came back to a page it had read")
        seen.add(key)

    def _remember_token(self, document: Any, answered_by: httpx.URL) -> None:
        """Keep the link of the next run, which must be one that the next run may follow."""
        pointer = self.spec.options.get("delta_pointer")
        if not isinstance(pointer, str):
            return
        found, value = find(document, pointer_parts(pointer) or ())
        if not found or value is None or value == "":
            return
        if not isinstance(value, str) or isinstance(value, NumberText):
            raise PzConnectorError(
                f"entity '{self.spec.entity}': what is at delta_pointer '{pointer}' is no link",
                is_transient=False,
                hint="correct delta_pointer",
            )
        url = joined(answered_by, value)
        self.settings.refuse_foreign(url)
        # An absolute link is asked for as it was written; parsing could spell it differently.
        self._token = value if parsed(value).is_absolute_url else str(url)

    def _is_cut(self, number: int, order: CursorOrder | None) -> bool:
        """Tell whether a crawl with another page waiting ends here because of `max_pages`.

        Raises:
            PzConnectorError: permanent; it must not end here.
        """
        most = self.spec.options.get("max_pages")
        if most is None:
            if number >= MOST_PAGES:
                raise self._endless(f"more than {MOST_PAGES} pages")
            return False
        if number < most:
            return False
        if order is not None:
            objection = order.objection(self.spec.watermark, self.spec.upper_bound)
            if self._resumed_at is not None:
                objection = Objection("this crawl began in the middle, so its order is not known", "raise max_pages")
            if objection is not None:
                raise PzConnectorError(
                    f"entity '{self.spec.entity}': max_pages ({most}) ended the crawl by cursor '{self.spec.cursor}', "
                    f"and {objection.cause}",
                    is_transient=False,
                    hint=objection.hint,
                )
        outcome = "only these pages landed" if order is None else "the next run goes on after the last value"
        self.notice("warn", f"{self.spec.entity}: max_pages ({most}) ended the crawl; {outcome}")
        return True

    def _endless(self, cause: str) -> PzConnectorError:
        return PzConnectorError(
            f"entity '{self.spec.entity}': {cause}", is_transient=False, hint="correct pagination, or set max_pages"
        )


def _say_nothing(level: str, text: str) -> None:
    """Take a notice that nobody asked for."""


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
    problems = [
        *connection_problems(config),
        *read_problems(spec.options, sync_cursor=spec.cursor, auth=config.get("auth")),
    ]
    if problems:
        raise PzConnectorError(
            f"entity '{spec.entity}': " + "; ".join(problem.message for problem in problems),
            is_transient=False,
            code=problems[0].code,
            hint=problems[0].hint,
        )
