"""What the http connector refuses before anything is asked, on both surfaces."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import ConnectionUse
from pz_engine.connectors.builtin.http.connector import HttpConnector
from pz_engine.connectors.builtin.http.json_text import JsonError, decode, locate, pointer_parts
from pz_engine.connectors.builtin.http.pagination import next_link
from pz_engine.testing.http_api import Answer, HttpApi
from pz_engine.testing.project_factory import ProjectFactory

CONNECTOR = HttpConnector()
BASE = {"base_url": "https://api.example/v1"}


def messages(config: dict[str, Any], read: dict[str, Any] | None = None, cursor: str | None = None) -> list[str]:
    reads = {"things": read} if read is not None else {}
    cursors = {"things": cursor} if cursor is not None else {}
    return [finding.message for finding in CONNECTOR.validate(ConnectionUse("api", config, reads, cursors=cursors))]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"query": {"a": "{{ watermrk }}"}}, "names 'watermrk'"),
        ({"query": {"a": "{{ watermark"}}, "malformed"),
        ({"items": "data"}, "'items' is no JSON pointer"),
        ({"delta_pointer": "/a~2"}, "'delta_pointer' is no JSON pointer"),
        ({"pagination": {"type": "cursor", "pointer": "x", "param": "p"}}, "'pagination.pointer' is no JSON pointer"),
        ({"pagination": {"type": "page", "size": 5}}, "belong together"),
        ({"cursor_type": "bigint", "columns": {"a": "int"}}, "'cursor_type' has no meaning"),
        ({"cursor_pointer": "/a", "columns": {"a": "int"}}, "'cursor_pointer' has no meaning"),
        ({"cursor": "b", "columns": {"a": "int"}}, "no declared column"),
        ({"cursor": "b"}, "belong together"),
        ({"cursor": "pz_page", "cursor_type": "int"}, "column that every page has"),
        ({"cursor": "payload", "cursor_type": "int"}, "column that every page has"),
        ({"format": "csv"}, "only json pages"),
        ({"delta_pointer": "/next", "max_pages": 3}, "a feed with 'max_pages'"),
        ({"path": "/x?a=1"}, "'path' holds '?' or '#'"),
        ({"path": "/x#a"}, "'path' holds '?' or '#'"),
        ({"path": "/a\\b"}, "'path' holds a backslash"),
        ({"path": "/a\nb"}, "'path' holds a backslash or a control character"),
        ({"path": "/a\x7f"}, "'path' holds a backslash or a control character"),
        ({"path": "/../admin"}, "'path' holds the segment"),
        ({"path": "/a/.."}, "'path' holds the segment"),
        ({"path": "/a/./b"}, "'path' holds the segment"),
        ({"path": "/a/%2e%2E/b"}, "'path' holds the segment"),
        ({"path": "/..%2fadmin"}, "'path' holds the segment"),
        ({"path": "/..%5cadmin"}, "'path' holds the segment"),
        ({"pagination": {"type": "page"}, "query": {"page": 1}}, "query parameter 'page' is set by pagination.param"),
        ({"pagination": {"type": "offset", "param": "o"}, "query": {"o": 1}}, "query parameter 'o' is set by"),
        (
            {"pagination": {"type": "offset", "size_param": "n", "size": 5}, "query": {"n": 1}},
            "query parameter 'n' is set by pagination.size_param",
        ),
        ({"pagination": {"type": "page", "param": "n", "size_param": "n", "size": 5}}, "name the same parameter"),
    ],
)
def test_read_options_that_contradict_each_other_are_found(change: dict[str, Any], part: str) -> None:
    """Each rule has its own message."""
    found = messages(BASE, {"path": "/x", **change})
    assert len(found) == 1
    assert part in found[0]


@pytest.mark.parametrize("change", [
    {"path": "/a..b/...c/%20/v1.0/x:y@z"},
    {"path": "//twice"},
    {"pagination": {"type": "cursor", "pointer": "/next", "param": "after"}, "query": {"after": "*"}},
    {"pagination": {"type": "page"}, "query": {"offset": 1, "Page": 2}},
])  # fmt: skip
def test_read_options_that_only_look_wrong_are_fine(change: dict[str, Any]) -> None:
    """Dots inside a name, and the first token of a server that wants one."""
    assert messages(BASE, {"path": "/x", **change}) == []


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"cursor": "id", "cursor_type": "bigint"}, "'cursor' names 'id', but sync.cursor is 'at'"),
        ({}, "only when 'cursor' names it"),
        ({"cursor": "at", "cursor_type": "bigint"}, None),
        ({"columns": {"at": "bigint"}}, None),
    ],
)
def test_cursor_of_raw_records_is_the_one_that_is_synced(options: dict[str, Any], part: str | None) -> None:
    """Without a contract the column has to be named, and named the same in both places."""
    found = messages(BASE, {"path": "/x", **options}, cursor="at")
    assert [message for message in found if part is None or part not in message] == []
    assert len(found) == (part is not None)


def test_key_in_the_query_has_its_parameter_for_itself() -> None:
    """Neither the query nor the pages may use the name of the key's parameter."""
    config = {**BASE, "auth": {"type": "api_key", "key": "k3y", "param": "key"}}
    assert "set by auth.param" in messages(config, {"path": "/x", "query": {"key": 1}})[0]
    cursor = {"type": "cursor", "pointer": "/next", "param": "key"}
    assert "name the same parameter" in messages(config, {"path": "/x", "pagination": cursor})[0]


