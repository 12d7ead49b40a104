"""YAML text to located values.

Only plain scalars are typed, by fixed rules that know no YAML 1.1 words: `yes`, `null` and dates stay text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from pz_engine.config.file_text import MAX_YAML_BYTES, read_file_text
from pz_engine.config.located import Listing, Located, Scalar, Table
from pz_engine.config.reporter import Reporter
from pz_engine.config.yaml_builder import TreeBuilder
from pz_engine.errors.collector import ProblemCollector
from pz_engine.errors.exceptions import PzConfigError

_NULL_DOCUMENTS = frozenset({"", "~", "null", "Null", "NULL"})
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_yaml_file(path: Path, name: str, problems: ProblemCollector) -> Table | None:
    """Read a file whose root is a mapping; arguments and result as for `read_yaml`."""
    with problems.catching():
        return read_yaml(read_file_text(path, name, MAX_YAML_BYTES), name, problems)
    return None


def read_yaml(text: str, name: str, problems: ProblemCollector) -> Table | None:
    """Read text whose root is a mapping; nothing at all counts as an empty one.

    Args:
        text: the text.
        name: project-relative name for messages.
        problems: receives every problem, as `PZ0101` and with the line when it is known.

    Returns:
        The mapping without what cannot be used, or None when there is none.
    """
    with problems.catching():
        root = _build(text, name, problems)
        if root is None or (isinstance(root, Scalar) and root.is_plain and root.text in _NULL_DOCUMENTS):
            return Table({})
        if isinstance(root, Table):
            return Table(root.entries, None, root.key_lines)
        kind = "a list" if isinstance(root, Listing) else "a single value"
        raise PzConfigError(
            "PZ0101", f"{name} holds {kind} where a mapping is expected", file=name, line=root.line,
            hint="start the file with `key: value` lines",
        )  # fmt: skip
    return None


def _build(text: str, name: str, problems: ProblemCollector) -> Located | None:
    builder = TreeBuilder(Reporter(problems, name, name))
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise PzConfigError(
            "PZ0101", f"{name} is not valid YAML: {error.problem or 'it cannot be parsed'}", file=name, line=_line_of(error),
            hint="check indentation, quotes and colons around this line",
        ) from None  # fmt: skip
    except yaml.YAMLError:
        found = _FORBIDDEN.search(text)
        line = text.count("\n", 0, found.start()) + 1 if found is not None else None
        raise PzConfigError(
            "PZ0101", f"{name} holds a character that YAML does not allow", file=name, line=line,
            hint="remove control characters",
        ) from None  # fmt: skip
    return builder.root


def _line_of(error: yaml.MarkedYAMLError) -> int | None:
    """Return the line of a mistake; of a quote that is never closed, where it opens."""
    is_unclosed = "end of stream" in (error.problem or "")
    marks = (error.problem_mark, error.context_mark)
    mark = next((mark for mark in (reversed(marks) if is_unclosed else marks) if mark is not None), None)
    return mark.line + 1 if mark is not None else None
