"""Rows as text: csv the way DuckDB writes it, and strict ndjson."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_DUCK_TYPE_KEY = b"duckdb_type"
_SINGLE = b"FLOAT"
_ZONED = b"TIMESTAMP WITH TIME ZONE"


def is_zoned(field: pa.Field) -> bool:
    """Tell whether a timestamp column was an instant in the pipeline, not a wall-clock time."""
    return bool((field.metadata or {}).get(_DUCK_TYPE_KEY, _ZONED) == _ZONED)


def csv_lines(batch: pa.RecordBatch, schema: pa.Schema, delimiter: str) -> str:
    """Return the rows as csv text with a line feed after each; NULL is empty, an empty string is quoted."""
    columns = [_csv_texts(column, field, delimiter) for column, field in zip(batch.columns, schema, strict=True)]
    return "".join(delimiter.join(row) + "\n" for row in zip(*columns, strict=True))


def csv_header(names: Sequence[str], delimiter: str) -> str:
    """Return the header line."""
    quote = _quoter(delimiter)
    return delimiter.join(quote(name) for name in names) + "\n"


def ndjson_lines(batch: pa.RecordBatch, schema: pa.Schema) -> str:
    """Return one JSON object per row, keys in schema order, nulls written, non-finite doubles as null."""
    keys = (json.dumps(field.name, ensure_ascii=False).replace("%", "%%") for field in schema)
    columns = [_json_texts(column, field) for column, field in zip(batch.columns, schema, strict=True)]
    template = "{" + ",".join(f"{key}:%s" for key in keys) + "}\n"
    return "".join(map(template.__mod__, zip(*columns, strict=True)))


def _csv_texts(column: pa.Array, field: pa.Field, delimiter: str) -> list[str]:
    import pyarrow as pa

    kind = field.type
    if pa.types.is_string(kind):
        quote = _quoter(delimiter)
        return ["" if value is None else quote(value) for value in column.to_pylist()]
    render: Callable[[Any], str] = str
    if pa.types.is_boolean(kind):
        render = _boolean
    elif pa.types.is_floating(kind):
        return [text or "" for text in _number_texts(column, field)]
    elif pa.types.is_decimal(kind):
        render = "{:f}".format
    elif pa.types.is_timestamp(kind):
        suffix = "+00" if is_zoned(field) else ""
        texts = [None if text is None else f"{_trimmed(text)}{suffix}" for text in _clock_texts(column, " ")]
        return [text or "" for text in texts]
    elif pa.types.is_date(kind):
        return [value or "" for value in column.cast(pa.string()).to_pylist()]
    return ["" if value is None else render(value) for value in column.to_pylist()]


def _json_texts(column: pa.Array, field: pa.Field) -> list[str]:
    import pyarrow as pa

    kind = field.type
    if pa.types.is_timestamp(kind):
        return ["null" if text is None else f'"{text}Z"' for text in _clock_texts(column, "T")]
    if pa.types.is_date(kind):
        return ["null" if value is None else f'"{value}"' for value in column.cast(pa.string()).to_pylist()]
    render: Callable[[Any], str] = str
    if pa.types.is_string(kind):
        render = json.encoder.encode_basestring
    elif pa.types.is_boolean(kind):
        render = _boolean
    elif pa.types.is_floating(kind):
        render = _json_double
    elif pa.types.is_decimal(kind):
        render = "{:f}".format
    return ["null" if value is None else render(value) for value in column.to_pylist()]


def _number_texts(column: pa.Array, field: pa.Field) -> list[str | None]:
    """Return the shortest text of each number; one that was a FLOAT in the pipeline has fewer digits than a double."""
    import pyarrow as pa

    if (field.metadata or {}).get(_DUCK_TYPE_KEY) != _SINGLE and not pa.types.is_float32(field.type):
        return [None if value is None else repr(value) for value in column.to_pylist()]
    texts = column.cast(pa.float32()).cast(pa.string()).to_pylist()
    return [None if text is None else repr(float(text)) for text in texts]


def _clock_texts(column: pa.Array, separator: str) -> list[str | None]:
    """Return `YYYY-MM-DD HH:MM:SS.ffffff` texts in UTC."""
    import pyarrow.compute as pc

    texts: list[str | None] = pc.strftime(column, format=f"%Y-%m-%d{separator}%H:%M:%S").to_pylist()
    return texts


def _trimmed(text: str) -> str:
    """Drop trailing zeros of the fraction.

    >>> _trimmed("10:00:00.500000"), _trimmed("10:00:00.000000")
    ('10:00:00.5', '10:00:00')
    """
    return text.rstrip("0").rstrip(".") if "." in text else text


def _quoter(delimiter: str) -> Callable[[str], str]:
    special = re.compile(f'[{re.escape(delimiter)}"\r\n]')

    def quote(text: str) -> str:
        if text == "" or special.search(text):
            return '"' + text.replace('"', '""') + '"'
        return text

    return quote


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _json_double(value: float) -> str:
    return repr(value) if math.isfinite(value) else "null"
