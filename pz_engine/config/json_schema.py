"""JSON Schemas of the three kinds of project file, made from the definitions the loader reads.

A file the loader accepts is valid; of what the loader refuses, only rules over several keys or files are left out. A key
with no body is null, as editors see it.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any, Final

from pz_engine.base.stable_json import pretty_json
from pz_engine.config import kinds
from pz_engine.config.connection_keys import CONNECTIONS
from pz_engine.config.definitions import Block, Either, Key, ListOf, MapOf, Retired, Section, Variants
from pz_engine.config.project_keys import PROJECT
from pz_engine.config.sidecar_keys import CHECKS, SIDECAR, CheckDefinition, CheckItem
from pz_engine.model.contract_types import CONTRACT_TYPE_NAMES

Schema = dict[str, Any]

_FILES: Final[dict[str, tuple[str, kinds.Kind[object]]]] = {
    "project": ("project.yml of a pz project", Section(PROJECT)),
    "connections": ("connections.yml of a pz project", CONNECTIONS),
    "sidecar": ("pipelines/configs/*.yml of a pz project", Section(SIDECAR)),
}
SCHEMA_NAMES: Final = tuple(_FILES)
"""Kinds of project file."""

_EXACT = 2**53
"""Beyond this, editors round numbers."""


def schema_file(name: str) -> Path:
    """Return where the schema of a kind of file is installed."""
    return Path(__file__).parent / "schemas" / f"{name}.schema.json"


def render_schema(name: str) -> bytes:
    """Return the text of a schema as it is shipped."""
    title, kind = _FILES[name]
    schema = _render(kind)
    if name == "connections":
        schema = _or_null(schema)
    return pretty_json({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema})


def _render(kind: kinds.Kind[object]) -> Schema:
    match kind:
        case Section(block):
            return _block(block)
        case Variants():
            return _variants(kind)
        case MapOf():
            return _map(kind)
        case ListOf(item):
            return {"type": "array", "items": _render(item)}
        case Either(options):
            return {"anyOf": [_render(option) for option in options]}
        case CheckItem():
            return _check_item()
    return _scalar(kind)


def _scalar(kind: kinds.Kind[object]) -> Schema:
    single: Schema = {"type": ["string", "number", "boolean"]}
    match kind:
        case kinds.Anything():
            return {}
        case kinds.Text(takes_numbers, pattern):
            return {
                "type": ["string", "number"] if takes_numbers else "string", "pattern": _whole(pattern) if pattern else r"\S"
            }  # fmt: skip
        case kinds.SingleValue():
            return {**single, "minLength": 1}
        case kinds.Whole(low, high):
            limits = {"minimum": low, "maximum": high}
            return {"type": "integer", **{word: limit for word, limit in limits.items() if abs(limit) < _EXACT}}
        case kinds.Flag():
            return {"type": "boolean"}
        case kinds.Switch(words):
            return {"enum": [True, False, *words]}
        case kinds.Duration(pattern):
            return {"type": "string", "pattern": _whole(pattern)}
        case kinds.Choice() | kinds.Word():
            return {"enum": list(kind.words)}
        case kinds.ContractType(decimal):
            return {
                "anyOf": [
                    {"enum": [name for name in CONTRACT_TYPE_NAMES if "(" not in name]},
                    {"type": "string", "pattern": _whole(decimal)},
                ]
            }
        case kinds.Off(words):
            any_case = "|".join("".join(f"[{letter}{letter.upper()}]" for letter in word) for word in words)
            return {"anyOf": [{"const": False}, {"type": "string", "pattern": _whole(any_case)}]}
        case kinds.TextList(takes_scalars):
            return {"type": "array", "items": _scalar(kinds.SingleValue() if takes_scalars else kinds.Text())}
        case kinds.Values():
            return {"type": "array", "minItems": 1, "items": single}
    raise TypeError(f"no schema is known for {type(kind).__name__}")


def _block(block: Block) -> Schema:
    schema: Schema = {"type": "object"}
    if block.summary:
        schema["description"] = block.summary
    schema["properties"] = {key.name: _key(key) for key in block.keys} | _refused(block.retired)
    required = [key.name for key in block.keys if key.is_required]
    if required:
        schema["required"] = required
    if block.least:
        schema["minProperties"] = block.least
    if not block.is_open:
        schema["additionalProperties"] = False
    return schema


def _key(key: Key[object]) -> Schema:
    schema = _render(key.kind)
    if key.may_be_blank:
        schema = _or_null(schema)
    schema["description"] = key.summary
    default = key.default.value if isinstance(key.default, Enum) else key.default
    if not key.is_required and default not in (None, (), ""):
        schema["default"] = default
    return schema


def _variants(kind: Variants) -> Schema:
    """Describe all keys, then which of them each value of the selector admits."""
    properties: Schema = {}
    conditions: list[Schema] = []
    for word, block in kind.blocks:
        properties |= {key.name: _key(key) for key in block.keys}
        rule: Schema = {"propertyNames": {"enum": list(block.names)}}
        required = [key.name for key in block.keys if key.is_required]
        if required:
            rule["required"] = required
        chosen = {"required": [kind.selector.name], "properties": {kind.selector.name: {"const": word}}}
        conditions.append({"if": chosen, "then": rule})
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False, "allOf": conditions}
    return schema | ({"required": [kind.selector.name]} if kind.selector.is_required else {})


def _map(kind: MapOf) -> Schema:
    schema: Schema = {"type": "object"}
    if kind.retired:
        schema["properties"] = _refused(kind.retired)
    if kind.name_pattern:
        schema["propertyNames"] = {"pattern": _whole(kind.name_pattern)}
    item = _render(kind.item)
    return {**schema, "additionalProperties": item} if item else schema


def _refused(retired: tuple[Retired, ...]) -> Schema:
    return {entry.name: {"not": {}, "description": f"Retired: {_hint(entry)}."} for entry in retired}


def _hint(retired: Retired) -> str:
    return retired.hint.replace("<value>", retired.placeholder)


def _check_item() -> Schema:
    checks = {name: _check(definition) for name, definition in CHECKS.items()}
    return {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": checks,
        "additionalProperties": False,
    }


def _check(definition: CheckDefinition) -> Schema:
    options = _block(definition.block)
    del options["description"]
    if definition.columns == "none":
        options["properties"]["columns"]["maxItems"] = 0
        options["properties"]["column"] = {"not": {}}
    else:
        limits = {"minItems": 1} if definition.columns == "some" else {"minItems": 1, "maxItems": 1}
        options["properties"]["columns"].update(limits)
        options["oneOf"] = [{"required": [name]} for name in ("column", "columns")]
    if definition.any_of:
        options["anyOf"] = [{"required": [key.name]} for key in definition.any_of]
    if not definition.may_be_list:
        return {**options, "description": definition.summary}
    names = {**_scalar(kinds.TextList()), "minItems": 1}
    return {"description": definition.summary, "anyOf": [names, options]}


def _or_null(schema: Schema) -> Schema:
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    if "type" in schema:
        known = schema["type"]
        return {**schema, "type": [*(known if isinstance(known, list) else [known]), "null"]}
    return {"anyOf": [*schema["anyOf"], {"type": "null"}]} if schema else {}


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"
