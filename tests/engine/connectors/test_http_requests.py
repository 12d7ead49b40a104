"""Requests of the http connector: credentials, quotas, faults, redirects, and whom it never asks."""

from __future__ import annotations

import subprocess
import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from http_reading import CONTRACT, items, paged, read, refusal

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.model.policies import RateLimit, RetryPolicy
from pz_engine.resilience.operation_gate import OperationGate
from pz_engine.resilience.rate_limit import Pacer
from pz_engine.testing.http_api import Answer, HttpApi, Request


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


@pytest.mark.parametrize(
    ("text", "days"),
    [("86399", 0), ("999999999", 1), ("9" * 30, 1), ("-" + "9" * 30, 0), ("Fri, 31 Dec 9999 23:59:59 GMT", 1),
     ("Fri, 31 Dec 9999 23:59:59 -2359", 1), ("Mon, 01 Jan 0001 00:00:00 +2359", 0)],
)  # fmt: skip
def test_wait_without_end_is_a_day(text: str, days: int) -> None:
    """However far away the time is, and however long the number."""
    with HttpApi(lambda request: Answer(status=503, headers={"Retry-After": text})) as api:
        error = refusal(api, {"path": "/x", "columns": CONTRACT})
    assert error.is_transient
    assert error.retry_after is not None
    assert error.retry_after.days == days


@pytest.mark.parametrize(
    "text", ["Fri, 31 Dec 99999 23:59:59 GMT", "Fri, 31 Dec 2026 23:59:59 +99999999", "nan", "1e9"]
)
def test_wait_that_is_no_wait_asks_for_nothing(text: str) -> None:
    """Nothing that a server writes ends in anything but the failure it belongs to."""
    with HttpApi(lambda request: Answer(status=503, headers={"Retry-After": text})) as api:
        error = refusal(api, {"path": "/x", "columns": CONTRACT})
    assert error.is_transient
    assert error.retry_after is None or error.retry_after.days <= 1


@pytest.mark.parametrize("reset", ["9999999", "253402300799", "99999999999"])
def test_quota_that_starts_anew_in_years_pauses_a_day_at_most(reset: str) -> None:
    """What the engine hears of a server's quota is a time it can reckon with."""
    heard: list[datetime] = []
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
    with HttpApi(lambda request: Answer(body=[], headers=headers)) as api:
        gate = gate_for()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gate, "report_budget", lambda remaining, reset_at: heard.append(reset_at))
            read(api, {"path": "/x", "columns": CONTRACT}, gate=gate)
    assert [(each - datetime.now(timezone.utc)).total_seconds() <= 86_400 for each in heard] == [True]


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
    assert error.hint


@pytest.mark.parametrize(
    ("answer", "message", "hint"),
    [
        (Answer(status=404), "answered 404", "check base_url, and path and query of the entity"),
        (Answer(status=401), "answered 401", "check the credentials"),
        (Answer(status=429), "answered 429", "set rate_limit on the connection"),
        (Answer(status=505), "answered 505", "ask whoever runs the server"),
        (Answer(status=302), "answered 302", "correct base_url or path"),
        (Answer(status=302, headers={"Location": "http://h:port/"}), "no address", "correct the server"),
        (Answer(body=b"<html>"), "is not JSON", "check that path and query"),
        (Answer(body=b'["\xff"]'), "is not UTF-8", "headers: { Accept: 'application/json; charset=utf-8' }"),
        (Answer(body=b'[{"id": "\\ud800"}]'), "'id' is no varchar", "correct the source"),
        (
            Answer(body=b"x" * 20, headers={"Content-Encoding": "gzip"}),
            "compression is damaged",
            "Accept-Encoding: identity",
        ),
    ],
)
def test_failed_answers_have_a_next_step(answer: Answer, message: str, hint: str) -> None:
    """One that the person can take; for what passes on its own the engine has one."""
    with HttpApi(lambda request: answer) as api:
        error = refusal(api, {"path": "/x", "columns": {"id": "varchar"}})
    assert message in error.message
    assert hint in (error.hint or "")


def test_connection_faults_are_transient() -> None:
    """Nobody listening, a connection that breaks in the middle, and no answer in time."""
    with HttpApi(lambda request: Answer(body=items(1), hang_up=True)) as api:
        assert refusal(api, {"path": "/x", "columns": CONTRACT}).is_transient
    assert refusal(api, {"path": "/x", "columns": CONTRACT}).is_transient
    with HttpApi(lambda request: Answer(body=[], delay=3)) as api:
        error = refusal(api, {"path": "/x", "columns": CONTRACT}, config={"timeout_seconds": 1})
    assert error.is_transient
    assert "in time" in error.message
    assert "raise timeout_seconds" in (error.hint or "")


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


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("evil.example:81", "http://evil.example:81"),
        ("s3cret_token.example", "another server"),
        ("s3cret" * 20, "another server"),
        ("s3cret~a", "another server"),
        ("s3cr\u00e9t.example", "another server"),
    ],
)
def test_foreign_server_is_named_only_when_its_name_is_plain(host: str, shown: str) -> None:
    """A link's server may be anything that a page holds; what is not a plain name is not repeated."""
    link = Answer(body={"data": [], "delta": f"http://{host}/s3cret"})
    with HttpApi(lambda request: link) as api:
        error = refusal(api, {"path": "/x", "items": "/data", "columns": CONTRACT, "delta_pointer": "/delta"})
    assert f"a request to {shown}" in error.message
    assert "s3cret" not in error.message


def test_redirects_on_the_own_server_are_followed_five_times() -> None:
    """The sixth is a permanent error."""

    def handler(request: Request) -> Answer:
        left = int(request.query.get("left", 0))
        location = {"Location": f"/x?left={left - 1}"}
        return Answer(status=302, headers=location) if left else Answer(body=items(1))

    with HttpApi(handler) as api:
        assert len(read(api, {"path": "/x", "query": {"left": 5}, "columns": CONTRACT})) == 1
        assert "redirects" in refusal(api, {"path": "/x", "query": {"left": 6}, "columns": CONTRACT}).message


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
