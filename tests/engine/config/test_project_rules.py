"""project.yml row by row: every key with its bounds, its words and its code."""

from __future__ import annotations

import pytest

from pz_engine.config.state_only import load_state_settings
from pz_engine.config.vars_option import parse_vars
from pz_engine.errors.exceptions import PzConfigError, PzValidationError

HEAD = "name: demo\nversion: '1'\n"
REFUSED = [
    ("name: ''\nversion: 1\n", "PZ0101:1"),
    ("name: ' '\nversion: 1\n", "PZ0101:1"),
    ("name:\nversion: 1\n", "PZ0101:1"),
    ("name: [a]\nversion: 1\n", "PZ0101:1"),
    ("name: true\nversion: 1\n", "PZ0101:1"),
    ("name: a\nversion: {}\n", "PZ0101:2"),
    (HEAD + "pz: [1]\n", "PZ0101:3"),
    (HEAD + "flows: {}\n", "PZ0101:3"),
    (HEAD + "retry: {}\n", "PZ0101:3"),
    (HEAD + "concurrency: 4\n", "PZ0101:3"),
    (HEAD + "memory: 1GB\n", "PZ0101:3"),
    (HEAD + "schema: x\n", "PZ0101:3"),
    (HEAD + "outputs:\n", "PZ0347:3"),
    (HEAD + "feeds:\n  - x\n", "PZ0352:3"),
    (HEAD + "connectors: {package: a, version: '1'}\n", "PZ0101:3"),
    (HEAD + "connectors:\n  - {package: a, version: '1', hash: x}\n", "PZ0101:4"),
    (HEAD + "connectors:\n  - {version: '1'}\n", "PZ0101:4"),
    (HEAD + "connectors:\n  - {package: a}\n", "PZ0101:4"),
    (HEAD + "connectors:\n  - package: a\n    version: 1.10\n", "PZ0101:5"),
    (HEAD + "connectors:\n  - package: a\n    version: 2\n", "PZ0101:5"),
    (HEAD + "connectors:\n  - package: a\n    version: '2'\n  - package: a\n    version: '2'\n", "PZ0110:6"),
    (HEAD + "vars: text\n", "PZ0102:3"),
    (HEAD + "vars: [a]\n", "PZ0102:3"),
    (HEAD + "engine: fast\n", "PZ0120:3"),
    (HEAD + "engine:\n  threads: 0\n", "PZ0120:4"),
    (HEAD + "engine:\n  threads: 2147483648\n", "PZ0120:4"),
    (HEAD + "engine:\n  threads: 1.0\n", "PZ0120:4"),
    (HEAD + "engine:\n  threads: '4'\n", "PZ0120:4"),
    (HEAD + "engine:\n  threads: true\n", "PZ0120:4"),
    (HEAD + "engine:\n  batch_bytes: 1048575\n", "PZ0120:4"),
    (HEAD + "engine:\n  batch_bytes: 536870913\n", "PZ0120:4"),
    (HEAD + "engine:\n  force_universal: True\n", "PZ0120:4"),
    (HEAD + "engine:\n  fusion: yes\n", "PZ0120:4"),
    (HEAD + "engine:\n  check_samples: 'true'\n", "PZ0120:4"),
    (HEAD + "engine:\n  node_timeout: 0s\n", "PZ0120:4"),
    (HEAD + "engine:\n  node_timeout: 1m30s\n", "PZ0120:4"),
    (HEAD + "engine:\n  node_timeout: 1.5m\n", "PZ0120:4"),
    (HEAD + "engine:\n  node_timeout: -5s\n", "PZ0120:4"),
    (HEAD + "engine:\n  node_timeout: 5 s\n", "PZ0120:4"),
    (HEAD + "engine:\n  node_timeout: 5S\n", "PZ0120:4"),
    (HEAD + "engine:\n  node_timeout: 99999999999999999999d\n", "PZ0120:4"),
    (HEAD + "engine:\n  workers: 4\n", "PZ0120:4"),
    (HEAD + "engine:\n  duckdb: []\n", "PZ0120:4"),
    (HEAD + "engine:\n  duckdb:\n    memory_limit: {}\n", "PZ0120:5"),
    (HEAD + "engine:\n  duckdb:\n    memory_limit: true\n", "PZ0120:5"),
    (HEAD + "engine:\n  duckdb:\n    threads: 0\n", "PZ0120:5"),
    (HEAD + "engine:\n  duckdb:\n    temp_directory: []\n", "PZ0120:5"),
    (HEAD + "engine:\n  duckdb:\n    allow_extension_download: on\n", "PZ0120:5"),
    (HEAD + "engine:\n  duckdb:\n    max_memory: 1GB\n", "PZ0120:5"),
    (HEAD + "engine:\n  breaker: off\n", "PZ0120:4"),
    (HEAD + "engine:\n  breaker: {}\n", "PZ0120:4 PZ0120:4"),
    (HEAD + "engine:\n  breaker:\n    cool_down: 30s\n", "PZ0120:5"),
    (HEAD + "engine:\n  breaker:\n    failure_threshold: 5\n", "PZ0120:5"),
    (HEAD + "engine:\n  breaker:\n    failure_threshold: 0\n    cool_down: 0s\n", "PZ0120:5 PZ0120:6"),
    (HEAD + "engine:\n  breaker: {failure_threshold: 2147483648, cool_down: 1s}\n", "PZ0120:4"),
    (HEAD + "engine:\n  breaker: {failure_threshold: 1, cool_down: 1s, per: x}\n", "PZ0120:4"),
    (HEAD + "retention: on\n", "PZ0123:3"),
    (HEAD + "retention: true\n", "PZ0123:3"),
    (HEAD + "retention: [5]\n", "PZ0123:3"),
    (HEAD + "retention:\n  keep_last: -1\n", "PZ0123:4"),
    (HEAD + "retention:\n  keep_last: '5'\n", "PZ0123:4"),
    (HEAD + "retention:\n  keep_last:\n", "PZ0123:4"),
    (HEAD + "retention:\n  keep_lats: 5\n", "PZ0123:4"),
    (HEAD + "retention:\n  keep_last: 5\n  days: 3\n", "PZ0123:5"),
    (HEAD + "state: [local]\n", "PZ0124:3"),
    (HEAD + "state:\n  backend:\n", "PZ0124:4"),
    (HEAD + "state:\n  backend: Local\n", "PZ0124:4"),
    (HEAD + "state:\n  backend: local\n  schema: pz\n", "PZ0124:5"),
    (HEAD + "state:\n  backend: local\n  token: x\n", "PZ0124:5"),
    (HEAD + "state:\n  backend: postgres\n  connection: db\n  url: 'https://h'\n", "PZ0124:6"),
    (HEAD + "state:\n  backend: postgres\n  connection: [db]\n", "PZ0124:5"),
    (HEAD + "state:\n  backend: sqlserver\n  connection: db\n", "PZ0125:5"),
    (HEAD + "state:\n  backend: postgres\n", "PZ0125:4"),
    (HEAD + "state:\n  backend: http\n", "PZ0125:4"),
    (HEAD + "state:\n  backend: http\n  url: https:///path\n", "PZ0125:5"),
    (HEAD + "state:\n  backend: http\n  url: 'https://h:port'\n", "PZ0125:5"),
    (HEAD + "state:\n  backend: http\n  url: 5\n", "PZ0125:5"),
    (HEAD + "state:\n  backend: http\n  url: 'https://h'\n  schema: x\n", "PZ0124:6"),
    (HEAD + "state:\n  backend: http\n  url: 'https://h'\n  events: true\n", "PZ0124:6"),
    (HEAD + "state:\n  backend: http\n  url: 'https://h'\n  artifacts: true\n  events: true\n", "PZ0124:6 PZ0124:7"),
    (HEAD + "state:\n  backend: http\n  url: 'https://h'\n  timeout_seconds: 1.5\n", "PZ0124:6"),
    (HEAD + "on_source_drift: Fail\n", "PZ0126:3"),
    (HEAD + "on_source_drift: [warn]\n", "PZ0126:3"),
]


