"""Text as messages show it: on one line, with nothing that a terminal obeys or an eye misses."""

from __future__ import annotations

import unicodedata

_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
_HARMLESS = " \u200c\u200d"
"""The blank, and what joins the parts of letters and emoji."""


def printable(text: str) -> str:
    r"""Escape what breaks a line, cannot be seen or is no text: control characters, odd blanks, undecodable bytes.

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
    return unicodedata.category(character) in _UNPRINTABLE and character not in _HARMLESS


def _escape(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"  # how Python keeps a byte of a name that is not UTF-8
    return character.encode("unicode_escape").decode("ascii")
