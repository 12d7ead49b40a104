"""Crawls that `max_pages` ends early: what lands, what has to wait, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from http_reading import CONTRACT, items, paged, read, refusal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import BatchOptions, ReadHints, ReadSpec
from pz_engine.connectors.builtin.http.connector import HttpConnector
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.testing.http_api import Answer, HttpApi, Request

OPTIONS = {"path": "/page", "pagination": {"type": "page"}, "columns": CONTRACT, "max_pages": 2}
TIED: dict[str, Any] = {
    "path": "/rows",
    "query": {"since": "{{ watermark }}"},
    "pagination": {"type": "page"},
    "columns": {"id": "bigint", "at": "bigint"},
}


class Rows:
    """A server of numbered rows, sorted ascending, rows without a value first."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.size = 2
        self.honours_bound = True

    def set(self, values: list[int | None]) -> None:
        ordered = sorted(values, key=lambda value: -1 if value is None else value)
        self.rows = [{"id": number, "at": value} for number, value in enumerate(ordered)]

    def __call__(self, request: Request) -> Answer:
        since = int(request.query.get("since", -1)) if self.honours_bound else -1
        found = [row for row in self.rows if (row["at"] is None and since < 0) or (row["at"] or 0) > since]
        start = (int(request.query["page"]) - 1) * self.size
        return Answer(body=found[start : start + self.size])


@pytest.fixture(scope="module")
def server() -> Rows:
    return Rows()


@pytest.fixture(scope="module")
def api(server: Rows) -> Iterator[HttpApi]:
    """The rows, listening."""
    with HttpApi(server) as running:
        yield running


def run_until_nothing_is_new(api: HttpApi, max_pages: int) -> list[dict[str, Any]]:
    """Read as the engine does: land what is above the watermark, and move it to the highest value."""
    landed: list[dict[str, Any]] = []
    watermark: int | None = None
    while True:
        bound = str(watermark) if watermark is not None else None
        found = read(api, {**TIED, "max_pages": max_pages}, cursor="at", watermark=bound)
        new = [row for row in found if watermark is None or (row["at"] is not None and row["at"] > watermark)]
        landed += new
        values = [row["at"] for row in new if row["at"] is not None]
        if not values:
            return landed
        watermark = max(values)


def attempted(reading: Callable[[], list[dict[str, Any]]]) -> tuple[list[dict[str, Any]], PzConnectorError | None]:
    """Return the rows of a reading, or why it was refused."""
    try:
        return reading(), None
    except PzConnectorError as error:
        return [], error


VALUES = st.lists(st.one_of(st.none(), st.integers(0, 6)), max_size=14)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=VALUES, size=st.integers(1, 4), max_pages=st.integers(1, 5), honours_bound=st.booleans())
def test_runs_land_every_row_once_or_say_why_not(
    api: HttpApi, server: Rows, values: list[int | None], size: int, max_pages: int, honours_bound: bool
) -> None:
    """Whatever the ties and page sizes: no row is skipped without an error, and none lands twice."""
    server.set(values)
    server.size, server.honours_bound = size, honours_bound
    landed, error = attempted(lambda: run_until_nothing_is_new(api, max_pages))
    if error is not None:
        assert not error.is_transient
        assert "raise max_pages" in str(error.hint)
        # Numbered pages end on an empty one, so the largest group has to leave room for one more page.
        largest = max((values.count(each) for each in set(values)), default=0)
        assert not honours_bound or None in values or size * (max_pages - 1) < largest
        return
    assert sorted(row["id"] for row in landed) == [row["id"] for row in server.rows]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=VALUES, size=st.integers(1, 4), max_pages=st.integers(1, 5), lower=st.integers(0, 5))
def test_capped_window_is_whole_or_refused(
    api: HttpApi, server: Rows, values: list[int | None], size: int, max_pages: int, lower: int
) -> None:
    """A window is taken as read afterwards, so either all its rows came or the read fails."""
    server.set([value for value in values if value is not None])
    server.size, server.honours_bound = size, False
    window = {"cursor": "at", "watermark": str(lower), "upper_bound": str(lower + 1)}
    found, error = attempted(lambda: read(api, {**TIED, "max_pages": max_pages}, **window))
    if error is not None:
        assert "max_pages" in error.message
        return
    assert [row["id"] for row in found if row["at"] == lower + 1] == [
        row["id"] for row in server.rows if row["at"] == lower + 1
    ]


def test_window_that_was_not_reached_is_refused(api: HttpApi, server: Rows) -> None:
    """Rows below the window alone say nothing about it; rows beyond it close it."""
    server.set(list(range(1, 29)))
    server.size, server.honours_bound = 5, False
    window = {"cursor": "at", "watermark": "15", "upper_bound": "20"}
    error = refusal(api, {**TIED, "max_pages": 2}, **window)
    assert not error.is_transient
    assert error.hint == "raise max_pages, or make max_window smaller"
    assert "window" in refusal(api, {**TIED, "max_pages": 4}, **window).message
    found = read(api, {**TIED, "max_pages": 5}, **window)
    assert [row["at"] for row in found if 15 < row["at"] <= 20] == [16, 17, 18, 19, 20]