@pytest.mark.parametrize(("text", "expected"), REFUSED)
def test_each_wrong_value_is_refused_at_its_line(project, text, expected):
    """Exactly the listed problems are found, each with its code and line, and each says what to do."""
    project.write("project.yml", text).write("connections.yml", "db: {connector: postgres}\n")
    problems = project.problems()
    assert " ".join(f"{problem.code}:{problem.line}" for problem in problems) == expected
    assert {problem.file for problem in problems} == {"project.yml"}
    assert all(problem.hint for problem in problems)


@pytest.mark.parametrize(
    "body",
    [
        "pz: '>=1'\n",
        "pz: 1.2\n",
        "connectors: []\n",
        "connectors:\n  - {package: a, version: '1.10'}\n  - {package: b, version: '1.10'}\n",
        "vars: {a: [1, {b: c}], 5: x, '': y}\n",
        "engine: {threads: 1, batch_bytes: 1048576, fusion: true}\n",
        "engine: {threads: 2147483647, batch_bytes: 536870912, fusion: on, node_timeout: 1ms}\n",
        "engine: {duckdb: {memory_limit: 1000, threads: 1, temp_directory: spill, allow_extension_download: true}}\n",
        "engine: {breaker: {failure_threshold: 2147483647, cool_down: 36500d}}\n",
        "retention: {keep_last: 1}\n",
        "retention: OFF\n",
        "state: {}\n",
        "state: {backend: local}\n",
        "state: {backend: postgres, connection: db, schema: other, artifacts: false}\n",
        "state: {backend: postgres, connection: db, events: true}\n",
        "state: {backend: http, url: 'HTTPS://h:8443/x', timeout_seconds: 1, artifacts: false, events: false}\n",
        "on_source_drift: fail\n",
    ],
)
def test_values_at_the_limits_are_accepted(project, body):
    """What the tables allow loads without a problem."""
    project.write("project.yml", HEAD + body).write("connections.yml", "db: {connector: postgres}\n")
    assert project.load().project.name == "demo"


