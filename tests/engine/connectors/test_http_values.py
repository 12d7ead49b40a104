"""What lands from JSON pages: every digit as it was sent, and a refusal for what does not fit."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from http_reading import CONTRACT, read, refusal

from pz_engine.testing.http_api import Answer, HttpApi


def test_contract_keeps_every_digit_and_spelling() -> None:
    """Numbers never pass through a float, instants become UTC, nested values arrive as they were written."""
    body = (
        b'\xef\xbb\xbf[{"big": 9223372036854775807, "exact": 12345678901234567890.123456789, "money": 1.10, "f": 1e3,'
        b' "ok": true, "day": "2026-02-28", "at": "2026-01-02T03:04:05.678901+05:30", "naive": "2026-01-02 03:04",'
        b' "text": "\\u00fc", "nested": {"a": [1.50, 1e2]}, "number": 1.00, "u": 18446744073709551615, "extra": 1},'
        b' {"big": null}]'
    )
    contract = {
        "big": "bigint", "exact": "decimal", "money": "decimal(10,2)", "f": "double", "ok": "boolean", "day": "date",
        "at": "timestamp", "naive": "timestamp", "text": "varchar", "nested": "varchar", "number": "varchar", "u": "ubigint",
    }  # fmt: skip
    with HttpApi(lambda request: Answer(body=body)) as api:
        first, second = read(api, {"path": "/x", "columns": contract})
    assert first == {
        "big": 9223372036854775807,
        "exact": Decimal("12345678901234567890.123456789"),
        "money": Decimal("1.10"),
        "f": 1000.0,
        "ok": True,
        "day": datetime(2026, 2, 28).date(),  # noqa: DTZ001 - a date
        "at": datetime(2026, 1, 1, 21, 34, 5, 678901, tzinfo=timezone.utc),
        "naive": datetime(2026, 1, 2, 3, 4, tzinfo=timezone.utc),
        "text": "ü",
        "nested": '{"a": [1.50, 1e2]}',
        "number": "1.00",
        "u": Decimal(18446744073709551615),
    }
    assert set(second.values()) == {None}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", "2147483648"), ("int", "1.0"), ("int", "1e3"), ("int", '"1"'), ("int", "true"), ("tinyint", "128"),
        ("ubigint", "-1"), ("hugeint", "1" + "0" * 39), ("bigint", "1" * 5000),
        ("decimal", "0.1234567891"), ("decimal(4,2)", "100"), ("decimal(4,2)", "1.005"), ("decimal", '"1.5"'),
        ("double", '"1.5"'), ("double", "1e999"), ("double", "1e-999"), ("float", "1e39"),
        ("boolean", '"true"'), ("boolean", "1"),
        ("date", '"2026-02-30"'), ("date", '"2026-01-02T00:00:00"'), ("date", "20260102"),
        ("timestamp", '"yesterday"'), ("timestamp", '"2026-01-02T03:04:05.1234567"'), ("timestamp", '"2026-01-02T25:00:00"'),
        ("timestamp", "1767312000"), ("time", '"25 o clock"'), ("varchar", '"\\ud800"'),
    ],
)  # fmt: skip
def test_value_that_does_not_fit_is_refused_and_not_shown(kind: str, value: str) -> None:
    """Permanent, naming the column and the type, never the value."""
    with HttpApi(lambda request: Answer(body=f'[{{"c": {value}}}]'.encode())) as api:
        error = refusal(api, {"path": "/x", "columns": {"c": kind}})
    assert not error.is_transient
    assert "'c'" in error.message
    assert kind in error.message
    assert value.strip('"') not in error.message


def test_raw_mode_keeps_each_record_as_it_was_written() -> None:
    """Without a contract the record's own text lands, with its page and the time it came, and the declared cursor."""
    body = b'{"data": [ {"id": 1.0,  "n": {"at": "2026-01-02T03:04:05Z"}} , {"id":2,"id":3} ]}'
    with HttpApi(lambda request: Answer(body=body)) as api:
        options = {
            "path": "/x",
            "items": "/data",
            "cursor": "at",
            "cursor_type": "timestamp",
            "cursor_pointer": "/n/at",
        }
        first, second = read(api, options)
    assert first["payload"] == '{"id": 1.0,  "n": {"at": "2026-01-02T03:04:05Z"}}'
    assert second["payload"] == '{"id":2,"id":3}'
    assert (first["pz_page"], first["at"], second["at"]) == (
        0,
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
        None,
    )
    assert first["pz_fetched_at"] == second["pz_fetched_at"]


@pytest.mark.parametrize(
    ("body", "options", "part"),
    [
        (b"<html>", {}, "not JSON"),
        (b"", {}, "not JSON"),
        (b"[NaN]", {}, "not JSON"),
        (b"[1] [2]", {}, "more than one value"),
        (b"[" * 100_000, {}, "nested too deeply"),
        (b"\xff\xfe", {}, "not UTF-8"),
        (b'{"data": 5}', {"items": "/data"}, "neither an array nor an object"),
        (b'{"data": []}', {"items": "/rows"}, "nothing at 'items'"),
        (b"[5]", {}, "no object"),
        (b'{"a": {"b": []}}', {"items": "/a/0"}, "nothing at 'items'"),
    ],
)
def test_page_that_is_not_what_was_declared_is_refused(body: bytes, options: dict[str, Any], part: str) -> None:
    """Permanent, with a word about what is wrong and nothing of the content."""
    with HttpApi(lambda request: Answer(body=body)) as api:
        error = refusal(api, {"path": "/x", "columns": CONTRACT, **options})
    assert not error.is_transient
    assert part in error.message


def test_missing_records_are_no_rows() -> None:
    """A null where records should be, and an empty array, are pages without records."""
    for body in (b'{"data": null}', b'{"data": []}'):
        with HttpApi(lambda request, body=body: Answer(body=body)) as api:
            assert read(api, {"path": "/x", "items": "/data", "columns": CONTRACT}) == []
