"""A sentinel secret planted in each place that can hold one is found in no file, stream, event, plan, journal or trace."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pz_engine.events.types import RunEvent
from pz_engine.testing.http_api import Answer, HttpApi
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ScriptedConnector
from pz_engine.testing.state_server import ScriptedAnswer, StateServer

SENTINEL = "xq7-sentinel-9041"


@dataclass
class Called:
    """What a command printed."""

    code: int
    text: str


def pz(project: ProjectFactory, *arguments: str, **environment: str) -> Called:
    done = subprocess.run(
        [sys.executable, "-m", "pz_engine", *arguments, "--project", str(project.directory)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PZ_DEBUG": "1", **environment},
    )
    return Called(done.returncode, done.stdout + done.stderr)


def holders(project: ProjectFactory) -> list[str]:
    """Files below .pz that hold the sentinel."""
    return sorted(
        path.relative_to(project.directory).as_posix()
        for path in (project.directory / ".pz").rglob("*")
        if path.is_file() and SENTINEL.encode() in path.read_bytes()
    )


VERBS = (
    ("validate",), ("validate", "--connect"), ("plan",), ("ls",), ("run", "--all"),
    ("run", "--all", "--log-format", "json"), ("run", "--all", "-vv"), ("test",), ("runs",), ("state", "show"),
)  # fmt: skip


def every_verb(project: ProjectFactory, **environment: str) -> str:
    """Run each verb that opens the project, in both formats; returns everything printed."""
    printed = [pz(project, *verb, **environment).text for verb in VERBS]
    journals = (project.directory / ".pz" / "journal").glob("*.jsonl")
    return "\n".join(printed + [pz(project, "history", path.stem, **environment).text for path in journals])


@pytest.fixture
def api() -> Iterator[HttpApi]:
    """A service that refuses everybody, and says why with everything it was sent."""

    def echo(request: object) -> Answer:
        headers = getattr(request, "headers", {})
        return Answer(status=403, body={"error": f"{headers} {request}"}, headers={"X-Echo": SENTINEL})

    with HttpApi(echo) as running:
        yield running


CREDENTIALS = {
    "bearer": "auth: { type: bearer, token: '${SECRET}' }",
    "basic": "auth: { type: basic, user: someone, password: '${SECRET}' }",
    "header": "auth: { type: api_key, key: '${SECRET}', header: X-Key }",
    "query": "auth: { type: api_key, key: '${SECRET}', param: key }",
    "static": "headers: { X-Token: '${SECRET}' }",
}


def test_credentials_of_a_connection(factory: ProjectFactory, api: HttpApi) -> None:
    """Bearer token, password, key in a header and in the query, static header; the server echoes all of it."""
    factory.connections(
        "".join(f"{name}:\n  connector: http\n  base_url: {api.url}\n  {text}\n" for name, text in CREDENTIALS.items())
    )
    for name in CREDENTIALS:
        factory.pipeline(
            f"of_{name}",
            f"SELECT * FROM {{{{ source('{name}', 'things', path: '/{name}', columns: {{ id: 'int' }}) }}}}",
        )
    printed = every_verb(factory, SECRET=SENTINEL)
    for name in CREDENTIALS:
        sent = [request for request in api.requests if f"/{name}" in str(request)]
        assert any(SENTINEL in str(request) or "Authorization" in request.headers for request in sent), name
    assert printed.count("403") >= len(CREDENTIALS)
    assert SENTINEL not in printed
    assert holders(factory) == []


def test_address_of_a_connection(factory: ProjectFactory) -> None:
    """A secret in the path of an address, and in its host name, when nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    factory.connections(
        f"api: {{ connector: http, base_url: 'http://127.0.0.1:{port}/${{SECRET}}/v1', retry: {{ base_delay: 1ms }} }}\n"
    )
    factory.pipeline("p", "SELECT * FROM {{ source('api', 'things', path: '/things', columns: { id: 'int' }) }}")
    printed = every_verb(factory, SECRET=SENTINEL)
    assert "cannot be reached" in printed
    assert SENTINEL not in printed
    assert holders(factory) == []


def test_query_of_a_read(factory: ProjectFactory, api: HttpApi) -> None:
    """Values of query parameters are shown as stars."""
    factory.connections(f"api:\n  connector: http\n  base_url: {api.url}\n")
    call = f"source('api', 'things', path: '/things', query: {{ key: '{SENTINEL}' }}, columns: {{ id: 'int' }})"
    factory.pipeline("p", f"SELECT * FROM {{{{ {call} }}}}")
    printed = every_verb(factory)
    assert "key=***" in printed
    assert SENTINEL not in printed
    assert holders(factory) == []


