"""Options against a connector's JSON Schema.

Values never appear in what is found, since they may be secrets; only keys and what the schema says do. The schema
library is loaded only for options that the simple rules here cannot wave through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pz_engine.base.near_miss import closest, did_you_mean

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
}
_OTHER_WORDS = frozenset(
    {"yes", "no", "on", "off", "true", "false", "null", "~", "y", "n"}
)  # fmt: skip
_KNOWN_KEYWORDS = frozenset(
    {
        "$schema", "title", "description", "default", "examples", "writeOnly", "deprecated", "type", "properties",
        "required", "additionalProperties", "enum", "minLength", "minimum", "maximum", "items", "minItems",
    }
)  # fmt: skip


class SchemaFinding(Struct, frozen=True):
    """One way in which options do not fit their schema."""

    cause: str
    hint: str | None = None
    missing: str | None = None
    """The required property that is absent."""

    path: str = ""
    """The option, or what holds the one that is absent."""


def check_schema(schema: Mapping[str, Any], options: Mapping[str, Any]) -> list[SchemaFinding]:
    """Return everything that does not fit; an empty schema accepts anything."""
    if not schema or _fits_plainly(schema, options):
        return []
    from jsonschema import Draft202012Validator

    found: dict[tuple[str, str], SchemaFinding] = {}
    for error in Draft202012Validator(dict(schema)).iter_errors(dict(options)):
        path = ".".join(str(part) for part in error.absolute_path)
        for finding in _explain(error, path):
            placed = finding if finding.path else replace(finding, path=path)
            found.setdefault((path, finding.cause), placed)
    return list(found.values())


def _fits_plainly(schema: Mapping[str, Any], value: Any) -> bool:
    """Tell whether a value certainly fits; False also means that the simple rules cannot tell."""
    if not _KNOWN_KEYWORDS.issuperset(schema):
        return False
    kind = schema.get("type")
    if kind is not None and not (isinstance(kind, str) and _is_of_type(kind, value)):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        return False
    if isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return False
    if isinstance(value, list):
        items = schema.get("items", {})
        return len(value) >= schema.get("minItems", 0) and all(_fits_plainly(items, item) for item in value)
    if isinstance(value, Mapping):
        return _object_fits_plainly(schema, value)
    return True


def _object_fits_plainly(schema: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    if any(name not in value for name in schema.get("required", ())):
        return False
    for name, item in value.items():
        rule = properties.get(name, others)
        if rule is False or (rule is not True and not _fits_plainly(rule, item)):
            return False
    return True


def _is_of_type(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, ()))


def _explain(error: Any, path: str) -> Iterator[SchemaFinding]:
    rule, wanted, value = error.validator, error.validator_value, error.instance
    option = f"option '{path}'" if path else "the options"
    if rule == "additionalProperties" and wanted is False:
        accepted = sorted(error.schema.get("properties", {}))
        for name in value:
            if name not in accepted:
                full = f"{path}.{name}" if path else name
                known = f"accepted: {', '.join(accepted) or 'nothing'}"
                yield SchemaFinding(f"unknown option '{full}'", did_you_mean(name, accepted) or known, path=full)
    elif rule == "required":
        for name in wanted:
            if name not in value:
                full = f"{path}.{name}" if path else name
                yield SchemaFinding(f"the required option '{full}' is missing", f"add {full}", missing=full)
    elif rule == "type":
        yield SchemaFinding(f"{option} must be {_describe_types(wanted)}", _type_hint(wanted, value, path))
    elif rule == "enum":
        texts = [str(choice) for choice in wanted]
        best = closest(value, texts) if isinstance(value, str) else None
        advice = f"write {path}: {best or texts[0]}" if texts else None
        yield SchemaFinding(f"{option} must be one of {', '.join(texts)}", advice)
    elif rule in {"minimum", "exclusiveMinimum"}:
        yield SchemaFinding(f"{option} must be {'at least' if rule == 'minimum' else 'above'} {wanted}", "raise it")
    elif rule in {"maximum", "exclusiveMaximum"}:
        yield SchemaFinding(f"{option} must be {'at most' if rule == 'maximum' else 'below'} {wanted}", "lower it")
    elif rule in {"minLength", "minItems", "minProperties"}:
        yield SchemaFinding(f"{option} may not be empty", "give it a value, or remove it")
    else:
        yield SchemaFinding(f"{option} is not in an accepted form", "see the connector's reference page")


def _describe_types(wanted: str | Sequence[str]) -> str:
    names = {
        "string": "text", "boolean": "true or false", "integer": "a whole number", "number": "a number",
        "object": "a mapping", "array": "a list", "null": "empty",
    }  # fmt: skip
    kinds = [wanted] if isinstance(wanted, str) else list(wanted)
    return " or ".join(names.get(kind, kind) for kind in kinds)


def _type_hint(wanted: str | Sequence[str], value: Any, path: str) -> str:
    kinds = [wanted] if isinstance(wanted, str) else list(wanted)
    if isinstance(value, str) and value.lower() in _OTHER_WORDS and {"boolean", "integer"} & set(kinds):
        return "only lowercase true and false are booleans here, and quotes make text"
    if isinstance(value, str) and {"integer", "number"} & set(kinds):
        return f"write {path} as a number without quotes"
    if "string" in kinds and not isinstance(value, (dict, list)):
        return f"put {path} in quotes"
    return f"write {path or 'them'} as {_describe_types(wanted)}"