@pytest.mark.parametrize(
    "body",
    [
        "connectors:\n",
        "vars:\n",
        "engine:\n",
        "pz:\n",
        "engine: {threads: , batch_bytes: , force_universal: , fusion: , check_samples: , node_timeout: , duckdb: }\n",
        "engine: {duckdb: {memory_limit: , threads: , temp_directory: , allow_extension_download: }}\n",
        "state: {backend: http, url: , timeout_seconds: , artifacts: , events: }\n",
    ],
)
def test_these_keys_may_have_no_body(project, body):
    """A key with no body counts as absent."""
    bare = project.load({"PZ_STATE_URL": "https://h"}).project
    project.write("project.yml", HEAD + body)
    loaded = project.load({"PZ_STATE_URL": "https://h"}).project
    assert (loaded.engine, loaded.vars, loaded.connectors, loaded.pz) == (bare.engine, {}, (), None)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("name", "PZ0101"),
        ("version", "PZ0101"),
        ("retention", "PZ0123"),
        ("state", "PZ0124"),
        ("on_source_drift", "PZ0126"),
        ("engine: {breaker: }\n#", "PZ0120"),
        ("engine: {breaker: {failure_threshold: , cool_down: 1s}}\n#", "PZ0120"),
    ],
)
def test_these_keys_need_a_body(project, key, code):
    """A key with no body is malformed where an empty value has no meaning."""
    lines = {"name": "demo", "version": "1"}
    lines[key] = ""
    project.write("project.yml", "".join(f"{name}: {value}\n" for name, value in lines.items()))
    assert [found for found, _ in project.found()] == [code]


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("outputs: {}\n", "sink("),
        ("feeds: []\n", "pip"),
        ("retentoin: off\n", "did you mean 'retention'?"),
        ("engine: {thread: 4}\n", "did you mean 'threads'?"),
        ("engine: {duckdb: {memory_limits: 1GB}}\n", "did you mean 'memory_limit'?"),
        ("retention: {keeplast: 5}\n", "did you mean 'keep_last'?"),
        ("on_source_drift: warning\n", "did you mean 'warn'?"),
        ("state: {backend: postgress}\n", "did you mean 'postgres'?"),
        ("state: {backend: http, url: 'https://h', token: x}\n", "PZ_STATE_TOKEN"),
        ("connectors: [{package: a, version: 1.10}]\n", 'version: "1.10"'),
        ("engine: {zzz: 1}\n", "accepted keys: threads, batch_bytes"),
    ],
)
def test_hints_say_what_to_write(project, body, hint):
    """A retired or misspelled key comes with what to write instead."""
    project.write("project.yml", HEAD + body)
    (problem,) = project.problems()
    assert hint in problem.hint


def test_no_value_of_the_state_block_is_shown(project):
    """A connection string in the wrong place stays out of messages and hints."""
    secret = "Server=db;Password=hunter2"
    for body in (
        f"state: '{secret}'\n",
        f"state: {{backend: '{secret}'}}\n",
        f"state: {{backend: postgres, connection: '{secret}'}}\n",
        f"state: {{backend: http, url: '{secret}'}}\n",
    ):
        project.write("project.yml", HEAD + body)
        (problem,) = project.problems()
        assert problem.code in {"PZ0124", "PZ0125"}
        assert "hunter2" not in str(problem)


