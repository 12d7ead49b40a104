"""Runs that read a real HTTP service: increments, feeds, quotas, flaky pages, and a service that is down."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from pz_engine import RunOutcome, Selection
from pz_engine.cli.render.console import event_lines
from pz_engine.events.types import BreakerStateChanged, ConnectorLog, NodeCompleted, NodeProgress, RunEvent
from pz_engine.testing.http_api import Answer, HttpApi, Request
from pz_engine.testing.project_factory import ProjectFactory

CONNECTIONS = """
api:
  connector: http
  base_url: {url}/v1
  retry: {{ max_attempts: 3, base_delay: 10ms, max_delay: 50ms }}
  auth: {{ type: bearer, token: t0ken-sentinel }}
{extra}
  entities:
    issues:
      read:
        path: /issues
        query: {{ since: "{{{{ watermark }}}}", until: "{{{{ window_upper }}}}" }}
        items: /data
        pagination: {{ type: cursor, pointer: /next, param: page_token }}
        columns: {{ id: bigint, title: varchar, updated_at: timestamp }}
        {sync}
warehouse: {{ connector: duckdb, path: warehouse.duckdb }}
"""
PIPELINE = """INSERT INTO {{ sink('warehouse', 'issues', strategy: 'merge', keys: ['id']) }}
SELECT * FROM {{ source('api', 'issues') }}
"""


class Tracker:
    """An issue tracker with pages of two."""

    def __init__(self) -> None:
        self.issues = [self.issue(number, f"2026-01-0{number}T10:00:00Z") for number in range(1, 6)]

    @staticmethod
    def issue(number: int, at: str) -> dict[str, Any]:
        return {"id": number, "title": f"t{number}", "updated_at": at}

    def __call__(self, request: Request) -> Answer:
        assert request.headers["Authorization"] == "Bearer t0ken-sentinel"
        wanted = [
            issue
            for issue in self.issues
            if request.query.get("since", "") < issue["updated_at"] <= request.query.get("until", "9999")
        ]
        start = int(request.query.get("page_token", 0))
        following = str(start + 2) if start + 2 < len(wanted) else None
        return Answer(body={"data": wanted[start : start + 2], "next": following})


@pytest.fixture
def tracker() -> Tracker:
    return Tracker()


@pytest.fixture
def api(tracker: Tracker) -> Iterator[HttpApi]:
    """The tracker, listening."""
    with HttpApi(tracker) as running:
        yield running


def build(
    factory: ProjectFactory, api: HttpApi, *, extra: str = "", sync: str = "", engine: str = ""
) -> ProjectFactory:
    factory.write("project.yml", f'name: demo\nversion: "1"\nengine: {{ threads: 4 {engine} }}\n')
    factory.connections(CONNECTIONS.format(url=api.url, extra=extra, sync=sync))
    factory.pipeline("issues", PIPELINE)
    return factory


def landed(project: ProjectFactory) -> list[int]:
    with duckdb.connect(str(project.directory / "warehouse.duckdb"), read_only=True) as connection:
        return [row[0] for row in connection.execute("select id from issues order by id").fetchall()]


def caught_up(outcome: RunOutcome) -> bool | None:
    return next(result for result in outcome.results if result.name == "src_api__issues").caught_up


def stored(project: ProjectFactory) -> str:
    text = (project.directory / ".pz/state/watermarks.json").read_text()
    return str(json.loads(text)["watermarks"]["api.issues"]["value"])


def test_second_run_asks_for_what_is_new(factory: ProjectFactory, api: HttpApi, tracker: Tracker) -> None:
    """The first run has no bound; the next one sends the watermark and lands only later issues."""
    project = build(factory, api, sync="sync: { mode: incremental, cursor: updated_at }")
    assert project.run().exit_code == 0
    assert landed(project) == [1, 2, 3, 4, 5]
    assert "since" not in api.requests[0].query
    tracker.issues.append(tracker.issue(6, "2026-01-06T10:00:00Z"))
    api.requests.clear()
    outcome = project.run()
    assert [result.rows for result in outcome.results] == [1, 1, 1]
    assert api.requests[0].query["since"] == "2026-01-05T10:00:00Z"
    assert landed(project) == [1, 2, 3, 4, 5, 6]
    assert stored(project) == "2026-01-06T10:00:00.000000"


def test_windows_walk_through_history(factory: ProjectFactory, api: HttpApi) -> None:
    """Each run asks for one slice; rows beyond it never land even from a server that ignores the bound."""
    sync = "sync: { mode: incremental, cursor: updated_at, max_window: 2d, initial: 2026-01-01, until: 2026-01-05 }"
    project = build(factory, api, sync=sync)
    assert project.run().exit_code == 0
    assert landed(project) == [1, 2]
    assert (api.requests[0].query["since"], api.requests[0].query["until"]) == (
        "2026-01-01T00:00:00Z",
        "2026-01-03T00:00:00Z",
    )
    assert not caught_up(project.run())
    assert landed(project) == [1, 2, 3, 4]
    assert caught_up(project.run())
    assert landed(project) == [1, 2, 3, 4]


def test_flaky_service_costs_requests_and_not_the_run(factory: ProjectFactory, api: HttpApi) -> None:
    """A busy page is asked for again inside the attempt; the node is never retried."""
    project = build(factory, api)
    api.script.extend([Answer(status=503), Answer(status=429, headers={"Retry-After": "0"})])
    events: list[RunEvent] = []
    outcome = project.run(events=events)
    assert outcome.exit_code == 0
    load = next(result for result in outcome.results if result.name == "src_api__issues")
    assert (load.stats.attempts, load.rows) == (1, 5)
    assert load.ops is not None
    assert (load.ops.executed, load.ops.retried) == (5, 2)
    completed = next(e for e in events if isinstance(e, NodeCompleted) and e.result.name == "src_api__issues")
    assert completed.payload()["ops"]["retried"] == 2
    assert not [event for event in events if isinstance(event, NodeProgress)]


def test_retry_asks_for_the_pages_that_are_missing(factory: ProjectFactory, api: HttpApi) -> None:
    """A crawl that broke on its second page goes on there, in another run; the first page is not asked for again."""
    project = build(factory, api)
    real = api.handler
    api.handler = lambda request: Answer(status=404) if request.query.get("page_token") == "2" else real(request)
    assert project.run().exit_code == 1
    api.handler = real
    api.requests.clear()
    outcome = project.run(retry_from="latest", selection=Selection())
    assert outcome.exit_code == 0
    assert [request.query.get("page_token") for request in api.requests] == ["2", "4"]
    load = next(result for result in outcome.results if result.name == "src_api__issues")
    assert load.partitions is not None
    assert load.partitions.resumed == 1
    assert landed(project) == [1, 2, 3, 4, 5]


def test_rate_limit_is_shared_by_the_nodes_of_a_connection(factory: ProjectFactory, api: HttpApi) -> None:
    """Two entities read at once take turns: no two requests come closer together than the rate allows."""
    project = build(factory, api, extra="  rate_limit: { requests_per_minute: 600, burst: 1 }")
    project.pipeline("more", "SELECT * FROM {{ source('api', 'other', path: '/issues', items: '/data') }}")
    moments: list[float] = []
    real = api.handler

    def note_time(request: Request) -> Answer:
        moments.append(time.monotonic())
        return real(request)

    api.handler = note_time
    outcome = project.run()
    assert outcome.exit_code == 0
    assert sum(result.ops is not None for result in outcome.results) == 2
    moments.sort()
    assert moments[-1] - moments[0] > 0.08 * (len(moments) - 1)


def test_service_that_is_down_trips_one_breaker_and_leaves_the_rest_alone(
    factory: ProjectFactory, api: HttpApi
) -> None:
    """The load fails, nothing is written, another flow lands, and the next run works."""
    project = build(factory, api, engine=", breaker: { failure_threshold: 2, cool_down: 50ms }")
    project.pipeline(
        "numbers",
        "INSERT INTO {{ sink('warehouse', 'numbers', strategy: 'replace') }}\nSELECT range AS n FROM range(3)",
    )
    api.script.extend([Answer(status=500)] * 100)
    events: list[RunEvent] = []
    outcome = project.run(events=events)
    assert outcome.exit_code == 1
    by_name = {result.name: result for result in outcome.results}
    load = by_name["src_api__issues"]
    assert load.error is not None
    assert load.error.code in ("PZ0501", "PZ0506")
    assert by_name["warehouse.numbers"].rows == 3
    assert next(event.instance for event in events if isinstance(event, BreakerStateChanged)) == "conn:api"
    assert not (project.directory / ".pz/state/watermarks.json").exists()
    api.script.clear()
    assert project.run().exit_code == 0
    assert landed(project) == [1, 2, 3, 4, 5]


def test_feed_resumes_and_is_read_again_when_the_sink_failed(factory: ProjectFactory) -> None:
    """The delta link moves only after the merge committed; an expired one says how to start anew."""

    def handler(request: Request) -> Answer:
        step = int(request.query.get("delta", 0))
        return Answer(body={"value": [{"id": step + 1, "name": "x"}], "delta": f"{api.url}/feed?delta={step + 1}"})

    with HttpApi(handler) as api:
        factory.connections(
            f"""
            api:
              connector: http
              base_url: {api.url}
              entities:
                changes:
                  read:
                    path: /feed
                    items: /value
                    delta_pointer: /delta
                    columns: {{ id: bigint, name: varchar }}
            warehouse: {{ connector: duckdb, path: warehouse.duckdb }}
            """
        )
        factory.pipeline(
            "changes",
            "INSERT INTO {{ sink('warehouse', 'issues', strategy: 'merge', keys: ['id']) }}\n"
            "SELECT * FROM {{ source('api', 'changes') }}",
        )
        assert factory.run().exit_code == 0
        with duckdb.connect(str(factory.directory / "warehouse.duckdb")) as holder:
            holder.execute("alter table issues rename column name to other")
        assert factory.run().exit_code == 1
        with duckdb.connect(str(factory.directory / "warehouse.duckdb")) as holder:
            holder.execute("alter table issues rename column other to name")
        assert factory.run().exit_code == 0
        assert landed(factory) == [1, 2]
        assert [request.query.get("delta") for request in api.requests] == [None, "1", "1"]
        api.script.append(Answer(status=410))
        outcome = factory.run()
        failed = next(result for result in outcome.results if result.error is not None)
        assert failed.error is not None
        assert "--full-refresh" in failed.error.message
        assert factory.run(full_refresh=True).exit_code == 0


CAPPED = """
api:
  connector: http
  base_url: {url}
  entities:
    rows:
      read:
        path: /rows
        query: {{ since: "{{{{ watermark }}}}" }}
        pagination: {{ type: page }}
        columns: {{ id: bigint, moved: timestamp }}
        max_pages: {pages}
        {sync}
