"""Column names of a delimited file's header line.

Names are unique without regard to case, because DuckDB's are.
"""

from __future__ import annotations

from collections.abc import Iterable


def header_names(fields: Iterable[str]) -> tuple[str, ...]:
    """Name every field: a missing name gets its position, a repeated one a number.

    >>> header_names(["id", "", "ID"])
    ('id', 'column1', 'ID_1')
    """
    names: list[str] = []
    taken: set[str] = set()
    for position, field in enumerate(fields):
        base = field.strip() or f"column{position}"
        name, number = base, 0
        while name.lower() in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name.lower())
        names.append(name)
    return tuple(names)


def is_repeated(fields: Iterable[str], name: str) -> bool:
    """Tell whether a header has a name more than once, without regard to case."""
    return sum(field.strip().lower() == name.lower() for field in fields) > 1


def match_column(names: Iterable[str], wanted: str) -> str | None:
    """Return the name that a column reference means: the same spelling first, then the same letters.

    >>> match_column(("Id", "qty"), "id")
    'Id'
    """
    known = tuple(names)
    if wanted in known:
        return wanted
    return next((name for name in known if name.lower() == wanted.lower()), None)
