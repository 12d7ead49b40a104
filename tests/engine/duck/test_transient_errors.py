"""The closed list of native failures that may pass, row by row, and what only looks like one."""

from __future__ import annotations

import pytest

from pz_engine.duck.transient_errors import is_transient_message


@pytest.mark.parametrize(
    "message",
    [
        "HTTP Error: Request returned HTTP 503 for HTTP HEAD to 'http://h/x'",
        "HTTP Error: Unable to connect (HTTP 503)",
        "HTTP 429 Too Many Requests",
        "http 504",
        "IO Error: http\t408",
        "HTTP 500", "HTTP 502", "(HTTP 408)",
        "IO Error: Timeout was reached error for HTTP HEAD to 'http://h/x'",
        'IO Error: Unable to connect to Postgres at "": connection to server failed: Connection refused',
        "IO Error: Could not connect to server error for HTTP HEAD to 'http://h/x'",
        "IO Error: Could not resolve hostname error for HTTP HEAD to 'http://h/x'",
        "IO Error: Failed to connect to MySQL database with parameters \"\": Can't connect to server on 'h'",
        'IO Error: Could not set lock on file "/x/a.duckdb": Conflicting lock is held in python (PID 7)',
        "IO Error: database is locked",
        "connection reset by peer", "Connection Error: x", "could not establish connection", "it TIMED OUT", "timeout",
    ],
)  # fmt: skip
def test_listed_failures_are_transient(message: str) -> None:
    """Whatever the case of the letters."""
    assert is_transient_message(message)


@pytest.mark.parametrize(
    "message",
    [
        "HTTP GET error on 'https://h/500/f' (HTTP 404)",
        "https 503",
        "HTTPS 503",
        "HTTP Error 502",
        "HTTP-500",
        "HTTP 5031",
        "part-00500.parquet",
        "xhttp 503",
        "(HTTP 403 Forbidden)",
        "(HTTP 404 Not Found)",
        "Conversion Error: Could not convert string 'x' to INT32",
        "Catalog Error: Table with name t does not exist!",
        "",
        "Parser Error: syntax error\nLINE 1: select 'connection refused'",
        "Binder Error: no\n   LINE 3: HTTP 503",
    ],
)
def test_everything_else_is_permanent(message: str) -> None:
    """Also when the statement that DuckDB echoes holds such a text."""
    assert not is_transient_message(message)
