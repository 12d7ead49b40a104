"""Byte counts as people write and read them."""

from __future__ import annotations

import re

_PATTERN = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(|b|kb|mb|gb|tb|kib|mib|gib|tib)", re.IGNORECASE)
_UNITS = {
    "": 1, "b": 1,
    "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4,
    "kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4,
}  # fmt: skip


def parse_byte_size(text: str) -> int | None:
    """Read a fixed size; None for a percentage or anything else.

    >>> parse_byte_size("1GiB"), parse_byte_size("512 MB"), parse_byte_size("80%")
    (1073741824, 512000000, None)
    """
    match = _PATTERN.fullmatch(text.strip())
    return int(float(match[1]) * _UNITS[match[2].lower()]) if match else None


def format_byte_size(count: int) -> str:
    """Render a count with one decimal, base 1024.

    >>> format_byte_size(1288490189)
    '1.2 GB'
    """
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"