def test_path_that_comes_from_the_environment(factory: ProjectFactory) -> None:
    """A folder named by a variable is shown by the variable's name, in errors of reads and of writes."""
    factory.connections(
        """
        files: { connector: localfiles, root: "../${SECRET}" }
        out: { connector: duckdb, path: "../${SECRET}/missing/out.duckdb" }
        """
    )
    factory.pipeline("p", "SELECT * FROM {{ source('files', 'a', path: 'a.csv', columns: { id: 'int' }) }}")
    factory.pipeline("q", "INSERT INTO {{ sink('out', 't', strategy: 'replace') }}\nSELECT 1 AS one")
    printed = every_verb(factory, SECRET=SENTINEL)
    assert "${SECRET}" in printed
    assert SENTINEL not in printed
    assert holders(factory) == []


def test_variables_literals_and_the_environment_in_sql(factory: ProjectFactory) -> None:
    """`--vars`, `env()` and literals in SQL that fails, whatever DuckDB echoes of them."""
    statements = {
        "a": "SELECT CAST('{{ var('secret') }}' AS INTEGER) AS x",
        "b": "SELECT error('bad: {{ var('secret') }}') AS x",
        "c": "SELECT CAST('{{ env('SECRET') }}' AS DATE) AS x",
        "d": f"SELECT CAST('{SENTINEL}' AS TIMESTAMP) AS x",
        "e": "SELECT json_extract('{\"{{ var('secret') }}', '$') AS x",
        "f": "SELECT strptime('{{ env('SECRET') }}', '%Y') AS x",
    }
    for name, sql in statements.items():
        factory.pipeline(name, sql)
    factory.write("project.yml", 'name: demo\nversion: "1"\nvars: { secret: none }\n')
    options = ("--vars", json.dumps({"secret": SENTINEL}))
    verbs = (("validate",), ("plan",), ("ls",), ("run", "--all"), ("run", "--all", "--log-format", "json"), ("test",))
    printed = [pz(factory, *verb, *options, SECRET=SENTINEL).text for verb in verbs]
    assert "PZ0501" in "\n".join(printed)
    assert SENTINEL not in "\n".join(printed)
    found = [path for path in holders(factory) if "staging.duckdb" not in path]
    assert found == []


def test_rows_that_do_not_fit(factory: ProjectFactory) -> None:
    """A value of the data never appears: not where it does not fit, not in a merge key, not in a check without samples."""
    factory.write("in/a.csv", f"id,name\n{SENTINEL},x\n")
    factory.write("in/b.csv", f"id,name\n{SENTINEL},x\n{SENTINEL},y\n,z\n")
    factory.connections(
        """
        files: { connector: localfiles, root: in }
        out: { connector: duckdb, path: out.duckdb }
        """
    )
    factory.pipeline(
        "a", "SELECT * FROM {{ source('files', 'a', path: 'a.csv', columns: { id: 'int', name: 'varchar' }) }}"
    )
    factory.pipeline(
        "b",
        "INSERT INTO {{ sink('out', 't', strategy: 'merge', keys: ['id']) }}\n"
        "SELECT * FROM {{ source('files', 'b', path: 'b.csv', columns: { id: 'varchar', name: 'varchar' }) }}",
    )
    factory.sidecar("b", "checks:\n  - unique: { columns: [id], sample_values: false }\n")
    printed = every_verb(factory)
    assert "PZ0510" in printed
    assert "PZ0521" in printed
    assert SENTINEL not in printed
    assert [path for path in holders(factory) if "staging.duckdb" not in path] == []


def test_name_of_a_file_stays_out_of_what_is_kept(factory: ProjectFactory) -> None:
    """A message has to name the file that cannot be read; plan, journal, history and state do not repeat it."""
    factory.write(f"in/{SENTINEL}.csv", "id\nx\n")
    factory.connections("files: { connector: localfiles, root: in }\n")
    factory.pipeline("a", "SELECT * FROM {{ source('files', 'a', path: '*.csv', columns: { id: 'int' }) }}")
    printed = pz(factory, "run", "--all").text
    assert f"{SENTINEL}.csv" in printed
    pz(factory, "plan")
    run = next((factory.directory / ".pz" / "runs").iterdir()).name
    assert SENTINEL not in pz(factory, "history", run).text
    kept = [path for path in holders(factory) if "staging.duckdb" not in path]
    assert kept == [f".pz/runs/{run}/run_results.json"]


