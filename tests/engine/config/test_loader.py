"""Loading a whole project: discovery, sidecars, checks, and all problems at once."""

from __future__ import annotations

import pytest

from pz_engine.model.checks import CheckType
from pz_engine.model.policies import Materialization


def test_pipelines_are_found_recursively_in_path_order(project):
    """Folders are not part of the name, and files below `configs` are no pipelines."""
    project.sql("b/two", "select 2").sql("one", "select 1").sql("configs/no", "x").sql("b/configs/no", "x")
    assert [(p.name, p.file) for p in project.load().pipelines] == [
        ("two", "pipelines/b/two.sql"),
        ("one", "pipelines/one.sql"),
    ]


def test_line_ends_become_lf(project):
    """Windows line ends and a byte-order mark are normalised."""
    project.sql("one", "\ufeffselect 1\r\nfrom t\r")
    assert project.load().pipelines[0].text == "select 1\nfrom t\n"


def test_two_files_with_one_stem_clash(project):
    """The second one is PZ0110 and names both."""
    project.sql("a/x", "select 1").sql("b/x", "select 1")
    (problem,) = project.problems()
    assert (problem.code, problem.file) == ("PZ0110", "pipelines/b/x.sql")
    assert "pipelines/a/x.sql" in problem.message


@pytest.mark.parametrize(("name", "suggestion"), [("01_load", "load_01"), ("my-pipe", "my_pipe"), ("a b", "a_b")])
def test_pipeline_names_are_identifiers(project, name, suggestion):
    """Another name is PZ0136 with a legal rename."""
    project.sql(name, "select 1")
    (problem,) = project.problems()
    assert problem.code == "PZ0136"
    assert suggestion in problem.hint


def test_other_yaml_extensions_are_only_warned_about(project):
    """Files that end in .yaml are not read."""
    project.write("connections.yaml", "x").write("project.yaml", "x").write("pipelines/configs/a.yaml", "x")
    assert sorted((w.code, w.file) for w in project.load().warnings) == [
        ("PZ0135", "connections.yaml"),
        ("PZ0135", "pipelines/configs/a.yaml"),
        ("PZ0135", "project.yaml"),
    ]


def test_sidecars_outside_their_folder_are_warned_about(project):
    """A YAML file beside the pipelines, and in a folder below theirs, would be left out without a word."""
    project.sql("one", "select 1")
    for path in ("pipelines/one.yml", "pipelines/marts/two.yaml", "pipelines/marts/configs/three.yml"):
        project.write(path, "pipeline: one\nchecks:\n  - not_null: id\n")
    assert sorted((w.code, w.file, w.hint) for w in project.load().warnings) == [
        ("PZ0135", "pipelines/marts/configs/three.yml", "move it to pipelines/configs/three.yml"),
        ("PZ0135", "pipelines/marts/two.yaml", "move it to pipelines/configs/two.yml"),
        ("PZ0135", "pipelines/one.yml", "move it to pipelines/configs/one.yml"),
    ]


def test_retired_folders_are_refused_file_by_file(project):
    """Each YAML file of `sources/` is one problem, and an empty `sinks/` one for the folder."""
    project.write("sources/erp.yml", "x: 1").write("sources/crm.yaml", "x: 1")
    (project.directory / "sinks").mkdir()
    problems = project.problems()
    assert [(p.code, p.file) for p in problems] == [
        ("PZ0346", "sinks"),
        ("PZ0346", "sources/crm.yaml"),
        ("PZ0346", "sources/erp.yml"),
    ]
    assert "erp:" in problems[2].hint