def test_cursor_mismatch_is_found_before_a_run(factory: ProjectFactory) -> None:
    """Validation knows the cursor of `sync` and the one that a pipeline filters by."""
    from pz_engine import PzValidationError

    raw = "path: /a, cursor: id, cursor_type: bigint"
    factory.connections(
        f"""
        api:
          connector: http
          base_url: https://api.example
          entities:
            a: {{ read: {{ {raw}, sync: {{ mode: incremental, cursor: moved }} }} }}
            b: {{ read: {{ {raw} }} }}
        """
    )
    factory.pipeline("p", "SELECT * FROM {{ source('api', 'a') }}")
    factory.pipeline("q", "SELECT * FROM {{ source('api', 'b') }} WHERE moved > {{ watermark('api', 'b') }}")
    with pytest.raises(PzValidationError) as caught:
        factory.run()
    assert [problem.message.count("sync.cursor is 'moved'") for problem in caught.value.errors] == [1, 1]


@pytest.mark.parametrize(
    "config",
    [
        {"base_url": "ftp://x"},
        {"base_url": "api.example"},
        {"base_url": "https://"},
        {"base_url": "https://user:pw@api.example"},
        {"base_url": "https://api.example/?a=1"},
        {"base_url": "https://[::1"},
        {"base_url": "https://api.example:99999"},
        {"base_url": "https://api.example:0/v1"},
        {"base_url": "https://api.example:pw"},
        {"base_url": "https://api.example/a\nb"},
        {**BASE, "auth": {"type": "bearer", "token": "pw\n"}},
        {**BASE, "auth": {"type": "bearer", "token": " pw"}},
        {**BASE, "auth": {"type": "bearer", "token": "pw\u00e4"}},
        {**BASE, "auth": {"type": "api_key", "header": "X-Key", "key": "pw\r\nX: y"}},
        {**BASE, "auth": {"type": "api_key", "header": "X Key", "key": "pw"}},
        {**BASE, "headers": {"X": "a "}},
        {**BASE, "headers": {"bad header": "x"}},
        {**BASE, "headers": {"X": "a\nb"}},
        {**BASE, "check_path": "health"},
        {**BASE, "check_path": "/health?deep=1"},
        {**BASE, "check_path": "/../health"},
        {**BASE, "allow_hosts": ["https://x/y"]},
    ],
)
def test_connection_that_cannot_work_is_found_without_showing_it(config: dict[str, Any]) -> None:
    """One message, no password in it; the probe says the same without asking anybody."""
    found = messages(config)
    assert len(found) == 1
    assert "pw" not in found[0]
    assert CONNECTOR.check_connection(config, CancelToken()).message == f"permanent: {found[0]}"


