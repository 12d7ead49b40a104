"""Keeps addresses out of the HTTP library's own log.

It writes every address it asks, query and all, to the logger `httpx`; a host may show that log, and an address can hold
a credential. Records of other users of the library in the same process pass.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Final

_own: Final = threading.local()


class _DropOwnRecords(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        del record
        return not getattr(_own, "is_asking", False)


_FILTER: Final = _DropOwnRecords()


@contextlib.contextmanager
def without_http_log() -> Iterator[None]:
    """Drop what the library logs in this thread during the block."""
    logging.getLogger("httpx").addFilter(_FILTER)  # adding it again changes nothing
    before = getattr(_own, "is_asking", False)
    _own.is_asking = True
    try:
        yield
    finally:
        _own.is_asking = before
