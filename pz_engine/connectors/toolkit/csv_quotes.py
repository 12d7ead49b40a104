"""Finds quotes that a lenient csv reader would take off without a word: `"a"b`, `""a`, `a"b"`.

Only a doubt is raised here, at the speed of a search; a strict reader decides.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO


class QuoteWatch:
    r"""Looks at the bytes of one csv text, block by block, on their way to a reader.

    >>> watch = QuoteWatch(",")
    >>> watch.see(b'1,"a ""b"" c"\n2,"'); watch.see(b'x"\n'); watch.end(); watch.is_doubtful
    False
    >>> watch = QuoteWatch(",")
    >>> watch.see(b'1,"a"b\n'); watch.is_doubtful
    True
    """

    def __init__(self, delimiter: str) -> None:
        mark = delimiter.encode()
        self._edges = (mark, b"\n", b"\r")
        self._empty_then_text = re.compile(rb'[%s\n\r](?:"")+[^"%s\n\r]' % (re.escape(mark), re.escape(mark)))
        self.is_inside = False
        """What was seen ends within quotes."""

        self._held = b""
        self._before = b"\n"
        self.is_doubtful = False
        """A strict reader may refuse what was seen."""

        self.is_cleared = False
        """A strict reader has read the whole text and refuses nothing."""

    def see(self, block: bytes) -> None:
        """Look at the next bytes; quotes at their end are looked at together with what follows."""
        if not self._held and b'"' not in block:
            self._before = block[-1:] or self._before
            return
        data = self._held + block
        text = data.rstrip(b'"')
        self._held = data[len(text) :]
        self._look(text, is_last=False)

    def end(self) -> None:
        """Look at what is left; nothing follows it."""
        self._look(self._held, is_last=True)

    def _look(self, data: bytes, *, is_last: bool) -> None:
        if self.is_doubtful or not data:
            return
        text = self._before + data
        self._before = text[-1:]
        if b'"' not in data:
            return
        parts = text.replace(b'""', b"").split(b'"')
        opening = parts[1 if self.is_inside else 0 : -1 : 2]
        closing = parts[1 if self.is_inside else 2 :: 2]
        if is_last and closing and not closing[-1]:
            closing = closing[:-1]
        opened = b'"'.join(opening) + b'"' if opening else b""
        closed = b'"' + b'"'.join(closing) if closing else b""
        self.is_doubtful = (
            sum(opened.count(edge + b'"') for edge in self._edges) != len(opening)
            or sum(closed.count(b'"' + edge) for edge in self._edges) != len(closing)
            or self._empty_then_text.search(text) is not None
        )
        self.is_inside = self.is_inside != (len(parts) % 2 == 0)


class WatchedStream:
    """A binary stream that shows a watch what is read from it."""

    def __init__(self, stream: BinaryIO, watch: QuoteWatch) -> None:
        self._stream = stream
        self._watch = watch

    def read(self, size: int = -1) -> bytes:
        """Read as the stream itself does."""
        block = self._stream.read(size)
        if block:
            self._watch.see(block)
        else:
            self._watch.end()
        return block

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
