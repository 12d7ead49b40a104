"""State behind an HTTP endpoint, against a real server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pz_engine import CancelToken
from pz_engine.base.cancellation import Cancelled
from pz_engine.errors.exceptions import PzStateError
from pz_engine.model.project import StateSettings
from pz_engine.state.factory import open_state_stores
from pz_engine.state.store import KeyedStore, StateStores, WatermarkEntry
from pz_engine.testing.state_server import ScriptedAnswer, StateServer

ENTRY = WatermarkEntry("id", "bigint", "10", "run-1")
LATER = WatermarkEntry("id", "bigint", "20", "run-2")
STORED = '{"cursor":"id","type":"bigint","value":"10","runId":"run-1"}'


@pytest.fixture
def server() -> Iterator[StateServer]:
    """A running endpoint that wants a token."""
    with StateServer(token="s3cret-token") as running:
        yield running


class Client:
    """One run's stores, and what was said."""

    def __init__(self, server: StateServer, *, token: str = "s3cret-token", cancel: CancelToken | None = None) -> None:
        self.notes: list[str] = []
        settings = StateSettings("http", url=server.url + "/", timeout_seconds=2, token=token)
        self.stores: StateStores = open_state_stores(settings, Path("unused"), note=self.notes.append, cancel=cancel)
        self.watermarks: KeyedStore[WatermarkEntry] = self.stores.watermarks


@pytest.fixture
def client(server: StateServer) -> Iterator[Client]:
    """A client of the endpoint."""
    opened = Client(server)
    yield opened
    opened.stores.close()


def test_entry_survives_the_round_trip(server: StateServer, client: Client) -> None:
    """Absent, inserted, read, updated, listed, removed: each with the version the server gave."""
    assert client.watermarks.get("crm.public.orders") is None
    client.watermarks.set("crm.public.orders", ENTRY)
    assert server.payload("watermarks", "crm.public.orders") == STORED
    client.watermarks.set("crm.public.orders", LATER)
    assert client.watermarks.get("crm.public.orders") == LATER
    client.watermarks.set("a.b", ENTRY)
    assert list((client.watermarks.list_all() or {}).items()) == [("a.b", ENTRY), ("crm.public.orders", LATER)]
    client.watermarks.remove("crm.public.orders")
    client.watermarks.remove("crm.public.orders")
    assert client.watermarks.get("crm.public.orders") is None
    sent = [(method, headers.get("If-Match")) for method, path, headers in server.requests if "orders" in path]
    assert sent[:3] == [("GET", None), ("PUT", None), ("PUT", '"1"')]
    assert all(headers["Authorization"] == "Bearer s3cret-token" for _, _, headers in server.requests)


def test_scopes_are_the_first_segment_and_absent_is_204(server: StateServer, client: Client) -> None:
    """Each of the three stores has its own, and only that one status says that nothing is stored."""
    for store in (client.stores.watermarks, client.stores.sync_tokens, client.stores.schemas):
        server.script.append(ScriptedAnswer(204))
        assert store.get("a.b") is None
    base = urlsplit(server.url).path
    assert [path.removeprefix(base) for _, path, _ in server.requests] == [
        "/watermarks/a.b",
        "/sync-state/a.b",
        "/schemas/a.b",
    ]
    assert client.notes == []


def test_key_is_encoded_as_one_segment(server: StateServer, client: Client) -> None:
    """Slashes, blanks, percent signs, question marks and letters beyond ASCII stay part of the key."""
    key = "files.a/b c%2F?x#y+ü.日本"
    client.watermarks.get(key)
    client.watermarks.set(key, ENTRY)
    assert server.payload("watermarks", key) == STORED
    assert client.watermarks.get(key) == ENTRY


def test_recreated_key_goes_on_from_the_version_the_server_gives(server: StateServer, client: Client) -> None:
    """Versions are taken from answers and never computed, so a tombstone's number does not confuse them."""
    client.watermarks.set("a.b", ENTRY)
    client.watermarks.remove("a.b")
    client.watermarks.set("a.b", ENTRY)
    client.watermarks.set("a.b", LATER)
    assert server.requests[-1][2]["If-Match"] == '"2"'


