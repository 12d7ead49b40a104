"""Tier 3: options against connectors, without leaking a value."""

from __future__ import annotations

import pytest

from pz_engine.connectors import registry
from pz_engine.connectors.api import ConnectorInfo, Finding
from pz_engine.connectors.capabilities import Capability
from pz_engine.errors.exceptions import ConnectorHostError
from pz_engine.validate.tiers import check_connectors

CONNECTION_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["host", "password"],
    "properties": {
        "host": {"type": "string", "minLength": 1},
        "password": {"type": "string", "writeOnly": True},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "ssl": {"type": "boolean"},
        "mode": {"enum": ["fast", "safe"]},
        "auth": {"oneOf": [{"type": "string"}, {"type": "object", "required": ["user"]}]},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    },
}
READ_SCHEMA = {"type": "object", "additionalProperties": False, "properties": {"query": {"type": "string"}}}


class SampleConnector:
    """A connector with every kind of option, that reads but does not write."""

    info = ConnectorInfo("sample", "1")
    capabilities = Capability.NONE
    native_only_reads = False

    def __init__(self):
        self.connection_schema, self.read_schema, self.write_schema = CONNECTION_SCHEMA, READ_SCHEMA, {}
        self.findings, self.seen = [], []

    def validate(self, use):
        self.seen.append(use)
        return self.findings

    def open_source(self, config):
        raise AssertionError


@pytest.fixture
def sample(monkeypatch):
    connector = SampleConnector()
    monkeypatch.setitem(registry._loaded, "sample", connector)
    return connector


def report(project, config, entities=""):
    keys = "".join(f"  {part.strip()}\n" for part in config.split(";") if part.strip())
    project.write("connections.yml", f"c:\n  connector: sample\n{keys}{entities}")
    return check_connectors(project.compile())


OK = "host: h; password: hunter2"


def test_a_good_connection_passes_without_the_schema_library(project, sample):
    """Nothing is found, and the connector sees its options and the project's folder."""
    entities = "  entities:\n    e: {read: {query: select 1, partitions: 4, columns: {a: int}}}\n"
    found = report(project, OK + "; port: 5432; ssl: true; mode: fast; tags: [a]", entities)
    assert (found.errors, found.warnings, found.notes) == ((), (), ())
    (use,) = sample.seen
    assert use.reads == {"e": {"query": "select 1", "columns": {"a": "int"}}}
    assert use.base_dir == project.directory


@pytest.mark.parametrize(
    ("config", "message", "hint"),
    [
        ("password: hunter2", "the required option 'host' is missing", "add host"),
        (OK + "; prot: 1", "unknown option 'prot'", "did you mean 'port'?"),
        (OK + "; zzz: 1", "unknown option 'zzz'", "accepted: auth"),
        (OK + "; port: many", "option 'port' must be a whole number", "without quotes"),
        (OK + "; port: 0", "must be at least 1", "raise it"),
        (OK + "; port: 99999", "must be at most 65535", "lower it"),
        (OK + "; ssl: yes", "must be true or false", "only lowercase true and false"),
        (OK + "; ssl: True", "must be true or false", "only lowercase true and false"),
        (OK + "; mode: fsat", "must be one of fast, safe", "write mode: fast"),
        (OK + "; tags: []", "may not be empty", "give it a value"),
        (OK + "; tags: [1]", "option 'tags.0' must be text", "in quotes"),
        (OK + "; tags: {a: b}", "option 'tags' must be a list", "write tags as a list"),
        (OK + "; auth: 5", "option 'auth' is not in an accepted form", "reference"),
        ("host: ''; password: hunter2", "option 'host' may not be empty", "give it a value"),
        ("host: 5; password: hunter2", "option 'host' must be text", "in quotes"),
    ],
)
def test_each_misfit_is_one_problem_without_its_value(project, sample, config, message, hint):
    """The key and the rule are named at the key's line, the value never is; what is missing has no line of its own."""
    (problem,) = report(project, config).errors
    keys = ["c", "connector", *(part.strip().partition(":")[0] for part in config.split(";"))]
    option = problem.message.partition("option '")[2].partition("'")[0].partition(".")[0]
    line = 1 if "missing" in message else keys.index(option) + 1
    assert (problem.code, problem.place) == ("PZ0301", f"connections.yml:{line}")
    assert message in problem.message
    assert hint in problem.hint
    assert "hunter2" not in f"{problem}"


