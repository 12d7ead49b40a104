"""YAML text to located values.

Only plain scalars are typed, by fixed rules that know no YAML 1.1 words: `yes`, `null` and dates stay text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from pz_engine.config.located import Listing, Located, Scalar, Table
from pz_engine.errors.exceptions import PzConfigError

MAX_VALUES = 1_000_000
"""Most values one file may expand to through its aliases."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NULL_DOCUMENTS = frozenset({"", "~", "null", "Null", "NULL"})
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml_file(path: Path, name: str) -> Table:
    """Read a file whose root is a mapping.

    Args:
        path: the file.
        name: project-relative name for messages.

    Raises:
        PzConfigError: `PZ0101`, with the line when it is known.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PzConfigError("PZ0101", f"{name} is not UTF-8 text", file=name, hint="save it as UTF-8") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise PzConfigError("PZ0101", f"{name} cannot be read: {reason}", file=name) from None
    return read_yaml(text, name)


def read_yaml(text: str, name: str) -> Table:
    """Read text whose root is a mapping; nothing at all counts as an empty one.

    Raises:
        PzConfigError: `PZ0101`, with the line when it is known.
    """
    root = _compose(text, name)
    if root is None or (isinstance(root, yaml.ScalarNode) and _is_null_document(root)):
        return Table({}, 1)
    converted = _Converter(name).convert(root)
    if not isinstance(converted, Table):
        kind = "a list" if isinstance(converted, Listing) else "a single value"
        raise PzConfigError(
            "PZ0101", f"{name} holds {kind} where a mapping is expected", file=name, line=converted.line,
            hint="start the file with `key: value` lines",
        )  # fmt: skip
    return converted


def type_plain(text: str) -> str | int | float | bool:
    """Give a plain scalar its type.

    >>> [type_plain(t) for t in ("5432", "1.5", "true", "yes", "0x10", "nan")]
    [5432, 1.5, True, 'yes', '0x10', 'nan']
    """
    if text == "true":
        return True
    if text == "false":
        return False
    if _INTEGER.fullmatch(text):
        number = int(text)
        if -(2**63) <= number < 2**63:
            return number
    if _FLOAT.fullmatch(text):
        value = float(text)
        if value not in (float("inf"), float("-inf")):
            return value
    return text


def _is_null_document(node: Any) -> bool:
    return not node.style and node.value in _NULL_DOCUMENTS


def _compose(text: str, name: str) -> Any:
    loader = _LOADER(text)
    try:
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        raise PzConfigError(
            "PZ0101", f"{name} is not valid YAML: {_describe(error)}", file=name, line=line,
            hint="check indentation, quotes and colons around this line",
        ) from None  # fmt: skip
    except yaml.YAMLError:
        raise PzConfigError(
            "PZ0101", f"{name} holds a character that YAML does not allow", file=name, hint="remove control characters"
        ) from None
    except RecursionError:
        raise PzConfigError("PZ0101", f"{name} is nested too deeply", file=name) from None
    finally:
        loader.dispose()


def _describe(error: yaml.MarkedYAMLError) -> str:
    if "single document" in (error.context or ""):
        return "it holds more than one document"
    return error.problem or "it cannot be parsed"


class _Converter:
    """Turns composed nodes into located values, counting what aliases expand to."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: set[int] = set()
        self._count = 0

    def convert(self, node: Any) -> Located:
        line = node.start_mark.line + 1
        self._count += 1
        if self._count > MAX_VALUES:
            raise self._error("its aliases expand to too many values", line)
        if isinstance(node.tag, str) and node.tag.startswith("!") and node.tag != "!":
            raise self._error(f"the tag {node.tag} is not supported", line)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node, line)
        if id(node) in self._open:
            raise self._error("an alias stands inside its own anchor", line)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return Listing(tuple(self.convert(item) for item in node.value), line)
            return self._table(node, line)
        except RecursionError:
            raise self._error("it is nested too deeply", line) from None
        finally:
            self._open.discard(id(node))

    def _table(self, node: Any, line: int) -> Table:
        entries: dict[str, Located] = {}
        key_lines: dict[str, int | None] = {}
        for key_node, value_node in node.value:
            key_line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error("a key is not a single value", key_line)
            key = key_node.value
            if key in entries:
                raise self._error(f"key '{key}' is written twice (first on line {key_lines[key]})", key_line)
            entries[key] = self.convert(value_node)
            key_lines[key] = key_line
        return Table(entries, line, key_lines)

    def _error(self, cause: str, line: int) -> PzConfigError:
        return PzConfigError("PZ0101", f"{self._name}: {cause}", file=self._name, line=line)


def _scalar(node: Any, line: int) -> Scalar:
    is_plain = not node.style  # None, or empty with the C parser
    return Scalar(type_plain(node.value) if is_plain else node.value, line, node.value, is_plain)
