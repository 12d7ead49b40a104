"""Bounds of a slice as query parameters.

A parameter whose bound has no value is left out. Timestamps travel in whole seconds: the lower one is cut and the upper
one rounded up, so that a server that compares seconds loses no row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

NAMES: Final = ("watermark", "window_upper")

_BINDING = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_TIMESTAMP = "%Y-%m-%dT%H:%M:%S.%f"


def binding_problem(value: Any) -> str | None:
    """Return what is wrong with the bindings in a query value, or None."""
    if not isinstance(value, str):
        return None
    unknown = [name for name in _BINDING.findall(value) if name not in NAMES]
    if unknown:
        return f"names '{unknown[0]}'; known are {' and '.join(NAMES)}"
    rest = _BINDING.sub("", value)
    return "has a malformed {{ }}" if "{{" in rest or "}}" in rest else None


def bind(query: Mapping[str, Any], watermark: str | None, upper: str | None) -> dict[str, str]:
    """Return the parameters of the first request.

    >>> bind({"since": "{{ watermark }}", "limit": 5}, "2026-01-02T03:04:05.900000", None)
    {'since': '2026-01-02T03:04:05Z', 'limit': '5'}
    >>> bind({"since": "{{ watermark }}"}, None, None)
    {}
    """
    values = {"watermark": _lower(watermark), "window_upper": _upper(upper)}
    bound: dict[str, str] = {}
    for name, value in query.items():
        text = _text(value)
        used = _BINDING.findall(text)
        if all(values[each] is not None for each in used):
            bound[name] = _BINDING.sub(lambda match: values[match[1]] or "", text)
    return bound


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _lower(value: str | None) -> str | None:
    moment = _moment(value)
    return value if moment is None else f"{moment:%Y-%m-%dT%H:%M:%S}Z"


def _upper(value: str | None) -> str | None:
    moment = _moment(value)
    if moment is None:
        return value
    if moment.microsecond:
        moment = moment.replace(microsecond=0) + timedelta(seconds=1)
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z"


def _moment(value: str | None) -> datetime | None:
    """Return the instant a canonical timestamp spells; None for a value of another type."""
    if value is None or "T" not in value:
        return None
    return datetime.strptime(value, _TIMESTAMP)  # noqa: DTZ007 - canonical texts are UTC and carry no zone
