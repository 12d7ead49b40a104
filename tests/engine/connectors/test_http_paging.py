"""How crawls go from page to page, and how they end."""

from __future__ import annotations

from typing import Any

import pytest
from http_reading import CONTRACT, items, paged, read, refusal

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import BatchOptions, ReadHints, ReadSpec
from pz_engine.connectors.builtin.http.connector import HttpConnector
from pz_engine.testing.http_api import Answer, HttpApi, Request


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


@pytest.mark.parametrize("pagination", [{"type": "link_header"}, {"type": "cursor", "pointer": "/next", "param": "t"}])
def test_crawl_that_goes_in_circles_ends(pagination: dict[str, str]) -> None:
    """A page that was read before is never asked for again."""

    def handler(request: Request) -> Answer:
        return Answer(body={"next": "same", "data": items(1)}, headers={"Link": "</x>; rel=next"})

    with HttpApi(handler) as api:
        error = refusal(api, {"path": "/x", "items": "/data", "pagination": pagination, "columns": CONTRACT})
        assert len(api.requests) <= 2
    assert not error.is_transient


def test_crawl_goes_on_from_a_checkpoint() -> None:
    """A token is offered once, after the last row before it; a crawl that resumes asks for the rest and nothing else."""
    options = {"path": "/page", "pagination": {"type": "page"}, "columns": CONTRACT}
    with HttpApi(paged) as api:
        source = HttpConnector().open_source({"base_url": api.url})
        (partition,) = source.plan_read(ReadSpec("api", "things", options), ReadHints(), CancelToken())
        batches = partition.read(BatchOptions(max_rows=2), CancelToken())
        offered = []
        for _ in range(4):
            next(batches)
            offered.append(partition.checkpoint())
        assert [token is not None for token in offered] == [False, True, False, True]
        assert partition.checkpoint() is None
        api.requests.clear()
        (again,) = source.plan_read(ReadSpec("api", "things", options), ReadHints(), CancelToken())
        assert not again.try_resume_from("http://a\nb")
        assert again.try_resume_from(offered[1])
        rows = [row["id"] for batch in again.read(BatchOptions(), CancelToken()) for row in batch.to_pylist()]
        assert rows == [4, 5, 6, 7]
        assert [request.query["page"] for request in api.requests] == ["2", "3", "4"]
        source.close()


def test_answer_larger_than_allowed_is_refused_while_it_arrives() -> None:
    """The limit is measured on what comes, whatever the headers say."""
    with HttpApi(lambda request: Answer(body=b"[" + b" " * (2 * 1024 * 1024) + b"]")) as api:
        error = refusal(api, {"path": "/x", "columns": CONTRACT}, config={"max_response_mb": 1})
    assert not error.is_transient
    assert "larger than 1 MB" in error.message


def test_feed_goes_on_from_the_link_of_the_last_page() -> None:
    """The token is the last page's link, and is asked for verbatim."""
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
        assert tokens == [f"{api.url}/delta?from=abc%2Fd"] * 2
        api.script.append(Answer(status=410))
        error = refusal(api, options, prior_token=tokens[0])
        assert "expired" in error.message
        assert error.hint == "run with --full-refresh"


def test_link_of_the_next_run_is_checked_when_it_is_found() -> None:
    """A relative one starts at the page that answered; one to another server or of another kind fails the read now."""
    tokens: list[str | None] = []
    options = {"path": "/old", "items": "/value", "columns": CONTRACT, "delta_pointer": "/delta"}
    state: dict[str, Any] = {"delta": "since?n=5"}

    def handler(request: Request) -> Answer:
        if request.path == "/old":
            return Answer(status=302, headers={"Location": "/feeds/7/now"})
        return Answer(body={"value": items(1), **state})

    with HttpApi(handler) as api:
        read(api, options, on_partition=lambda partition: tokens.append(partition.sync_state_candidate()))
        assert tokens == [f"{api.url}/feeds/7/since?n=5"]
        assert len(read(api, options, prior_token=tokens[0])) == 1
        assert api.requests[-1].path == "/feeds/7/since"
        for link in ("http://elsewhere.example/x", "http://[::1", {"url": "/x"}, ["/x"], 7, True):
            state["delta"] = link
            error = refusal(api, options)
            assert not error.is_transient
            assert "/x" not in error.message
        for link in (None, ""):
            state["delta"] = link
            assert len(read(api, options)) == 1