def test_weak_tags_count_and_missing_or_strange_ones_mean_unknown(server: StateServer, client: Client) -> None:
    """Without a usable tag the next write inserts only where nothing is stored."""
    server.uses_weak_tags = True
    client.watermarks.set("a.b", ENTRY)
    client.watermarks.set("a.b", LATER)
    assert server.requests[-1][2]["If-Match"] == '"1"'
    server.leaves_out_tags = True
    client.watermarks.get("a.b")
    with pytest.raises(PzStateError) as caught:
        client.watermarks.set("a.b", ENTRY)
    assert caught.value.code == "PZ0520"
    for tag in ('"0"', '"-1"', '"x"', "3", '"99999999999999999999"', '"1"; "2"'):
        server.script.append(ScriptedAnswer(200, {"ETag": tag}, STORED.encode()))
        client.watermarks.get("a.b")
        with pytest.raises(PzStateError):
            client.watermarks.set("a.b", ENTRY)
        assert "If-Match" not in server.requests[-1][2]


@pytest.mark.parametrize("status", [409, 412])
def test_lost_race_is_a_conflict_and_forgets_the_version(server: StateServer, client: Client, status: int) -> None:
    """The loser's value is not stored, and the tag of the conflict answer is not adopted."""
    client.watermarks.set("a.b", ENTRY)
    server.script.append(ScriptedAnswer(status, {"ETag": '"7"'}))
    with pytest.raises(PzStateError) as caught:
        client.watermarks.set("a.b", LATER)
    assert caught.value.code == "PZ0520"
    with pytest.raises(PzStateError):
        client.watermarks.set("a.b", LATER)
    assert "If-Match" not in server.requests[-1][2]
    server.script.append(ScriptedAnswer(status))
    with pytest.raises(PzStateError) as caught:
        client.watermarks.remove("a.b")
    assert caught.value.code == "PZ0520"


def test_two_runs_on_one_key_store_the_first(server: StateServer, client: Client) -> None:
    """Both read the same version; the later writer loses."""
    client.watermarks.set("a.b", ENTRY)
    other = Client(server)
    other.watermarks.get("a.b")
    client.watermarks.get("a.b")
    other.watermarks.set("a.b", LATER)
    with pytest.raises(PzStateError, match="changed by another run") as caught:
        client.watermarks.set("a.b", ENTRY)
    assert caught.value.code == "PZ0520"
    other.stores.close()


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 500, 202])
def test_any_other_status_is_an_unusable_store(server: StateServer, client: Client, status: int) -> None:
    """An endpoint that does not know the run never reads as empty state; the message names host and status only."""
    for call in (
        lambda: client.watermarks.get("a.b"),
        client.watermarks.list_all,
        lambda: client.watermarks.set("a.b", ENTRY),
        lambda: client.watermarks.remove("a.b"),
    ):
        server.script.append(ScriptedAnswer(status, {"Location": "/elsewhere"}, b"s3cret-body"))
        with pytest.raises(PzStateError) as caught:
            call()
        assert caught.value.code == "PZ0518"
        assert "127.0.0.1" in caught.value.message
        assert str(status) in caught.value.message
        assert "s3cret" not in caught.value.message


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_busy_endpoint_is_asked_again(server: StateServer, client: Client, status: int) -> None:
    """At most three tries; a wait that was asked for in seconds is respected."""
    server.script.extend([ScriptedAnswer(status), ScriptedAnswer(status, {"Retry-After": "0"})])
    started = time.monotonic()
    client.watermarks.set("a.b", ENTRY)
    assert 0.2 <= time.monotonic() - started < 1.5
    assert len(server.requests) == 3
    server.script.extend([ScriptedAnswer(status)] * 3)
    with pytest.raises(PzStateError) as caught:
        client.watermarks.get("a.b")
    assert caught.value.code == "PZ0518"
    assert len(server.requests) == 6


