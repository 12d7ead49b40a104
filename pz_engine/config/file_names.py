"""Names of files as messages show them."""

from __future__ import annotations

import unicodedata

_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})


def printable(text: str) -> str:
    r"""Escape what would break a line or is no text: control characters, line separators, undecodable bytes.

    >>> printable("näme 😀.sql"), printable("a\nb"), printable("caf\udce9")
    ('näme 😀.sql', 'a\\nb', 'caf\\xe9')
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character) if _is_unprintable(character) else character for character in text)


def is_printable(text: str) -> bool:
    """Tell whether a text is shown as it is."""
    return not any(_is_unprintable(character) for character in text)


def _is_unprintable(character: str) -> bool:
    return unicodedata.category(character) in _UNPRINTABLE


def _escape(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"  # how Python keeps a byte of a name that is not UTF-8
    return character.encode("unicode_escape").decode("ascii")
