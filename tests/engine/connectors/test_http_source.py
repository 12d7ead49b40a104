"""The http connector's reads, against a real server: paging, credentials, quotas, faults and what it refuses."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.connectors.api import BatchOptions, ReadHints, ReadSpec
from pz_engine.connectors.builtin.http.connector import HttpConnector
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import RateLimit, RetryPolicy
from pz_engine.resilience.operation_gate import OperationGate
from pz_engine.resilience.rate_limit import Pacer
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


@pytest.mark.parametrize(
    ("options", "requests"),
    [
        ({"path": "/page", "pagination": {"type": "page"}}, 4),
        (
            {
                "path": "/cursor",
                "items": "/data",
                "pagination": {"type": "cursor", "pointer": "/meta/next", "param": "after"},
            },
            3,
        ),
        (
            {
                "path": "/offset",
                "items": "/data",
                "pagination": {"type": "offset", "param": "from", "size_param": "n", "size": 3},
            },
            4,
        ),
        ({"path": "/link", "pagination": {"type": "link_header"}}, 3),
    ],
)
def test_every_pagination_reads_everything_once(options: dict[str, Any], requests: int) -> None:
    """Page numbers, offsets, tokens and links end where the server ends."""
    with HttpApi(paged) as api:
        found = read(api, {**options, "columns": CONTRACT})
        assert [row["id"] for row in found] == [1, 2, 3, 4, 5, 6, 7]
        assert len(api.requests) == requests


def test_gaps_do_not_end_links_and_tokens() -> None:
    """An empty page in the middle ends numbered pages only."""
    pages = {"0": ([1], "1"), "1": ([], "2"), "2": ([3], "")}

    def handler(request: Request) -> Answer:
        ids, following = pages[request.query.get("t", "0")]
        return Answer(body={"data": items(*ids), "next": following})

    with HttpApi(handler) as api:
        pagination = {"type": "cursor", "pointer": "/next", "param": "t"}
        found = read(api, {"path": "/x", "items": "/data", "columns": CONTRACT, "pagination": pagination})
    assert [row["id"] for row in found] == [1, 3]


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


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ({"type": "bearer", "token": "t0k"}, "Authorization", "Bearer t0k"),
        ({"type": "basic", "user": "u", "password": "p:w"}, "Authorization", "Basic dTpwOnc="),
        ({"type": "api_key", "key": "k3y", "header": "X-Key"}, "X-Key", "k3y"),
    ],
)
def test_credentials_travel_with_every_page(auth: dict[str, str], header: str, value: str) -> None:
    """Also on the second page, beside the static headers."""
    with HttpApi(paged) as api:
        read(
            api,
            {"path": "/link", "pagination": {"type": "link_header"}, "columns": CONTRACT},
            config={"auth": auth, "headers": {"X-Team": "data"}},
        )
        assert len(api.requests) == 3
        for request in api.requests:
            assert request.headers[header] == value
            assert request.headers["X-Team"] == "data"


def test_key_in_the_query_is_sent_and_never_kept(caplog: pytest.LogCaptureFixture) -> None:
    """Every page carries it; no message, no stored link and no log holds it."""
    caplog.set_level("DEBUG")

    def handler(request: Request) -> Answer:
        assert request.query["api_key"] == "s3cret-key"
        return paged(request)

    with HttpApi(handler) as api:
        options = {"path": "/page", "pagination": {"type": "page"}, "columns": CONTRACT}
        config = {"auth": {"type": "api_key", "key": "s3cret-key", "param": "api_key"}}
        assert len(read(api, options, config=config)) == 7
        api.script.append(Answer(status=404))
        error = refusal(api, {**options, "query": {"token": "s3cret-query"}}, config=config)
    assert "s3cret" not in error.message
    assert "token=***" in error.message
    assert "s3cret" not in caplog.text


def test_bounds_become_parameters_and_absent_ones_are_left_out() -> None:
    """The lower bound is cut to the second, the upper one rounded up; everything is encoded."""
    options = {
        "path": "/x", "columns": CONTRACT,
        "query": {"since": "{{ watermark }}", "until": "lt:{{window_upper}}", "fixed": "a&b c", "n": 5, "deep": True},
    }  # fmt: skip
    with HttpApi(lambda request: Answer(body=[])) as api:
        read(api, options)
        read(api, options, watermark="2026-01-02T03:04:05.900000", upper_bound="2026-01-02T03:04:05.000001")
        read(api, options, watermark="42")
        first, second, third = (dict(request.query) for request in api.requests)
    assert first == {"fixed": "a&b c", "n": "5", "deep": "true"}
    assert (second["since"], second["until"]) == ("2026-01-02T03:04:05Z", "lt:2026-01-02T03:04:06Z")
    assert (third["since"], "until" in third) == ("42", False)


def test_path_stays_under_the_whole_base_address() -> None:
    """A prefix of the base address is kept, with and without a slash at its end."""
    with HttpApi(lambda request: Answer(body=[])) as api:
        for base in (f"{api.url}/api/v1", f"{api.url}/api/v1/"):
            read(api, {"path": "/things", "columns": CONTRACT}, config={"base_url": base})
        assert [request.path for request in api.requests] == ["/api/v1/things", "/api/v1/things"]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_transient_status_says_how_long_to_wait(status: int) -> None:
    """Seconds and dates are understood; anything else asks for nothing."""
    with HttpApi(lambda request: Answer(status=status, headers={"Retry-After": "7"})) as api:
        error = refusal(api, {"path": "/x", "columns": CONTRACT})
    assert error.is_transient
    assert error.retry_after is not None
    assert error.retry_after.total_seconds() == 7
    assert str(status) in error.message


@pytest.mark.parametrize(
    ("text", "seconds"), [("-3", 0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("soon", None), ("", None)]
)
def test_strange_waits_ask_for_nothing_or_no_time(text: str, seconds: int | None) -> None:
    """A past date and a negative number are no wait at all."""
    with HttpApi(lambda request: Answer(status=503, headers={"Retry-After": text})) as api:
        error = refusal(api, {"path": "/x", "columns": CONTRACT})
    assert (error.retry_after.total_seconds() if error.retry_after is not None else None) == seconds


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 501, 304])
def test_other_status_is_permanent(status: int) -> None:
    """Also in the middle of a crawl; the body is not shown."""

    def handler(request: Request) -> Answer:
        return (
            Answer(status=status, body={"e": "s3cret"}) if request.query.get("page") == "2" else Answer(body=items(1))
        )

    with HttpApi(handler) as api:
        error = refusal(api, {"path": "/x", "columns": CONTRACT, "pagination": {"type": "page"}})
    assert not error.is_transient
    assert str(status) in error.message
    assert "s3cret" not in error.message


def test_connection_faults_are_transient() -> None:
    """Nobody listening, a connection that breaks in the middle, and no answer in time."""
    with HttpApi(lambda request: Answer(body=items(1), hang_up=True)) as api:
        assert refusal(api, {"path": "/x", "columns": CONTRACT}).is_transient
    assert refusal(api, {"path": "/x", "columns": CONTRACT}).is_transient
    with HttpApi(lambda request: Answer(body=[], delay=3)) as api:
        error = refusal(api, {"path": "/x", "columns": CONTRACT}, config={"timeout_seconds": 1})
    assert error.is_transient
    assert "in time" in error.message


def test_cancellation_ends_a_request_that_hangs() -> None:
    """A blocked wait for an answer ends at once, as a cancellation."""
    cancel = CancelToken()
    threading.Timer(0.3, cancel.set).start()
    with HttpApi(lambda request: Answer(body=[], delay=3)) as api:
        started = time.monotonic()
        with pytest.raises(Cancelled):
            read(api, {"path": "/x", "columns": CONTRACT}, cancel=cancel)
        assert time.monotonic() - started < 2


def gate_for(limit: RateLimit | None = None) -> OperationGate:
    def now() -> datetime:
        return datetime.now(timezone.utc)

    policy = RetryPolicy(max_attempts=3, base_delay=_ms(10), max_delay=_ms(20))
    return OperationGate(Pacer(limit, monotonic=time.monotonic, now=now), policy, lambda: 0.5)


def _ms(milliseconds: int) -> Any:
    from datetime import timedelta

    return timedelta(milliseconds=milliseconds)


def test_flaky_page_costs_one_request_and_not_the_crawl() -> None:
    """The gate repeats the one page; pages before it are not asked for again."""
    with HttpApi(paged) as api:
        api.script.extend([Answer(body=items(1, 2, 3)), Answer(status=503), Answer(status=502)])
        gate = gate_for()
        found = read(api, {"path": "/page", "pagination": {"type": "page"}, "columns": CONTRACT}, gate=gate)
        assert [row["id"] for row in found] == [1, 2, 3, 4, 5, 6, 7]
        assert (gate.counts.executed, gate.counts.retried) == (6, 2)
        assert [request.query["page"] for request in api.requests] == ["1", "2", "2", "2", "3", "4"]


@pytest.mark.parametrize("prefix", ["X-RateLimit", "RateLimit"])
def test_exhausted_quota_pauses_the_crawl(prefix: str) -> None:
    """Nothing left means waiting for the reset, given in seconds or as a time."""

    def handler(request: Request) -> Answer:
        answer = paged(request)
        reset = "1" if request.query["page"] == "1" else "0"
        return Answer(body=answer.body, headers={f"{prefix}-Remaining": "0", f"{prefix}-Reset": reset})

    with HttpApi(handler) as api:
        gate = gate_for()
        started = time.monotonic()
        read(api, {"path": "/page", "pagination": {"type": "page"}, "columns": CONTRACT}, gate=gate)
        assert 0.9 < time.monotonic() - started < 2.5
        assert gate.counts.throttle_wait_ms >= 900


@pytest.mark.parametrize("headers", [{"X-RateLimit-Remaining": "0"}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "-5"},
                                     {"X-RateLimit-Remaining": "no", "X-RateLimit-Reset": "60"},
                                     {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999999"}])  # fmt: skip
def test_half_a_quota_or_a_strange_one_is_passed_over(headers: dict[str, str]) -> None:
    """Both numbers must be there and make sense."""
    with HttpApi(lambda request: Answer(body=paged(request).body, headers=headers)) as api:
        gate = gate_for()
        read(api, {"path": "/page", "pagination": {"type": "page"}, "columns": CONTRACT}, gate=gate)
        assert gate.counts.throttle_wait_ms == 0


def test_credentials_never_leave_the_connections_server() -> None:
    """A redirect, a next link or a stored token to anybody else is refused before it is asked; allowed hosts may."""
    link = {"path": "/link", "pagination": {"type": "link_header"}, "columns": CONTRACT}
    with HttpApi(lambda request: Answer(body=items(9))) as other, HttpApi(paged) as api:
        foreign = f"http://localhost:{other.port}/steal"
        for answer in (
            Answer(status=302, headers={"Location": foreign}),
            Answer(body=items(1), headers={"Link": f"<{foreign}>; rel=next"}),
            Answer(body=items(1), headers={"Link": f"<{api.url}@localhost:{other.port}/x>; rel=next"}),
            Answer(body=items(1), headers={"Link": "<file:///etc/passwd>; rel=next"}),
        ):
            api.script.append(answer)
            error = refusal(api, link)
            assert not error.is_transient
            assert "/steal" not in error.message
        assert not refusal(api, link, prior_token=foreign).is_transient
        assert other.requests == []
        api.script.append(Answer(status=307, headers={"Location": foreign}))
        assert [row["id"] for row in read(api, link, config={"allow_hosts": ["localhost"]})] == [9]


def test_redirects_on_the_own_server_are_followed_five_times() -> None:
    """The sixth is a permanent error."""

    def handler(request: Request) -> Answer:
        left = int(request.query.get("left", 0))
        location = {"Location": f"/x?left={left - 1}"}
        return Answer(status=302, headers=location) if left else Answer(body=items(1))

    with HttpApi(handler) as api:
        assert len(read(api, {"path": "/x", "query": {"left": 5}, "columns": CONTRACT})) == 1
        assert "redirects" in refusal(api, {"path": "/x", "query": {"left": 6}, "columns": CONTRACT}).message


@pytest.mark.parametrize("pagination", [{"type": "link_header"}, {"type": "cursor", "pointer": "/next", "param": "t"}])
def test_crawl_that_goes_in_circles_ends(pagination: dict[str, str]) -> None:
    """A page that was read before is never asked for again."""

    def handler(request: Request) -> Answer:
        return Answer(body={"next": "same", "data": items(1)}, headers={"Link": "</x>; rel=next"})

    with HttpApi(handler) as api:
        error = refusal(api, {"path": "/x", "items": "/data", "pagination": pagination, "columns": CONTRACT})
        assert len(api.requests) <= 2
    assert not error.is_transient


def test_page_cap_is_safe_only_in_cursor_order() -> None:
    """An incremental crawl may stop early when values rose all the way; else the rest would be lost."""
    options = {"path": "/page", "pagination": {"type": "page"}, "columns": CONTRACT, "max_pages": 2}
    with HttpApi(paged) as api:
        assert [row["id"] for row in read(api, options, cursor="id")] == [1, 2, 3, 4, 5, 6]
        assert len(read(api, options)) == 6

        def unordered(request: Request) -> Answer:
            return Answer(body=items(5, 4, 6))

        api.handler = unordered
        assert "max_pages" in refusal(api, options, cursor="id").message
        api.handler = lambda request: Answer(body=items(5, 5, 5))
        assert "max_pages" in refusal(api, options, cursor="id").message


def test_answer_larger_than_allowed_is_refused_while_it_arrives() -> None:
    """The limit is measured on what comes, whatever the headers say."""
    with HttpApi(lambda request: Answer(body=b"[" + b" " * (2 * 1024 * 1024) + b"]")) as api:
        error = refusal(api, {"path": "/x", "columns": CONTRACT}, config={"max_response_mb": 1})
    assert not error.is_transient
    assert "larger than 1 MB" in error.message


def test_feed_goes_on_from_the_link_of_the_last_page() -> None:
    """The token is the last page's link, is asked for verbatim, and is withheld when the crawl was cut short."""
    tokens: list[str | None] = []

    def handler(request: Request) -> Answer:
        delta = f"{api.url}/delta?from=abc%2Fd"
        if request.path == "/delta":
            return Answer(body={"value": items(8), "delta": delta})
        body = {"value": paged(request).body, **({"delta": delta} if request.query["page"] == "2" else {})}
        return Answer(body=body)

    options = {
        "path": "/page", "items": "/value", "columns": CONTRACT, "pagination": {"type": "page"}, "delta_pointer": "/delta",
    }  # fmt: skip

    def remember(partition: Any) -> None:
        tokens.append(partition.sync_state_candidate())

    with HttpApi(handler) as api:
        source = HttpConnector().open_source({"base_url": api.url})
        assert source.natural_read_shape(ReadSpec("api", "things", options)) == "feed"
        assert len(read(api, options, on_partition=remember)) == 7
        api.requests.clear()
        single = {**options, "pagination": {"type": "link_header"}}
        assert [row["id"] for row in read(api, single, prior_token=tokens[0], on_partition=remember)] == [8]
        assert dict(api.requests[0].query) == {"from": "abc/d"}
        read(api, {**options, "max_pages": 2}, on_partition=remember)
        assert tokens == [f"{api.url}/delta?from=abc%2Fd"] * 2 + [None]
        api.script.append(Answer(status=410))
        error = refusal(api, options, prior_token=tokens[0])
        assert "expired" in error.message
        assert error.hint == "run with --full-refresh"


def test_https_needs_a_certificate_that_is_trusted(tmp_path: Path) -> None:
    """An unknown certificate is a permanent error; a plain target of an https connection is never asked."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate),
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    options = {"path": "/link", "pagination": {"type": "link_header"}, "columns": CONTRACT}
    with HttpApi(paged, certificate=(str(certificate), str(key))) as api, HttpApi(paged) as plain:
        error = refusal(api, options)
        assert not error.is_transient
        assert "certificate" in error.message
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SSL_CERT_FILE", str(certificate))
            assert len(read(api, options)) == 7
            api.script.append(Answer(body=[], headers={"Link": f"<{plain.url}/link>; rel=next"}))
            assert not refusal(api, options, config={"allow_hosts": ["127.0.0.1"]}).is_transient
        assert plain.requests == []
