"""Options of the `http` connector: schemas, and the rules between options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from pz_engine.connectors.builtin.http.bindings import binding_problem
from pz_engine.connectors.builtin.http.json_text import pointer_parts
from pz_engine.model.cursor_values import CURSOR_TYPES

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Final = {"type": "string", "minLength": 1}
_SECRET: Final = {**_TEXT, "writeOnly": True}
_SCALAR: Final = {"type": ["string", "integer", "number", "boolean"]}
_COUNT: Final = {"type": "integer", "minimum": 0}
_POSITIVE: Final = {"type": "integer", "minimum": 1}


def _variant(name: str, required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {"type": {"const": name}, **properties},
        "required": ["type", *required],
    }


CONNECTION_SCHEMA: Final[Mapping[str, Any]] = {
    "$schema": _DRAFT,
    "type": "object",
    "additionalProperties": False,
    "required": ["base_url"],
    "properties": {
        "base_url": {**_TEXT, "description": "absolute http or https address that every path is under"},
        "auth": {
            "oneOf": [
                _variant("api_key", ("key", "header"), key=_SECRET, header=_TEXT),
                _variant("api_key", ("key", "param"), key=_SECRET, param=_TEXT),
                _variant("bearer", ("token",), token=_SECRET),
                _variant("basic", ("user", "password"), user=_TEXT, password=_SECRET),
            ]
        },
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "check_path": {**_TEXT, "description": "path that validate --connect asks for"},
        "timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 3600, "default": 30},
        "max_response_mb": {"type": "integer", "minimum": 1, "maximum": 4096, "default": 256},
        "allow_hosts": {"type": "array", "items": _TEXT},
    },
}

_NUMBERED: Final = {"param": _TEXT, "start": _COUNT, "size_param": _TEXT, "size": _POSITIVE}

READ_SCHEMA: Final[Mapping[str, Any]] = {
    "$schema": _DRAFT,
    "type": "object",
    "additionalProperties": False,
    "required": ["path"],
    "properties": {
        "path": {"type": "string", "pattern": "^/", "description": "under base_url"},
        "query": {"type": "object", "additionalProperties": _SCALAR},
        "pagination": {
            "oneOf": [
                _variant("link_header", ()),
                _variant("page", (), **_NUMBERED),
                _variant("offset", (), **_NUMBERED),
                _variant("cursor", ("pointer", "param"), pointer=_TEXT, param=_TEXT),
            ]
        },
        "format": {"type": "string"},
        "items": {"type": "string", "description": "JSON pointer to the records; the whole answer by default"},
        "columns": {"type": "object", "additionalProperties": {"type": "string"}},
        "cursor": _TEXT,
        "cursor_type": {"enum": list(CURSOR_TYPES)},
        "cursor_pointer": {"type": "string"},
        "cursor_order": {"enum": ["asc", "desc"]},
        "max_pages": _POSITIVE,
        "delta_pointer": {"type": "string"},
    },
}

WRITE_SCHEMA: Final[Mapping[str, Any]] = {"$schema": _DRAFT, "type": "object", "additionalProperties": False}

_POINTERS: Final = ("items", "cursor_pointer", "delta_pointer")
_PAGE_COLUMNS: Final = frozenset({"payload", "pz_page", "pz_fetched_at"})
_BLANK: Final = 32
_DELETE: Final = 127
_PLAIN: Final = "use plain characters on one line, without blanks around them"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class OptionProblem(Struct, frozen=True):
    """One rule that an option breaks."""

    message: str
    code: str = "PZ0301"
    hint: str | None = None


def connection_problems(config: Mapping[str, Any]) -> Iterator[OptionProblem]:
    """Yield what a schema cannot say about a connection."""
    base = config.get("base_url")
    if isinstance(base, str):
        yield from _base_url_problems(base)
    headers = config.get("headers")
    if isinstance(headers, Mapping):
        for name, value in headers.items():
            if _HEADER_NAME.fullmatch(str(name)) is None or (isinstance(value, str) and not _is_header_value(value)):
                yield OptionProblem(f"header '{name}' cannot be sent", hint=_PLAIN)
    yield from _credential_problems(config.get("auth"))
    check_path = config.get("check_path")
    if isinstance(check_path, str) and not check_path.startswith("/"):
        yield OptionProblem("'check_path' must start with '/'", hint="write check_path: /health")
    yield from path_problems("check_path", check_path)
    for host in config.get("allow_hosts") or ():
        if isinstance(host, str) and (":" in host or "/" in host):
            yield OptionProblem(f"allow_hosts: '{host}' is no bare host name", hint="write the name alone")


def read_problems(
    options: Mapping[str, Any], *, sync_cursor: str | None = None, auth: Any = None
) -> Iterator[OptionProblem]:
    """Yield what a schema cannot say about a read.

    Args:
        options: the read options, the contract under `columns`.
        sync_cursor: the cursor that the entity is read by, when known.
        auth: the connection's `auth`.
    """
    if options.get("format", "json") != "json":
        yield OptionProblem("only json pages can be read", "PZ0361", "remove 'format'")
    yield from path_problems("path", options.get("path"))
    query = options.get("query")
    for name, value in query.items() if isinstance(query, Mapping) else ():
        problem = binding_problem(value)
        if problem is not None:
            yield OptionProblem(f"query parameter '{name}' {problem}", hint="write '{{ watermark }}'")
    pagination = options.get("pagination")
    pointers = {name: options.get(name) for name in _POINTERS}
    if isinstance(pagination, Mapping) and pagination.get("type") == "cursor":
        pointers["pagination.pointer"] = pagination.get("pointer")
    for name, value in pointers.items():
        if isinstance(value, str) and pointer_parts(value) is None:
            yield OptionProblem(f"'{name}' is no JSON pointer", hint="write it as /key/key")
    if isinstance(pagination, Mapping) and ("size" in pagination) != ("size_param" in pagination):
        yield OptionProblem("pagination: 'size' and 'size_param' belong together", hint="give both, or none")
    yield from _parameter_problems(query, pagination, auth)
    if "delta_pointer" in options and "max_pages" in options:
        yield OptionProblem(
            "a feed with 'max_pages' would never come to the link of the next run", hint="remove max_pages"
        )
    yield from _cursor_problems(options, sync_cursor)


def path_problems(option: str, path: Any) -> Iterator[OptionProblem]:
    """Yield why a path would not be asked for as it is written, below the base address.

    Args:
        option: the option's name, for messages.
        path: its value; one that is no text is the schema's business.
    """
    if not isinstance(path, str):
        return
    if "?" in path or "#" in path:
        yield OptionProblem(f"'{option}' holds '?' or '#'", hint="put parameters under query")
    elif "\\" in path or any(ord(character) < _BLANK or ord(character) == _DELETE for character in path):
        yield OptionProblem(f"'{option}' holds a backslash or a control character", hint="write a plain path: /a/b")
    elif any(part in (".", "..") for part in re.split(r"[/\\]", unquote(path))):
        yield OptionProblem(
            f"'{option}' holds the segment '.' or '..', which could leave base_url", hint="write the whole path"
        )


def _parameter_problems(query: Any, pagination: Any, auth: Any) -> Iterator[OptionProblem]:
    """Yield parameters that two options would set; a token's first value may stand under query."""
    owners: dict[str, str] = {}
    if isinstance(auth, Mapping) and isinstance(auth.get("param"), str):
        owners[auth["param"]] = "auth.param"
    names = list(query) if isinstance(query, Mapping) else []
    if isinstance(pagination, Mapping):
        kind = pagination.get("type")
        own = {"pagination.param": pagination.get("param"), "pagination.size_param": pagination.get("size_param")}
        if kind in ("page", "offset"):
            own["pagination.param"] = own["pagination.param"] or kind
        for option, name in own.items():
            if isinstance(name, str) and name in owners:
                yield OptionProblem(f"'{option}' and '{owners[name]}' name the same parameter", hint="use two names")
            elif isinstance(name, str) and kind != "cursor":
                owners[name] = option
    for name in names:
        if name in owners:
            yield OptionProblem(
                f"query parameter '{name}' is set by {owners[name]} as well", hint=f"remove '{name}' from query"
            )