@pytest.mark.parametrize(
    ("schema", "options", "is_fine"),
    [
        ("connection_schema", {**BASE, "auth": {"type": "bearer", "token": "t"}}, True),
        ("connection_schema", {**BASE, "auth": {"type": "api_key", "key": "k", "header": "h", "param": "p"}}, False),
        ("connection_schema", {**BASE, "auth": {"type": "api_key", "key": "k"}}, False),
        ("connection_schema", {**BASE, "auth": {"type": "oauth"}}, False),
        ("connection_schema", {**BASE, "timeout_seconds": 0}, False),
        ("connection_schema", {**BASE, "max_response_mb": 4097}, False),
        ("connection_schema", {}, False),
        (
            "read_schema",
            {"path": "/x", "pagination": {"type": "offset", "start": 0, "size_param": "n", "size": 2}},
            True,
        ),
        ("read_schema", {"path": "x"}, False),
        ("read_schema", {"path": "/x", "pagination": {"type": "page", "start": -1}}, False),
        ("read_schema", {"path": "/x", "pagination": {"type": "page", "size": 0, "size_param": "n"}}, False),
        ("read_schema", {"path": "/x", "pagination": {"type": "cursor", "param": "p"}}, False),
        ("read_schema", {"path": "/x", "pagination": "page"}, False),
        ("read_schema", {"path": "/x", "max_pages": 0}, False),
        ("read_schema", {"path": "/x", "query": {"a": ["x"]}}, False),
        ("write_schema", {"path": "/x"}, False),
    ],
)
def test_schemas_are_closed_and_bounded(schema: str, options: dict[str, Any], is_fine: bool) -> None:
    """Wrong shapes and numbers out of bounds are the schema's business."""
    validator = jsonschema.Draft202012Validator(getattr(CONNECTOR, schema))
    validator.check_schema(validator.schema)
    assert validator.is_valid(options) == is_fine


def test_both_surfaces_report_every_mistake_with_its_file(factory: ProjectFactory) -> None:
    """Three mistakes in YAML and at a call come in one go; a sink on the connector is refused."""
    from pz_engine import PzValidationError

    factory.connections(
        """
        api:
          connector: http
          base_url: https://api.example
          entities:
            a: { read: { path: /a, items: data, query: { x: "{{ nothing }}" } } }
        """
    )
    factory.pipeline("p", "SELECT * FROM {{ source('api', 'a') }}")
    factory.pipeline("q", "SELECT * FROM {{ source('api', 'b', path: '/b', cursor: 'x') }}")
    factory.pipeline("r", "INSERT INTO {{ sink('api', 'c') }}\nSELECT 1 AS one")
    with pytest.raises(PzValidationError) as caught:
        factory.run()
    assert sorted((problem.code, problem.file) for problem in caught.value.errors) == [
        ("PZ0301", "connections.yml"),
        ("PZ0301", "connections.yml"),
        ("PZ0301", "pipelines/q.sql"),
        ("PZ0301", "pipelines/r.sql"),
    ]


def test_probe_asks_for_the_check_path_or_knocks() -> None:
    """With a path the answer counts, without one a connection is enough; credentials are in no message."""
    with HttpApi(lambda request: Answer(status=200 if request.path == "/ok" else 401)) as api:
        config = {"base_url": api.url, "auth": {"type": "bearer", "token": "t0ken"}}
        assert CONNECTOR.check_connection({**config, "check_path": "/ok"}, CancelToken()).ok
        refused = CONNECTOR.check_connection({**config, "check_path": "/no"}, CancelToken())
        assert refused.message.startswith("permanent:")
        assert "t0ken" not in refused.message
        assert CONNECTOR.check_connection(config, CancelToken()).ok
    assert CONNECTOR.check_connection(config, CancelToken()).message.startswith("transient:")


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ('<a>; rel="next"', "a"),
        ("<a>; rel=next", "a"),
        ('<a>; rel="prev", <b>; rel="next"', "b"),
        ('<a,b>; title="x;>,<"; rel="last next"', "a,b"),
        ('<a>; REL="NEXT"', "a"),
        ('<a>; rel="nextish"', None),
        ('<a>; title="rel=next"', None),
        ("", None),
        ("<a", None),
        ("a; rel=next", None),
    ],
)
def test_links_are_found_in_any_spelling(header: str, target: str | None) -> None:
    """Quoted or not, in any order, whatever the other parameters hold."""
    assert next_link(header) == target


def test_parts_of_a_document_are_cut_out_as_they_were_written() -> None:
    """Blanks, escapes and number spellings stay; of two equal keys the last counts."""
    text = ' { "a" : [ 1.0 , {"b\\u0063": 1e5 } ], "a": [true ,2.50] , "~/": null}'
    for pointer, expected in (("/a/1", "2.50"), ("", text.strip()), ("/~0~1", "null"), ("/a/2", None), ("/x", None)):
        span = locate(text, pointer_parts(pointer) or ())
        assert (text[span.start : span.end] if span is not None else None) == expected
    with pytest.raises(JsonError):
        decode("{")


@pytest.mark.parametrize(
    "auth",
    [
        {"type": "api_key", "param": "key", "key": "\u00e4\n"},
        {"type": "basic", "user": "\u00e4", "password": "a\u00df "},
    ],
)
def test_credentials_that_are_encoded_may_hold_anything(auth: dict[str, Any]) -> None:
    """Parameters are escaped, and user and password travel as base64."""
    assert messages({**BASE, "auth": auth}) == []