def test_a_sidecar_configures_its_pipeline(project):
    """Materialization, tags and checks arrive; the file's name does not matter."""
    project.sql("one", "select 1")
    project.write(
        "pipelines/configs/other.yml",
        """pipeline: one
materialization: view
tags: [daily, 5, daily]
checks:
  - not_null: [id, email]
  - unique: {column: id, sample_values: false}
  - row_count: {min: 1}
  - freshness: {column: u, max_age: 24h}
  - accepted_values: {columns: [s], values: [a, 1, true]}
  - custom_sql: {name: no_orphans, sql: select 1 where false}
""",
    )
    sidecar = project.load().sidecars["one"]
    assert (sidecar.materialization, sidecar.is_materialization_explicit) == (Materialization.VIEW, True)
    assert sidecar.tags == ("daily", "5")
    assert [check.type for check in sidecar.checks] == list(CheckType)
    assert sidecar.checks[1].columns == ("id",)
    assert sidecar.checks[1].sample_values is False
    assert sidecar.checks[4].options == {"values": ["a", 1, True]}
    assert sidecar.checks[0].line == 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a\n", [("PZ0101", 1)]),
        ("tags: [x]\n", [("PZ0111", None)]),
        ("pipeline: onne\n", [("PZ0111", 1)]),
        ("pipeline: one\nmaterialization: Table\n", [("PZ0134", 2)]),
        ("pipeline: one\nowner: me\n", [("PZ0101", 2)]),
        ("pipeline: one\ntags: daily\n", [("PZ0101", 2)]),
        ("pipeline: one\nchecks: {a: b}\n", [("PZ0113", 2)]),
    ],
)
def test_each_malformed_sidecar_has_its_code(project, text, expected):
    """Every rule of a sidecar is one problem at its line."""
    project.sql("one", "select 1").write("pipelines/configs/s.yml", text)
    places = [
        (c, "pipelines/configs/s.yml" if line is None else f"pipelines/configs/s.yml:{line}") for c, line in expected
    ]
    assert project.found() == places


def test_two_sidecars_for_one_pipeline_clash(project):
    """The second file is PZ0110."""
    project.sql("one", "select 1").write("pipelines/configs/a.yml", "pipeline: one\n")
    project.write("pipelines/configs/b.yml", "pipeline: one\n")
    assert project.found() == [("PZ0110", "pipelines/configs/b.yml:1")]


@pytest.mark.parametrize(
    "check",
    [
        "not_nul: [id]",
        "not_null:",
        "not_null: id",
        "not_null: {columns: [id], limit: 5}",
        "not_null: {column: id, columns: [id]}",
        "not_null: {column: ''}",
        "not_null: {columns: id}",
        "not_null: [id, ID]",
        "not_null: {column: id, sample_values: yes}",
        "unique: []",
        "row_count: {}",
        "row_count: {min: 2, max: 1}",
        "row_count: {min: 1.5}",
        "row_count: {min: 1, column: id}",
        "freshness: {column: u}",
        "freshness: {columns: [a, b], max_age: 1h}",
        "freshness: {column: u, max_age: 0s}",
        "accepted_values: {column: s, values: []}",
        "accepted_values: {column: s, values: [[a]]}",
        "custom_sql: {name: Bad, sql: select 1}",
        "custom_sql: {name: ok, sql: ' ; '}",
        "{not_null: [id], unique: [id]}",
    ],
)
def test_each_malformed_check_is_one_problem(project, check):
    """Whatever is wrong with a check, it is reported once, as PZ0113 at its line."""
    project.sql("one", "select 1").write("pipelines/configs/s.yml", f"pipeline: one\nchecks:\n  - {check}\n")
    assert project.found() == [("PZ0113", "pipelines/configs/s.yml:3")]


@pytest.mark.parametrize(
    "checks",
    [
        "  - not_null: [id]\n  - not_null: {column: id}\n",
        "  - custom_sql: {name: a, sql: select 1}\n  - custom_sql: {name: a, sql: select 2}\n",
    ],
)
def test_repeated_checks_are_refused(project, checks):
    """The same check, or the same custom name, twice on one pipeline is PZ0113 on the second."""
    project.sql("one", "select 1").write("pipelines/configs/s.yml", f"pipeline: one\nchecks:\n{checks}")
    assert project.found() == [("PZ0113", "pipelines/configs/s.yml:4")]


def test_mistakes_in_several_files_come_together(project):
    """One broken file never hides another."""
    project.write("project.yml", "name: demo\nversion: 1\nengine: {threads: 0}\n")
    project.write("connections.yml", "c: [\n").sql("bad-name", "select 1").sql("one", "select 1")
    project.write("pipelines/configs/s.yml", "pipeline: two\n")
    assert [code for code, _ in project.found()] == ["PZ0101", "PZ0136", "PZ0111", "PZ0120"]


def test_a_project_without_anything_else_loads(project):
    """Neither connections nor pipelines are required."""
    files = project.load()
    assert (dict(files.connections), files.pipelines, dict(files.sidecars)) == ({}, (), {})
