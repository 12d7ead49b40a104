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
