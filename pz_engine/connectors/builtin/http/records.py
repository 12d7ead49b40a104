"""Records of a page as Arrow batches: typed columns under a contract, else each record's own text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from pz_engine.connectors.builtin.http.conversion import MisfitValueError, converter_of, is_text
from pz_engine.connectors.builtin.http.json_text import (
    JsonError,
    NumberText,
    Span,
    decode,
    elements,
    find,
    locate,
    members,
)
from pz_engine.connectors.toolkit.text_values import arrow_type_of, contract_schema
from pz_engine.errors.exceptions import PzConnectorError

if TYPE_CHECKING:
    import pyarrow as pa

PAYLOAD: Final = "payload"
PAGE: Final = "pz_page"
FETCHED_AT: Final = "pz_fetched_at"


class Record(Struct, frozen=True):
    """One record of a page."""

    value: Any
    text: str
    """The page's text; `span` is the record's place in it."""

    span: Span


class Landing(Protocol):
    """How records become columns."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    def row(self, record: Record, page: int, fetched_at: datetime) -> dict[str, Any]:
        """Return a record's values by column."""


def records_of(text: str, items: tuple[str, ...], entity: str) -> tuple[Any, list[Record]]:
    """Return a page's document and its records.

    Raises:
        PzConnectorError: permanent; the page is no JSON, or there are no records where they should be.
    """
    try:
        document = decode(text)
        found, value = find(document, items)
        if not found:
            raise PzConnectorError(
                f"entity '{entity}': the answer has nothing at 'items'", is_transient=False, hint="correct items"
            )
        if value is None:
            return document, []
        span = locate(text, items)
        if span is None or not isinstance(value, (list, dict)):
            raise PzConnectorError(
                f"entity '{entity}': what is at 'items' is neither an array nor an object",
                is_transient=False,
                hint="correct items",
            )
        if isinstance(value, dict):
            return document, [Record(value, text, span)]
        return document, [
            Record(each, text, place) for each, place in zip(value, elements(text, span.start), strict=True)
        ]
    except JsonError as error:
        raise PzConnectorError(
            f"entity '{entity}': the answer is {error}",
            is_transient=False,
            hint="check that path and query, below base_url, are those of a page of json, and not of a web page",
        ) from None


class ContractLanding:
    """The declared columns, in their order."""

    def __init__(self, entity: str, contract: Mapping[str, str]) -> None:
        self._entity = entity
        self._contract = dict(contract)
        self._converters = {name: converter_of(kind) for name, kind in contract.items()}

    @property
    def schema(self) -> pa.Schema:
        """The contract's columns."""
        return contract_schema(self._contract)

    def row(self, record: Record, page: int, fetched_at: datetime) -> dict[str, Any]:  # noqa: ARG002 - the protocol
        """Return the declared values; a key that is absent or null is NULL, a key nobody declared is passed over."""
        value = record.value
        if not isinstance(value, dict):
            raise PzConnectorError(
                f"entity '{self._entity}': a record is no object", is_transient=False, hint="check items"
            )
        return {name: self._value(name, value.get(name), record) for name in self._contract}

    def _value(self, name: str, value: Any, record: Record) -> Any:
        if value is None:
            return None
        try:
            if is_text(self._contract[name]) and (not isinstance(value, str) or isinstance(value, NumberText)):
                span = dict(members(record.text, record.span.start))[name]
                return record.text[span.start : span.end]
            return self._converters[name](value)
        except MisfitValueError:
            raise PzConnectorError(
                f"entity '{self._entity}': a value of column '{name}' is no {self._contract[name]}",
                is_transient=False,
                hint="correct the source"
                if is_text(self._contract[name])
                else "declare varchar, or correct the source",
            ) from None


class RawLanding:
    """Each record's own text, and the cursor when one is declared."""

    def __init__(self, entity: str, cursor: str | None, cursor_type: str | None, pointer: tuple[str, ...]) -> None:
        self._entity = entity
        self._cursor = cursor
        self._cursor_type = cursor_type
        self._pointer = pointer
        self._convert = converter_of(cursor_type) if cursor_type is not None else None

    @property
    def schema(self) -> pa.Schema:
        """The columns that every page has, then the cursor."""
        import pyarrow as pa

        fields = [
            pa.field(PAYLOAD, pa.string()),
            pa.field(PAGE, pa.int32()),
            pa.field(FETCHED_AT, pa.timestamp("us", "UTC")),
        ]
        if self._cursor is not None and self._cursor_type is not None:
            fields.append(pa.field(self._cursor, arrow_type_of(self._cursor_type)))
        return pa.schema(fields)

    def row(self, record: Record, page: int, fetched_at: datetime) -> dict[str, Any]:
        """Return the record's text with its page and time."""
        row: dict[str, Any] = {
            PAYLOAD: record.text[record.span.start : record.span.end],
            PAGE: page,
            FETCHED_AT: fetched_at,
        }
        if self._cursor is not None and self._convert is not None:
            row[self._cursor] = self._cursor_value(record)
        return row

    def _cursor_value(self, record: Record) -> Any:
        found, value = find(record.value, self._pointer)
        if not found or value is None or self._convert is None:
            return None
        try:
            return self._convert(value)
        except MisfitValueError:
            raise PzConnectorError(
                f"entity '{self._entity}': a value of cursor '{self._cursor}' is no {self._cursor_type}",
                is_transient=False,
                hint="correct cursor_type or cursor_pointer",
            ) from None


def batches(rows: list[dict[str, Any]], schema: pa.Schema, max_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield rows as batches of at most `max_rows`.

    Raises:
        PzConnectorError: permanent; a text holds half of a surrogate pair, or a value does not fit.
    """
    import pyarrow as pa

    for start in range(0, len(rows), max_rows):
        try:
            yield pa.RecordBatch.from_pylist(rows[start : start + max_rows], schema=schema)
        except (pa.ArrowException, UnicodeEncodeError, OverflowError):
            raise PzConnectorError(
                "a page holds a text or value that no column can hold",
                is_transient=False,
                hint="correct the source: halves of surrogate pairs are no text",
            ) from None
