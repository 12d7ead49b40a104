"""What DuckDB's json reader complains about, without the record it quotes."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

_TOO_LARGE = re.compile(
    r'"maximum_object_size" of (?P<limit>\d+) bytes exceeded(?: while reading file "(?P<file>[^"\n]+)")?'
)
_PLACE = re.compile(r'in file "(?P<file>[^"\n]+)"(?:, at byte \d+)?(?:,? in (?:line|record/value) (?P<line>\d+))?')
_REASONS = (
    ("byte order mark", "starts with a byte-order mark, which json does not allow", "save the file without the mark"),
    ("Expected top-level JSON array", "is not one JSON array", "set layout: ndjson"),
    (
        "expected records",
        "holds something else than objects, one per line",
        "set layout: array for a file that is one array",
    ),
    ("duplicate key", "has an object with the same key twice", "correct the file"),
    (
        "Malformed JSON",
        "is not well-formed json",
        "correct the file, or set layout: array for a file that is one array",
    ),
    ("JSON transform error", "has a record that does not fit the others", "declare 'columns'"),
)


class JsonProblem(Struct, frozen=True):
    """A json file that cannot be read."""

    file: Path | None
    """None when DuckDB did not say which."""

    line: int | None
    reason: str
    hint: str


def json_problem(message: str) -> JsonProblem | None:
    """Recognise a complaint of the json reader in a raw engine message.

    >>> json_problem('Invalid Input Error: Malformed JSON in file "/d/a.json", at byte 9 in line 3: unexpected').line
    2
    """
    too_large = _TOO_LARGE.search(message)
    if too_large is not None:
        return JsonProblem(
            Path(too_large["file"]) if too_large["file"] is not None else None,
            None,
            f"holds an object larger than the limit of {too_large['limit']} bytes",
            "set layout: array if the file is one array; else write its content as several smaller objects",
        )
    reason = next((found for found in _REASONS if found[0] in message), None)
    if reason is None:
        return None
    place = _PLACE.search(message)
    line = int(place["line"]) if place is not None and place["line"] is not None else None
    if line is not None and "Malformed JSON" in message:
        line = max(1, line - 1)  # the reader has already counted the end of the broken line
    return JsonProblem(Path(place["file"]) if place is not None else None, line, reason[1], reason[2])
