"""`--vars`: a JSON object that overrides `vars:` name by name."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from pz_engine.errors.exceptions import PzConfigError


def parse_vars(text: str | None) -> dict[str, Any]:
    """Read the option; None is an empty object, whole numbers are integers.

    Raises:
        PzConfigError: `PZ0102`; the text is never echoed.

    >>> parse_vars('{"day": "2026-01-02", "limit": 10.0}')
    {'day': '2026-01-02', 'limit': 10}
    """
    if text is None:
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
        # Half of a surrogate pair is no text, and 1e999 is no number.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        whole = _whole(value)
    except (ValueError, RecursionError):
        raise _problem() from None
    if not isinstance(whole, dict):
        raise _problem()
    return whole


def _problem() -> PzConfigError:
    return PzConfigError(
        "PZ0102",
        "--vars must be a JSON object",
        hint="""pass --vars '{"name": "value"}' with single quotes around it""",
    )


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is given twice")
    return found


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return value