def test_a_broken_state_connection_is_one_problem(project):
    """The connection's own mistake is reported, and not that it does not exist."""
    project.write("project.yml", HEAD + "state: {backend: postgres, connection: db}\n")
    project.write("connections.yml", "db: 5\n")
    assert project.found() == [("PZ0101", "connections.yml:1")]


@pytest.mark.parametrize(
    ("env", "code"),
    [
        ({"PZ_STATE_BACKEND": "http", "PZ_STATE_URL": "https://h", "PZ_STATE_TIMEOUT_SECONDS": "soon"}, "PZ0124"),
        ({"PZ_STATE_BACKEND": "http", "PZ_STATE_URL": "https://h", "PZ_STATE_TIMEOUT_SECONDS": "0"}, "PZ0124"),
        ({"PZ_STATE_BACKEND": "http", "PZ_STATE_URL": "https://h", "PZ_STATE_EVENTS": "maybe"}, "PZ0124"),
        ({"PZ_STATE_BACKEND": "http", "PZ_STATE_URL": "https://h", "PZ_STATE_ARTIFACTS": "1"}, "PZ0124"),
        ({"PZ_STATE_BACKEND": "http", "PZ_STATE_URL": "h/x"}, "PZ0125"),
        ({"PZ_STATE_BACKEND": "http", "PZ_STATE_URL": "https://h", "PZ_STATE_TOKEN": "t0k3n\n"}, "PZ0125"),
        ({"PZ_STATE_BACKEND": "http", "PZ_STATE_URL": "https://h", "PZ_STATE_TOKEN": "t\u00f6ken"}, "PZ0125"),
        ({"PZ_STATE_BACKEND": "http", "PZ_STATE_URL": "https://h:99999"}, "PZ0125"),
        ({"PZ_STATE_BACKEND": "http", "PZ_STATE_URL": "  "}, "PZ0125"),
        ({"PZ_STATE_BACKEND": "postgres"}, "PZ0125"),
    ],
)
def test_the_environment_is_checked_like_the_file(project, env, code):
    """A bad variable is one problem, whichever verb reads it."""
    assert [found for found, _ in project.found(env)] == [code]
    with pytest.raises(PzValidationError) as caught:
        load_state_settings(project.directory, env=env)
    assert [problem.code for problem in caught.value.errors] == [code]


def test_each_setting_of_state_comes_from_the_file_then_the_environment_then_the_default(project):
    """Resolution is key by key, and a blank variable counts as unset."""
    env = {
        "PZ_STATE_BACKEND": "postgres", "PZ_STATE_SCHEMA": "other", "PZ_STATE_EVENTS": "true",
        "PZ_STATE_CONNECTION_STRING": "dsn", "PZ_STATE_ARTIFACTS": " ",
    }  # fmt: skip
    state = project.load(env).project.state
    assert (state.backend, state.origin) == ("postgres", "PZ_STATE_BACKEND")
    assert (state.schema, state.artifacts, state.events, state.connection) == ("other", True, True, None)
    project.write("project.yml", HEAD + "state: {backend: sqlserver, schema: own, events: false}\n")
    state = project.load(env).project.state
    assert (state.backend, state.origin, state.schema, state.events) == ("sqlserver", "project.yml", "own", False)


@pytest.mark.parametrize("text", ['{"a": 1e999}', '{"a": "\\ud800"}', "[" * 100_000, '{"a":' * 5000, "null"])
def test_a_vars_option_that_is_no_object_of_real_values_is_refused(text):
    """Numbers that are infinite, half characters and endless nesting are `PZ0102` too."""
    with pytest.raises(PzConfigError) as caught:
        parse_vars(text)
    assert caught.value.diagnostic.code == "PZ0102"


def test_the_vars_option_replaces_whole_values(project):
    """There is no deep merge, an undeclared name is allowed, and whole numbers are integers."""
    project.write("project.yml", HEAD + "vars: {a: {x: 1, y: 2}, b: 1}\n")
    found = project.load({}, parse_vars('{"a": {"x": 9.0}, "c": [1.5, 2.0]}')).project.vars
    assert found == {"a": {"x": 9}, "b": 1, "c": [1.5, 2]}
    assert isinstance(found["a"]["x"], int)
