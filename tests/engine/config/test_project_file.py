"""project.yml: keys, types, bounds, variables and state settings."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_engine.base.durations import format_duration, parse_duration
from pz_engine.config.env_interpolation import has_reference
from pz_engine.config.state_only import load_state_settings
from pz_engine.config.vars_option import parse_vars
from pz_engine.errors.exceptions import PzConfigError, PzValidationError
from pz_engine.model.policies import DriftPolicy

HEAD = "name: demo\nversion: '1'\n"


def found_in(project, body, env=None):
    project.write("project.yml", HEAD + body)
    return project.found(env)


def loaded(project, body="", env=None):
    return project.write("project.yml", HEAD + body).load(env).project


def test_a_minimal_project_has_the_documented_defaults(project):
    """Everything but name and version has a default."""
    settings = loaded(project)
    assert (settings.engine.threads, settings.engine.batch_bytes, settings.engine.fusion) == (4, 33_554_432, True)
    assert settings.retention_keep_last == 10
    assert settings.state.backend == "local"
    assert settings.on_source_drift is DriftPolicy.IGNORE


def test_a_missing_project_file_says_what_to_do(tmp_path, project):
    """Without project.yml the hint names the ways in."""
    (project.directory / "project.yml").unlink()
    (problem,) = project.problems()
    assert (problem.code, problem.file) == ("PZ0101", "project.yml")
    assert "pz init" in problem.hint
    assert "--project" in problem.hint


def test_an_unquoted_version_is_kept_as_typed(project):
    """`version: 1.10` stays `1.10`."""
    project.write("project.yml", "name: demo\nversion: 1.10\n")
    assert project.load().project.version == "1.10"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("version: '1'\n", [("PZ0101", "project.yml")]),
        ("name: demo\nversion:\n", [("PZ0101", "project.yml:2")]),
        ("name: demo\nversion: 1\nengin: {}\n", [("PZ0101", "project.yml:3")]),
        ("name: demo\nversion: 1\noutputs: {}\n", [("PZ0347", "project.yml:3")]),
        ("name: demo\nversion: 1\nfeeds: []\n", [("PZ0352", "project.yml:3")]),
        ("name: demo\nversion: 1\nvars: [a]\n", [("PZ0102", "project.yml:3")]),
        ("name: demo\nversion: 1\non_source_drift: loud\n", [("PZ0126", "project.yml:3")]),
        ("name: demo\nversion: 1\non_source_drift:\n", [("PZ0126", "project.yml:3")]),
        ("name: demo\nversion: 1\nconnectors: x\n", [("PZ0101", "project.yml:3")]),
        ("name: demo\nversion: 1\nconnectors:\n- x\n", [("PZ0101", "project.yml:4")]),
        ("name: demo\nversion: 1\nconnectors:\n- {package: a, version: 1.10}\n", [("PZ0101", "project.yml:4")]),
        (
            "name: demo\nversion: 1\nconnectors:\n- {package: a, version: '1'}\n- {package: a, version: '2'}\n",
            [("PZ0110", "project.yml:5")],
        ),
    ],
)
def test_each_wrong_key_is_named_with_its_line(project, text, expected):
    """A key that is missing, unknown, retired or of the wrong shape is one problem at its line."""
    project.write("project.yml", text)
    assert project.found() == expected


def test_unknown_keys_get_a_near_miss(project):
    """A misspelled key comes with the key that was meant."""
    project.write("project.yml", HEAD + "engin: {}\n")
    assert project.problems()[0].hint == "did you mean 'engine'?"


@pytest.mark.parametrize(
    "line",
    [
        "threads: 0",
        "threads: many",
        "threads: 3000000000",
        "batch_bytes: 100",
        "force_universal: yes",
        "fusion: maybe",
        "check_samples: 1",
        "node_timeout: 0s",
        "node_timeout: 5",
        "breaker:",
        "breaker: 5",
        "parallel: 3",
        "duckdb: fast",
        "duckdb: {memory: 1GB}",
        "duckdb: {threads: x}",
        "duckdb: {allow_extension_download: maybe}",
    ],
)
def test_each_bad_engine_value_is_one_problem(project, line):
    """Every malformed value below `engine:` is one PZ0120."""
    assert found_in(project, f"engine:\n  {line}\n") in ([("PZ0120", "project.yml:4")], [("PZ0120", "project.yml:3")])


def test_all_engine_problems_come_together(project):
    """Several bad values, a half breaker among them, are reported in one go."""
    body = "engine:\n  threads: 0\n  fusion: 3\n  breaker:\n    failure_threshold: 0\n"
    assert [code for code, _ in found_in(project, body)] == ["PZ0120"] * 4


def test_engine_values_are_read(project):
    """Good values arrive, and a key with no body counts as absent."""
    body = """engine:
  threads: 2
  fusion: off
  node_timeout: 90s
  batch_bytes:
  breaker: {failure_threshold: 5, cool_down: 2m}
  duckdb: {memory_limit: 1GB, threads: 3}