@pytest.mark.parametrize("token", [{"a": 1}, [1], [], True, False])
def test_token_of_the_wrong_kind_is_an_error(token: Any) -> None:
    """Only a missing, null or empty token ends a crawl; anything else would end it without a word."""
    pagination = {"type": "cursor", "pointer": "/meta/next", "param": "t"}
    options = {"path": "/x", "items": "/data", "pagination": pagination, "columns": CONTRACT}
    with HttpApi(lambda request: Answer(body={"data": items(1), "meta": {"next": token}})) as api:
        error = refusal(api, options)
    assert not error.is_transient
    assert "/meta/next" in error.message


def test_number_as_token_keeps_its_spelling() -> None:
    """It is sent as the server wrote it, beyond what a float holds; a null, an empty and a missing one end the crawl."""
    pagination = {"type": "cursor", "pointer": "/next", "param": "t"}
    options = {"path": "/x", "items": "/data", "pagination": pagination, "columns": CONTRACT}
    number = Answer(body=b'{"data": [], "next": 12345678901234567890.50}')
    for end in (b'{"data": [], "next": null}', b'{"data": [], "next": ""}', b'{"data": []}'):
        with HttpApi(paged) as api:
            api.script.extend([number, Answer(body=end)])
            read(api, options)
            assert [request.query.get("t") for request in api.requests] == [None, "12345678901234567890.50"]


def test_page_that_leads_back_by_a_redirect_is_not_landed_twice() -> None:
    """Every address that was asked or has answered counts; passing through the same hop on the way does not."""

    def back_to_first(request: Request) -> Answer:
        if request.query.get("page") == "2":
            return Answer(status=302, headers={"Location": "/x?page=1"})
        return Answer(body=items(1))

    options = {"path": "/x", "columns": CONTRACT, "pagination": {"type": "page"}}
    with HttpApi(back_to_first) as api:
        assert "came back" in refusal(api, options).message

    def to_one_place(request: Request) -> Answer:
        return Answer(body=items(1)) if request.path == "/same" else Answer(status=302, headers={"Location": "/same"})

    with HttpApi(to_one_place) as api:
        assert "came back" in refusal(api, options).message

    state = {"page": "1"}

    def through_the_door(request: Request) -> Answer:
        if request.path == "/door":
            return Answer(status=302, headers={"Location": f"/real?p={state['page']}"})
        if request.path == "/real":
            number = int(request.query["p"])
            return Answer(body=items(number) if number < 4 else [])
        state["page"] = request.query["page"]
        return Answer(status=302, headers={"Location": "/door"})

    with HttpApi(through_the_door) as api:
        assert [row["id"] for row in read(api, options)] == [1, 2, 3]


def test_link_that_is_no_address_is_a_permanent_error() -> None:
    """Whether it came as a header or as a redirect; its text is not shown."""
    options = {"path": "/x", "columns": CONTRACT, "pagination": {"type": "link_header"}}
    for answer in (
        Answer(body=items(1), headers={"Link": "<http://[s3cret>; rel=next"}),
        Answer(status=302, headers={"Location": "http://[s3cret"}),
        Answer(status=302, headers={"Location": "http://h:s3cret/"}),
    ):
        with HttpApi(paged) as api:
            api.script.append(answer)
            error = refusal(api, options)
        assert not error.is_transient
        assert "s3cret" not in error.message


def test_offsets_end_on_short_and_on_empty_pages() -> None:
    """The number grows by what came, so pages shorter than asked for lose nothing; a strange number starts anew."""

    def short(request: Request) -> Answer:
        start = int(request.query["offset"])
        return Answer(body=items(*range(start, min(start + 2, 5))), headers={"Location": "/x?offset=0"})

    options = {"path": "/x", "columns": CONTRACT}
    sized = {"type": "offset", "size_param": "limit", "size": 100}
    with HttpApi(short) as api:
        assert [row["id"] for row in read(api, {**options, "pagination": sized})] == [0, 1, 2, 3, 4]
        assert [request.query["offset"] for request in api.requests] == ["0", "2", "4", "5"]
        api.requests.clear()
        read(api, {**options, "pagination": {**sized, "start": 4}})
        assert [request.query["offset"] for request in api.requests] == ["4", "5"]


def test_server_that_ignores_the_number_meets_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a crawl has no end of its own: the largest number of pages is its end, as an error."""
    monkeypatch.setattr("pz_engine.connectors.builtin.http.source.MOST_PAGES", 5)
    with HttpApi(lambda request: Answer(body=items(1))) as api:
        for kind in ("page", "offset"):
            api.requests.clear()
            error = refusal(api, {"path": "/x", "columns": CONTRACT, "pagination": {"type": kind}})
            assert "more than 5 pages" in error.message
            assert len(api.requests) == 5