def test_nested_options_and_a_connector_s_own_words_are_placed(project, sample):
    """A key inside a mapping has its own line; a finding is placed at the option that it names in quotes."""
    sample.findings = [Finding("the 'query' of 'e' is odd", entity="e"), Finding("something is odd", entity="e")]
    text = "c:\n  connector: sample\n  host: h\n  password: hunter2\n  auth:\n    name: x\n"
    project.write("connections.yml", text + "  entities:\n    e:\n      read:\n        query: select 1\n")
    assert [p.place for p in check_connectors(project.compile()).errors] == [
        "connections.yml:5", "connections.yml:9", "connections.yml:10",
    ]  # fmt: skip


def test_each_missing_option_is_its_own_problem(project, sample):
    """Two missing options are two problems; the connector's own word on them is not repeated."""
    sample.findings = [Finding("option 'host' is missing"), Finding("the 'port' is odd")]
    assert [p.message.partition(": ")[2] for p in report(project, "ssl: true").errors] == [
        "the required option 'host' is missing",
        "the required option 'password' is missing",
        "the 'port' is odd",
    ]


def test_sides_are_named_where_they_are_declared(project, sample):
    """A side's problem points at connections.yml, or at the call's file and line."""
    project.sql("p", "select 1 from {{ source('c', 'f', qury: 'x') }}")
    problems = report(project, OK, "  entities:\n    e:\n      read: {qury: x}\n").errors
    assert [(p.code, p.place) for p in problems] == [("PZ0301", "connections.yml:7"), ("PZ0301", "pipelines/p.sql:1")]
    assert problems[0].hint == "did you mean 'query'?"


def test_a_connector_that_cannot_write_says_so(project, sample):
    """An output of a read-only connector is refused at its call."""
    project.sql("p", "INSERT INTO {{ sink('c', 'e', anything: 1) }} select 1")
    (problem,) = report(project, OK).errors
    assert (problem.code, problem.place) == ("PZ0301", "pipelines/p.sql:1")
    assert "cannot write" in problem.message


def test_findings_keep_their_codes_and_warnings_become_advice(project, sample):
    """A connector's finding has its own code; a warning is PZ0364."""
    sample.findings = [
        Finding("leaves the root", "PZ0365", entity="e", hint="stay inside"),
        Finding("old server", is_warning=True),
    ]
    found = report(project, OK, "  entities:\n    e:\n      read:\n")
    assert [(p.code, p.place, p.hint) for p in found.errors] == [("PZ0365", "connections.yml:7", "stay inside")]
    assert [(w.code, w.severity.value) for w in found.warnings] == [("PZ0364", "warning")]


def test_a_connector_that_fails_to_validate_is_a_problem_not_a_crash(project, sample, monkeypatch):
    """Whatever a connector raises becomes one problem that names the exception only."""

    def fail(use):
        raise RuntimeError("hunter2")

    monkeypatch.setattr(sample, "validate", fail)
    (problem,) = report(project, OK).errors
    assert "RuntimeError" in problem.message
    assert "hunter2" not in problem.message


def test_unknown_connectors_list_the_known_ones(project):
    """PZ0305 names what there is, with a near miss."""
    project.write("connections.yml", "c: {connector: localfile}\n")
    (problem,) = check_connectors(project.compile()).errors
    assert (problem.code, problem.line, problem.hint) == ("PZ0305", 1, "did you mean 'localfiles'?")
    assert "duckdb" in problem.message


def test_reserved_keys_in_a_schema_are_refused_once(project, sample, monkeypatch):
    """Two connections of one connector give one PZ0345."""
    monkeypatch.setattr(sample, "connection_schema", {"properties": {"retry": {}}})
    project.write("connections.yml", "a: {connector: sample}\nb: {connector: sample}\n")
    assert [p.code for p in check_connectors(project.compile()).errors] == ["PZ0345"]


def test_a_connector_that_does_not_load_keeps_its_code(project, monkeypatch):
    """A hosting problem is reported like any other."""

    def fail(name):
        raise ConnectorHostError("PZ0306", f"connector {name} was built for another contract", hint="update it")

    monkeypatch.setattr("pz_engine.validate.connector_config.find_connector", fail)
    project.write("connections.yml", "c: {connector: other}\n")
    assert [(p.code, p.place) for p in check_connectors(project.compile()).errors] == [("PZ0306", "connections.yml:1")]


def test_engine_owned_keys_are_never_unknown(project):
    """Keys that pz owns pass for every connector."""
    project.write(
        "connections.yml",
        "c:\n  connector: localfiles\n  max_concurrency: 2\n  entities:\n    e:\n      read: {path: x.csv, partitions: 2, partition_column: id, "
        "files_per_partition: 5, columns: {u: date}, retry: {max_attempts: 2}, sync: {mode: incremental, cursor: u}}\n"
        "      write: {path: y.csv, format: csv, strategy: replace, schema_policy: fail_on_change, retry: {max_attempts: 2}}\n",
    )
    assert check_connectors(project.compile()).errors == ()