"""
    engine = loaded(project, body).engine
    assert (engine.threads, engine.fusion, engine.node_timeout) == (2, False, timedelta(seconds=90))
    assert engine.breaker.cool_down == timedelta(minutes=2)
    assert (engine.duckdb.memory_limit, engine.duckdb.threads) == ("1GB", 3)


@pytest.mark.parametrize(
    ("text", "expected"), [("off", None), ("No", None), ("'FALSE'", None), ("false", None), ("{keep_last: 3}", 3)]
)
def test_retention_can_be_off_or_a_number(project, text, expected):
    """The three words switch retention off in any case, quoted or not."""
    assert loaded(project, f"retention: {text}\n").retention_keep_last == expected


@pytest.mark.parametrize("text", ["{keep_last: 0}", "{}", "", "5", "{keep_last: many}", "{keep: 5}"])
def test_malformed_retention_is_refused(project, text):
    """Anything but off or a whole number of at least 1 is PZ0123."""
    assert {code for code, _ in found_in(project, f"retention: {text}\n")} == {"PZ0123"}


def test_variables_are_interpolated_and_overridden(project):
    """Values below `vars:` see the environment; an override replaces one name whole."""
    project.write("project.yml", HEAD + 'vars:\n  a: ${A}\n  b: {c: ["${A}"]}\n  d: 1\n')
    files = project.load({"A": "5"}, {"d": {"x": 2}, "new": True})
    assert files.project.vars == {"a": 5, "b": {"c": ["5"]}, "d": {"x": 2}, "new": True}


def test_references_outside_vars_stay_literal(project):
    """Nothing else in project.yml is interpolated."""
    project.write("project.yml", "name: ${A}\nversion: '1'\n")
    assert project.load().project.name == "${A}"


@pytest.mark.parametrize("text", ["[1]", "5", "{", '{"a": NaN}', '{"a": 1, "a": 2}', ""])
def test_the_vars_option_is_a_json_object(text):
    """Anything else is PZ0102, and the text is not echoed."""
    with pytest.raises(PzConfigError) as caught:
        parse_vars(text)
    assert caught.value.diagnostic.code == "PZ0102"


@given(st.integers(1, 10**6), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_durations_survive_printing(count, unit):
    """A duration prints in its largest exact unit and reads back as itself."""
    duration = parse_duration(f"{count}{unit}")
    assert parse_duration(format_duration(duration)) == duration


@given(st.text(max_size=8))
def test_other_durations_are_refused(text):
    """Only digits and one unit make a duration; nothing else ever raises."""
    found = parse_duration(text)
    assert found is None or (text[0].isdigit() and text[-1] in "smhd")


@given(st.text(alphabet="${}A b\\", max_size=12))
def test_looking_for_references_never_raises(text):
    """Any text can be asked for references."""
    assert has_reference(text) in {True, False}


class TestState:
    """The `state:` block and its environment."""

    @pytest.mark.parametrize(
        ("body", "env", "code"),
        [
            ("state: secret-dsn\n", {}, "PZ0124"),
            ("state:\n", {}, "PZ0124"),
            ("state: {backend: redis}\n", {}, "PZ0124"),
            ("", {"PZ_STATE_BACKEND": "redis"}, "PZ0124"),
            ("state: {backend: local, url: x}\n", {}, "PZ0124"),
            ("state: {backend: http, url: 'https://h', token: t}\n", {}, "PZ0124"),
            ("state: {backend: http, url: 'https://h', artifacts: true}\n", {}, "PZ0124"),
            ("state: {backend: http, url: 'https://h'}\n", {"PZ_STATE_EVENTS": "true"}, "PZ0124"),
            ("state: {backend: http, url: 'https://h', timeout_seconds: 0}\n", {}, "PZ0124"),
            ("state: {backend: postgres, artifacts: maybe}\n", {"PZ_STATE_CONNECTION_STRING": "x"}, "PZ0124"),
            (
                "state: {backend: postgres, artifacts: false, events: true}\n",
                {"PZ_STATE_CONNECTION_STRING": "x"},
                "PZ0124",
            ),
            ("state: {backend: http}\n", {}, "PZ0125"),
            ("state: {backend: http, url: 'ftp://h'}\n", {}, "PZ0125"),
            ("state: {backend: postgres}\n", {}, "PZ0125"),
            ("state: {backend: postgres, connection: nope}\n", {}, "PZ0125"),
            ("state: {backend: postgres, connection: files}\n", {}, "PZ0125"),
        ],
    )
    def test_each_wrong_block_has_its_code(self, project, body, env, code):
        """Both ways of loading report the same single problem and never echo a value."""
        project.write("connections.yml", "files: {connector: localfiles}\n")
        found = found_in(project, body, env)
        assert [entry for entry, _ in found] == [code]
        with pytest.raises(PzValidationError) as caught:
            load_state_settings(project.directory, env=env)
        assert [problem.code for problem in caught.value.errors] == [code]
        assert "secret-dsn" not in str(caught.value)

    def test_the_environment_fills_only_what_is_not_written(self, project):
        """An explicit key wins over its variable."""
        body = "state: {backend: http, timeout_seconds: 5}\n"
        env = {
            "PZ_STATE_URL": "https://h/x",
            "PZ_STATE_TIMEOUT_SECONDS": "9",
            "PZ_STATE_TOKEN": "tok",
            "PZ_STATE_SCHEMA": " ",
        }
        state = loaded(project, body, env).state
        assert (state.url, state.timeout_seconds, state.token, state.origin) == ("https://h/x", 5, "tok", "project.yml")
        assert "tok" not in repr(state)

    def test_a_token_over_plain_http_is_a_warning(self, project):
        """The connection stays usable; PZ0530 says so."""
        project.write("project.yml", HEAD + "state: {backend: http, url: 'http://h'}\n")
        files = project.load({"PZ_STATE_TOKEN": "t"})
        assert [warning.code for warning in files.warnings] == ["PZ0530"]

    def test_state_alone_ignores_the_rest_of_a_broken_project(self, project):
        """Repair works while everything else is broken."""
        project.write("project.yml", "bogus: 1\nstate: {backend: postgres, connection: db}\n")
        project.write("connections.yml", "db: {connector: postgres, host: h}\nother: 5\n")
        project.sql("bad-name", "select 1")
        assert load_state_settings(project.directory, env={}).connection == "db"