def test_wait_asked_for_is_in_seconds_and_capped(server: StateServer) -> None:
    """A date is no wait in seconds; a long wait is cut, and the run's cancellation ends it as a cancellation."""
    cancel = CancelToken()
    client = Client(server, cancel=cancel)
    server.script.append(ScriptedAnswer(503, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}))
    started = time.monotonic()
    client.watermarks.get("a.b")
    assert time.monotonic() - started < 2
    server.script.append(ScriptedAnswer(503, {"Retry-After": "9999"}))
    import threading

    threading.Timer(0.2, cancel.set).start()
    with pytest.raises(Cancelled):
        client.watermarks.get("a.b")
    client.stores.settle()
    assert client.watermarks.get("a.b") is None
    client.stores.close()


class Untimed(CancelToken):
    """Lets waits pass at once, and remembers them."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return self.is_set()


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("asked", "waits"),
    [
        (None, [0.2, 0.4]),
        ("7", [7, 7]),
        ("30", [30, 30]),
        ("31", [30, 30]),
        ("9" * 40, [30, 30]),
        ("1.5", [0.2, 0.4]),
        ("-3", [0.2, 0.4]),
        ("Wed, 21 Oct 2026 07:28:00 GMT", [0.2, 0.4]),
    ],
)
def test_waits_between_tries(server: StateServer, asked: str | None, waits: list[float], status: int) -> None:
    """Whole seconds that are asked for, half a minute at most; else a fifth of a second, then two fifths."""
    token = Untimed()
    client = Client(server, cancel=token)
    server.script.extend([ScriptedAnswer(status, {"Retry-After": asked} if asked else {})] * 2)
    assert client.watermarks.get("a.b") is None
    assert (token.waits, len(server.requests)) == (waits, 3)
    client.stores.close()


def test_write_whose_answer_was_lost_is_recognised(server: StateServer, client: Client) -> None:
    """The repeat meets the first try's version; what is stored tells whether that was this write or another run's."""
    client.watermarks.set("a.b", ENTRY)
    server.script.append(ScriptedAnswer(503, applies=True))
    client.watermarks.set("a.b", LATER)
    assert server.payload("watermarks", "a.b") == STORED.replace("10", "20").replace("run-1", "run-2")
    client.watermarks.set("a.b", ENTRY)
    server.script.append(ScriptedAnswer(503))
    server.put("watermarks", "a.b", STORED.replace("10", "99"))
    with pytest.raises(PzStateError) as caught:
        client.watermarks.set("a.b", LATER)
    assert caught.value.code == "PZ0520"


def test_unreadable_entry_gives_a_note_and_can_be_replaced(server: StateServer, client: Client) -> None:
    """Its version is remembered, so a later value takes its place; a list that holds it is unreadable as a whole."""
    server.put("watermarks", "a.b", '{"cursor":"id"}')
    assert client.watermarks.get("a.b") is None
    assert len(client.notes) == 1
    assert "unreadable" in client.notes[0]
    assert client.watermarks.list_all() is None
    client.watermarks.set("a.b", ENTRY)
    assert client.watermarks.list_all() == {"a.b": ENTRY}
    for body in (b"not json", b"[]", b'{"entries":[{"key":1}]}', b'{"entries":5}'):
        server.script.append(ScriptedAnswer(200, {}, body))
        assert client.watermarks.list_all() is None
    assert len(client.notes) == 1


def test_unreachable_and_silent_endpoints_are_named(server: StateServer) -> None:
    """Nobody listening, a name that does not resolve, and no answer in time are all an unusable store."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        for url in (
            "http://127.0.0.1:1/runs/r1",
            f"http://127.0.0.1:{silent.getsockname()[1]}/x",
        ):
            settings = StateSettings("http", url=url, timeout_seconds=1)
            with open_state_stores(settings, Path("unused"), note=pytest.fail) as stores:
                with pytest.raises(PzStateError) as caught:
                    stores.watermarks.get("a.b")
                assert caught.value.code == "PZ0518"
                assert "127.0.0.1" in caught.value.message


def test_wrong_token_is_refused_and_not_shown(server: StateServer) -> None:
    """A 401 is an error whose message holds no credential."""
    client = Client(server, token="wr0ng-token")
    with pytest.raises(PzStateError) as caught:
        client.watermarks.get("a.b")
    assert "wr0ng-token" not in str(caught.value)
    client.stores.close()