warehouse: {{ connector: duckdb, path: warehouse.duckdb }}
"""


def tied(request: Request) -> Answer:
    """Ten rows in pages of two, four of them at one moment across three pages."""
    days = (1, 2, 3, 4, 4, 4, 4, 5, 6, 7)
    found = [{"id": number, "moved": f"2026-01-0{day}T00:00:00Z"} for number, day in enumerate(days, 1)]
    found = [row for row in found if str(row["moved"]) > request.query.get("since", "")]
    start = 2 * int(request.query["page"]) - 2
    return Answer(body=found[start : start + 2])


def capped(factory: ProjectFactory, api: HttpApi, pages: int, sync: str = "") -> ProjectFactory:
    factory.connections(CAPPED.format(url=api.url, pages=pages, sync=sync))
    factory.pipeline(
        "rows",
        "INSERT INTO {{ sink('warehouse', 'issues', strategy: 'append', duplicates: 'accept') }}\n"
        "SELECT * FROM {{ source('api', 'rows') }}",
    )
    return factory


def test_capped_runs_append_every_row_once(factory: ProjectFactory) -> None:
    """Rows of one moment are never split between what landed and what the next run skips."""
    with HttpApi(tied) as api:
        project = capped(factory, api, 3, "sync: { mode: incremental, cursor: moved }")
        seen = []
        for _ in range(4):
            assert project.run().exit_code == 0
            seen.append(landed(project))
    assert seen == [[1, 2, 3], [*range(1, 9)], [*range(1, 11)], [*range(1, 11)]]


def test_capped_runs_that_cannot_get_further_fail(factory: ProjectFactory) -> None:
    """A group larger than the pages of a run is an error that says what to raise; nothing is skipped."""
    with HttpApi(tied) as api:
        project = capped(factory, api, 2, "sync: { mode: incremental, cursor: moved }")
        assert project.run().exit_code == 0
        outcome = project.run()
        assert landed(project) == [1, 2, 3]
        failed = next(result.error for result in outcome.results if result.error is not None)
        assert "raise max_pages" in failed.message
        assert capped(factory, api, 3, "sync: { mode: incremental, cursor: moved }").run().exit_code == 0
        assert landed(project) == [*range(1, 9)]


def test_capped_full_read_says_that_it_is_a_part(factory: ProjectFactory) -> None:
    """The run succeeds and its console and its journal name the entity and the limit."""
    with HttpApi(tied) as api:
        project = capped(factory, api, 2)
        events: list[RunEvent] = []
        assert project.run(events=events).exit_code == 0
    assert landed(project) == [1, 2, 3, 4]
    (line,) = [line for event in events if isinstance(event, ConnectorLog) for line in event_lines(event)]
    assert line == "connector [warn] api: rows: max_pages (2) ended the crawl; only these pages landed"


def test_numbers_land_as_the_page_of_the_connector_says(factory: ProjectFactory) -> None:
    """Decimals keep their digits, a double is the nearest one, a float is rounded once more; zero is never made up."""
    body = b'[{"a": 9007199254740993, "b": 16777217, "c": 0.1234567890123456789, "d": 9007199254740993}]'
    with HttpApi(lambda request: Answer(body=body)) as api:
        factory.connections(
            f"api: {{ connector: http, base_url: '{api.url}' }}\nwarehouse: {{ connector: duckdb, path: warehouse.duckdb }}\n"
        )
        factory.pipeline(
            "numbers",
            "INSERT INTO {{ sink('warehouse', 'numbers', strategy: 'replace') }}\nSELECT * FROM {{ source('api', 'n', "
            "path: '/n', columns: { a: 'double', b: 'float', c: 'decimal(25,19)', d: 'bigint' }) }}",
        )
        assert factory.run().exit_code == 0
        for misfit in (b'[{"a": 1e-400}]', b'[{"b": 1e-50}]', b'[{"b": 1e39}]', b'[{"d": 1.5}]', b'[{"c": 1e-20}]'):
            api.script.append(Answer(body=misfit))
            assert factory.run().exit_code == 1
    with duckdb.connect(str(factory.directory / "warehouse.duckdb"), read_only=True) as connection:
        found = connection.execute("select a, b::double, c::varchar, d from numbers").fetchall()
    assert found == [(9007199254740992.0, 16777216.0, "0.1234567890123456789", 9007199254740993)]


def test_slow_services_do_not_hold_each_other_up(factory: ProjectFactory) -> None:
    """Requests of independent entities are in flight at the same time."""
    together = threading.Barrier(3, timeout=10)

    def handler(request: Request) -> Answer:
        together.wait()
        return Answer(body=[{"id": 1}])

    with HttpApi(handler) as api:
        factory.write("project.yml", 'name: demo\nversion: "1"\nengine: { threads: 4 }\n')
        factory.connections(f"api: {{ connector: http, base_url: '{api.url}' }}\n")
        for name in ("a", "b", "c"):
            factory.pipeline(
                name, f"SELECT * FROM {{{{ source('api', '{name}', path: '/{name}', columns: {{ id: 'int' }}) }}}}"
            )
        assert factory.run().exit_code == 0


def test_token_reaches_no_file_and_no_message(factory: ProjectFactory, api: HttpApi) -> None:
    """Neither a success nor a failure leaves the credential behind."""
    project = build(factory, api)
    outcome = project.run()
    api.script.append(Answer(status=401, body={"error": "token t0ken-sentinel is bad"}))
    failed = project.run()
    assert failed.exit_code == 1
    texts = [str(result.error) for result in (*outcome.results, *failed.results)] + [*outcome.notes, *failed.notes]
    assert not any("t0ken-sentinel" in text for text in texts)
    holders = [
        path
        for path in (project.directory / ".pz").rglob("*")
        if path.is_file() and b"t0ken-sentinel" in path.read_bytes()
    ]
    assert holders == []