@pytest.mark.parametrize(
    ("kind", "values", "upper"),
    [
        ("timestamp", ["2026-01-01T00:00:00Z", "2026-01-02T01:00:00+02:00"], "2026-01-01T23:00:00.000000"),
        ("date", ["2026-01-01", "2026-01-02"], "2026-01-02"),
        ("decimal(10,2)", [1.5, 2.5], "2.50"),
        ("double", [1.5, 2.5], "2.5"),
    ],
)
def test_end_of_a_window_is_compared_by_its_type(kind: str, values: list[Any], upper: str) -> None:
    """A last value equal to the bound leaves the window open."""
    options = {**TIED, "columns": {"at": kind}, "max_pages": 1}
    with HttpApi(lambda request: Answer(body=[{"at": value} for value in values])) as api:
        assert "window" in refusal(api, options, cursor="at", watermark="0", upper_bound=upper).message


def test_last_value_waits_for_the_next_run() -> None:
    """Its group may go on; what has no value lands at once, and a crawl that ends by itself lands everything."""
    with HttpApi(paged) as api:
        assert [row["id"] for row in read(api, OPTIONS, cursor="id")] == [1, 2, 3, 4, 5]
        assert [row["id"] for row in read(api, OPTIONS, cursor="ID")] == [1, 2, 3, 4, 5]
        assert len(read(api, {**OPTIONS, "max_pages": 9}, cursor="id")) == 7
        assert len(read(api, OPTIONS)) == 6


@pytest.mark.parametrize(
    ("ids", "part"), [((5, 4, 6), "not in its order"), ((5, 5, 5), "same value"), ((), "same value or none")]
)
def test_crawl_without_order_cannot_be_cut(ids: tuple[int, ...], part: str) -> None:
    """The rest would be lost, or the next run would stand still."""
    options = {**OPTIONS, "pagination": {"type": "link_header"}}

    def handler(request: Request) -> Answer:
        number = int(request.query.get("p", 0)) + 1
        return Answer(body=items(*ids), headers={"Link": f"</page?p={number}>; rel=next"})

    with HttpApi(handler) as api:
        error = refusal(api, options, cursor="id")
    assert not error.is_transient
    assert part in error.message


def test_server_that_ignores_the_bound_is_told_from_progress(api: HttpApi, server: Rows) -> None:
    """A capped read that brings nothing above the watermark would be the same for ever."""
    server.set(list(range(20)))
    server.size, server.honours_bound = 3, False
    error = refusal(api, {**TIED, "max_pages": 2}, cursor="at", watermark="10")
    assert "nothing above the stored watermark" in error.message
    assert "{{ watermark }}" in str(error.hint)


def test_capped_incremental_crawl_offers_no_checkpoint() -> None:
    """Rows are kept back at every page, and a crawl that began in the middle must not be cut."""
    with HttpApi(paged) as api:
        source = HttpConnector().open_source({"base_url": api.url})
        spec = ReadSpec("api", "things", OPTIONS, cursor="id")
        (partition,) = source.plan_read(spec, ReadHints(), CancelToken())
        for _ in partition.read(BatchOptions(max_rows=1), CancelToken()):
            assert partition.checkpoint() is None
        (partition,) = source.plan_read(spec, ReadHints(), CancelToken())
        assert partition.try_resume_from(f"{api.url}/page?page=1")
        with pytest.raises(PzConnectorError, match="began in the middle"):
            list(partition.read(BatchOptions(), CancelToken()))
        source.close()


def test_cut_is_said(api: HttpApi, server: Rows) -> None:
    """A full read says that a part landed, an incremental one that it goes on; a whole one says nothing."""
    server.set(list(range(9)))
    server.size, server.honours_bound = 2, True
    notices: list[tuple[str, str]] = []
    for options, cursor in (
        ({**TIED, "max_pages": 2}, None),
        ({**TIED, "max_pages": 2}, "at"),
        ({**TIED, "max_pages": 9}, None),
    ):
        source = HttpConnector().open_source({"base_url": api.url})
        source.use_notices(lambda level, text: notices.append((level, text)))
        (partition,) = source.plan_read(ReadSpec("api", "things", options, cursor=cursor), ReadHints(), CancelToken())
        list(partition.read(BatchOptions(), CancelToken()))
        source.close()
    assert notices == [
        ("warn", "things: max_pages (2) ended the crawl; only these pages landed"),
        ("warn", "things: max_pages (2) ended the crawl; the next run goes on after the last value"),
    ]
