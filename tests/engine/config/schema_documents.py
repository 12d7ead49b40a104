"""Project documents as a JSON Schema sees them, and whether the loader accepts them."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from pz_engine.config.connections_file import load_connections_file
from pz_engine.config.json_schema import render_schema
from pz_engine.config.located import Listing, Located, Scalar
from pz_engine.config.project_file import load_project_file
from pz_engine.config.sidecars import load_sidecars
from pz_engine.config.yaml_reader import read_yaml
from pz_engine.errors.collector import ProblemCollector
from pz_engine.errors.diagnostics import Diagnostic


class Everything:
    """A collection that holds every name."""

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self):
        return iter(("one",))

    def __len__(self):
        return 1


@functools.cache
def validator(kind: str) -> Draft202012Validator:
    """Return the validator of a kind of file; the schema itself is checked."""
    schema = json.loads(render_schema(kind))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def as_editor(text: str) -> Any:
    """Return a document as the engine's reader and an editor agree on it: a key with no body is null."""
    problems = ProblemCollector()
    table = read_yaml(text, "f.yml", problems)
    problems.raise_if_any()
    return _json(table) if text.strip() else None


def problems_of(kind: str, text: str, directory: Path) -> list[Diagnostic]:
    """Load one file alone and return what is wrong with it."""
    problems = ProblemCollector()
    env = {"NAME": "x"}
    if kind == "project":
        (directory / "project.yml").write_text(text, encoding="utf-8")
        load_project_file(directory, env, {}, problems)
    elif kind == "connections":
        (directory / "connections.yml").write_text(text, encoding="utf-8")
        load_connections_file(directory, env, problems)
    else:
        (directory / "s.yml").write_text(text, encoding="utf-8")
        load_sidecars(directory, ["s.yml"], Everything(), problems)
    return problems.errors


def as_yaml(document: Any) -> str:
    """Write a document so that the engine's reader reads it back, None as a key with no body."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(type(None), lambda dumper, _: dumper.represent_scalar("tag:yaml.org,2002:null", ""))


def _json(node: Located) -> Any:
    if isinstance(node, Scalar):
        return None if node.is_blank else node.value
    if isinstance(node, Listing):
        return [_json(item) for item in node.items]
    return {key: _json(value) for key, value in node.entries.items()}