def test_addresses_and_paths_that_come_whole_from_the_environment(factory: ProjectFactory, tmp_path: Path) -> None:
    """A message that shows the end of an address or of a path shows no part of the variable that gave it."""
    place = tmp_path / "elsewhere" / SENTINEL
    place.mkdir(parents=True)
    (place / "a.csv").write_text("id\nx\n")
    (place / "not_a.duckdb").write_text("garbage")
    environment = {
        "HOOK": f"http://127.0.0.1:9/hooks/{SENTINEL}",
        "FOLDER": str(place),
        "DATABASE": str(place / "not_a.duckdb"),
        "TARGET": f"/proc/{SENTINEL}/x",
    }
    factory.connections(
        "hook: { connector: http, base_url: '${HOOK}', retry: { max_attempts: 1 } }\n"
        "files: { connector: localfiles, root: '${FOLDER}' }\ndb: { connector: duckdb, path: '${DATABASE}' }\n"
        "target: { connector: localfiles, root: '${TARGET}' }\n"
    )
    factory.pipeline("p", "SELECT * FROM {{ source('hook', 'z', path: '/z', columns: { id: 'int' }) }}")
    factory.pipeline("q", "SELECT * FROM {{ source('files', 'a', columns: { id: 'int' }) }}")
    factory.pipeline("r", "SELECT * FROM {{ source('db', 't', columns: { id: 'int' }) }}")
    factory.pipeline("s", "INSERT INTO {{ sink('target', 't', format: 'csv', strategy: 'replace') }} SELECT 1 AS id")
    printed = every_verb(factory, **environment)
    assert printed.count("cannot be reached") > 1
    assert "/${HOOK}" in printed
    assert SENTINEL not in printed
    assert [path for path in holders(factory) if "staging.duckdb" not in path] == []


def test_token_and_address_of_the_state_endpoint(factory: ProjectFactory) -> None:
    """Wrong answers of the endpoint show its host only."""
    factory.pipeline("p", "SELECT 1 AS one")
    factory.write("in/a.csv", "id\n1\n")
    factory.connections("files: { connector: localfiles, root: in }\n")
    factory.pipeline(
        "q",
        "SELECT * FROM {{ source('files', 'a', path: 'a.csv', columns: { id: 'int' }, sync: { mode: 'incremental', cursor: 'id' }) }}",
    )
    with StateServer(token=SENTINEL) as server:
        environment = {
            "PZ_STATE_TOKEN": SENTINEL,
            "PZ_STATE_BACKEND": "http",
            "PZ_STATE_URL": f"{server.url}?k={SENTINEL}",
        }
        printed = every_verb(factory, **environment) if (factory.run(env={}).exit_code == 0) else ""
        environment["PZ_STATE_URL"] = server.url
        server.script.append(ScriptedAnswer(500, body=SENTINEL.encode()))
        printed += pz(factory, "run", "--all", **environment).text
        printed += pz(factory, "run", "--all", **environment).text
        printed += pz(factory, "state", "show", **environment).text
    assert "PZ0518" in printed
    assert "127.0.0.1" in printed
    assert SENTINEL not in printed
    assert holders(factory) == []


def test_exceptions_and_logs_of_a_connector(factory: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign exception, a retried failure and a log line, each with a configured value in its text."""
    monkeypatch.setenv("SECRET", SENTINEL)
    events: list[RunEvent] = []

    def broken(call: object) -> Iterator[object]:
        del call
        raise RuntimeError(f"driver says: password={SENTINEL} refused for 'me'")

    with ScriptedConnector(on_read=broken).installed():  # type: ignore[arg-type]
        factory.connections("api: { connector: scripted, dsn: 'host=h password=${SECRET}' }\n")
        factory.pipeline("p", "SELECT * FROM {{ source('api', 'things') }}")
        outcome = factory.run(events=events)
    assert outcome.exit_code == 1
    texts = [*(str(event) for event in events), *outcome.notes, *(str(result) for result in outcome.results)]
    assert any("password=" in text for text in texts)
    assert not [text for text in texts if SENTINEL in text]
    assert holders(factory) == []


def test_trace_of_an_unexpected_failure(factory: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even with PZ_DEBUG the trace holds code and no configuration."""
    factory.connections(
        "api: { connector: http, base_url: 'http://127.0.0.1:1', auth: { type: bearer, token: '${SECRET}' } }\n"
    )
    factory.pipeline("p", "SELECT * FROM {{ source('api', 'x', path: '/x', columns: { id: 'int' }) }}")
    (factory.directory / ".pz").write_text("in the way")
    called = pz(factory, "run", "--all", SECRET=SENTINEL)
    assert called.code == 3
    assert SENTINEL not in called.text