def _cursor_problems(options: Mapping[str, Any], sync_cursor: str | None) -> Iterator[OptionProblem]:
    contract, cursor = options.get("columns"), options.get("cursor")
    if contract:
        for name in ("cursor_type", "cursor_pointer"):
            if name in options:
                yield OptionProblem(f"'{name}' has no meaning beside 'columns'", hint=f"remove {name}")
        if isinstance(cursor, str) and cursor not in contract:
            yield OptionProblem(f"cursor '{cursor}' is no declared column", hint="declare it under columns")
        return
    if ("cursor" in options) != ("cursor_type" in options):
        yield OptionProblem("'cursor' and 'cursor_type' belong together", hint="give both, or declare columns")
    elif cursor is None and sync_cursor is not None and sync_cursor not in _PAGE_COLUMNS:
        yield OptionProblem(
            f"without 'columns', cursor '{sync_cursor}' is read from each record only when 'cursor' names it",
            hint=f"write cursor: {sync_cursor} and cursor_type, or declare columns",
        )
    if isinstance(cursor, str):
        if cursor.startswith("pz_") or cursor == "payload":
            yield OptionProblem(f"cursor '{cursor}' has the name of a column that every page has", hint="rename it")
        if sync_cursor is not None and cursor != sync_cursor:
            yield OptionProblem(
                f"'cursor' names '{cursor}', but sync.cursor is '{sync_cursor}'", hint="write the same name in both"
            )


def _base_url_problems(base: str) -> Iterator[OptionProblem]:
    hint = "write base_url: https://host/path"
    try:
        parts = urlsplit(base)
        host = parts.hostname
        has_user = "@" in parts.netloc
    except ValueError:
        yield OptionProblem("'base_url' is no address", hint=hint)
        return
    if not base.isprintable() or parts.scheme not in ("http", "https") or not host:
        yield OptionProblem("'base_url' is no absolute http or https address", hint=hint)
    elif has_user:
        yield OptionProblem("'base_url' holds a user", hint="write auth: {type: basic, user: …, password: …}")
    elif parts.query or parts.fragment:
        yield OptionProblem("'base_url' holds a query or a fragment", hint="put parameters under query of the entity")
    elif not _is_port(parts):
        yield OptionProblem("'base_url' has a port that does not exist", hint="give one from 1 to 65535, or none")


def _is_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def _credential_problems(auth: Any) -> Iterator[OptionProblem]:
    """Yield the credentials that no header can hold; those in parameters and of `basic` are encoded."""
    if not isinstance(auth, Mapping):
        return
    header, kind = auth.get("header"), auth.get("type")
    if kind == "api_key" and isinstance(header, str) and _HEADER_NAME.fullmatch(header) is None:
        yield OptionProblem("'auth.header' is no name of a header", hint="write it as X-Api-Key")
    name = "token" if kind == "bearer" else "key" if kind == "api_key" and header is not None else None
    value = auth.get(name) if name is not None else None
    if isinstance(value, str) and not _is_header_value(value):
        yield OptionProblem(
            f"'auth.{name}' cannot be sent", hint=f"{_PLAIN}; a variable's value may end with a line's end"
        )


def _is_header_value(value: str) -> bool:
    return value.isascii() and value.isprintable() and value == value.strip()
