"""The shipped JSON Schemas: current, complete, and true to every project we have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from schema_documents import as_editor, problems_of, validator

from pz_engine.config import json_schema
from pz_engine.config.connection_keys import CONNECTION_BLOCK, READ_BLOCK, WRITE_BLOCK
from pz_engine.config.json_schema import SCHEMA_NAMES, render_schema, schema_file
from pz_engine.config.project_keys import DUCKDB_BLOCK, ENGINE_BLOCK, PROJECT
from pz_engine.config.sidecar_keys import SIDECAR

ROOT = Path(__file__).parents[3]
NAMES = {"project.yml": "project", "connections.yml": "connections"}


def project_documents():
    for top in ("example_project", "pz_engine/templates", "tests", "bench"):
        for path in sorted((ROOT / top).rglob("*.yml")):
            is_sidecar = path.parent.name == "configs"
            if ".pz" not in path.parts and (path.name in NAMES or is_sidecar):
                yield NAMES.get(path.name, "sidecar"), path


DOCUMENTS = list(project_documents())


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_the_shipped_schema_is_current(name):
    """The installed file is what the definitions render; `make docs` writes it."""
    assert schema_file(name).read_bytes() == render_schema(name)


def test_there_is_no_other_schema():
    """The folder holds the three schemas and nothing else."""
    folder = Path(json_schema.__file__).parent / "schemas"
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{name}.schema.json" for name in SCHEMA_NAMES)


@pytest.mark.parametrize(("kind", "path"), DOCUMENTS, ids=lambda value: str(value).removeprefix(f"{ROOT}/"))
def test_every_project_of_ours_is_valid(kind, path):
    """The example, the templates and the projects of tests satisfy their schemas."""
    instance = as_editor(path.read_text(encoding="utf-8"))
    assert [error.message for error in validator(kind).iter_errors(instance)] == []


def test_all_kinds_of_our_projects_are_looked_at():
    """The example and every template are among the documents."""
    found = {path.relative_to(ROOT).parts[:3] for _, path in DOCUMENTS}
    assert ("example_project", "project.yml") in {parts[:2] for parts in found}
    templates = {path.name for path in (ROOT / "pz_engine/templates").iterdir() if (path / "project.yml").is_file()}
    assert templates <= {parts[2] for parts in found if parts[:2] == ("pz_engine", "templates")}
    assert {kind for kind, _ in DOCUMENTS} == set(SCHEMA_NAMES)


def test_every_key_is_described_with_its_default():
    """A sentence on each key, and the default where there is one."""
    project = json.loads(render_schema("project"))["properties"]
    assert set(project) == {*PROJECT.names, *(retired.name for retired in PROJECT.retired)}
    assert all(entry["description"].endswith(".") for entry in project.values())
    engine = project["engine"]["properties"]
    assert set(engine) == set(ENGINE_BLOCK.names)
    assert (engine["threads"]["default"], engine["fusion"]["default"]) == (4, True)
    assert set(engine["duckdb"]["properties"]) == set(DUCKDB_BLOCK.names)
    connection = json.loads(render_schema("connections"))["additionalProperties"]
    assert set(connection["properties"]) == set(CONNECTION_BLOCK.names)
    entity = connection["properties"]["entities"]["additionalProperties"]
    assert set(READ_BLOCK.names) <= set(entity["properties"]["read"]["properties"])
    assert set(WRITE_BLOCK.names) <= set(entity["properties"]["write"]["properties"])
    assert entity["properties"]["write"]["properties"]["strategy"]["default"] == "append"
    assert set(json.loads(render_schema("sidecar"))["properties"]) == set(SIDECAR.names)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("connections", "c: {connector: x, port: '${PORT}', nested: [{a: 5}], max_concurrency: 2}"),
        ("connections", "c: {connector: x, entities: {a.b: {read: , write: {partition_by: day, keys: []}}}}"),
        ("connections", ""),
        ("connections", "# nothing yet"),
        ("project", "name: p5\nversion: 1.10\nvars: {a: ['${A}']}\nengine: {fusion: off, duckdb: }"),
        ("project", "name: a\nversion: 1\nretention: OFF\nstate: {url: 'https://h'}\n"),
        ("sidecar", "pipeline: a\nchecks:\ntags: [1, x]"),
    ],
)
def test_what_an_editor_must_not_underline(kind, text):
    """Variables, empty bodies and connector keys are valid."""
    assert validator(kind).is_valid(as_editor(text))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("project", "version: 1"),
        ("project", "name: a\nversion: 1\nengine: {thread: 4}"),
        ("project", "name: a\nversion: 1\nengine: {threads: 0}"),
        ("project", "name: a\nversion: 1\noutputs: {}"),
        ("project", "name: a\nversion: 1\nretention: {keep_last: 0}"),
        ("project", "name: a\nversion: 1\nstate: {backend: local, url: x}"),
        ("project", "name: a\nversion: 1\nconnectors: [{package: a, version: 1.10}]"),
        ("connections", "outputs: {connector: x}"),
        ("connections", "a__b: {connector: x}"),
        ("connections", "c: {root: data}"),
        ("connections", "c: {connector: x, entities: {a..b: {read: }}}"),
        ("connections", "c: {connector: x, entities: {a: {}}}"),
        ("connections", "c: {connector: x, entities: {a: {read: {columns: {a: INT}}}}}"),
        ("connections", "c: {connector: x, entities: {a: {read: {schema: dbo}}}}"),
        ("connections", "c: {connector: x, entities: {a: {read: {sync: {mode: auto, cursor: u}}}}}"),
        ("connections", "c: {connector: x, entities: {a: {read: {sync: {mode: incremental}}}}}"),
        ("connections", "c: {connector: x, entities: {a: {write: {mode: append}}}}"),
        ("sidecar", "materialization: view"),
        ("sidecar", "pipeline: a\nchecks: [{not_null: []}]"),
        ("sidecar", "pipeline: a\nchecks: [{row_count: {}}]"),
        ("sidecar", "pipeline: a\nchecks: [{freshness: [u]}]"),
        ("sidecar", "pipeline: a\nchecks: [{unique: {column: a, columns: [a]}}]"),
    ],
)
def test_what_an_editor_must_underline(kind, text, tmp_path):
    """The loader refuses it, and so does the schema."""
    assert problems_of(kind, text, tmp_path)
    assert not validator(kind).is_valid(as_editor(text))


def test_the_reference_page_is_current(monkeypatch):
    """The page of keys was generated from these very definitions."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import generate_project_files

    assert generate_project_files.PAGE.read_text(encoding="utf-8") == generate_project_files.render_page()
