"""Cooperative cancellation.

A token may be set from any thread, once; callbacks let a blocked statement or driver call be interrupted.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable


class Cancelled(Exception):  # noqa: N818 - a control signal, never reported as an error
    """Work stopped because its token was set; never a failure and never retried."""


class CancelToken:
    """A flag with callbacks; a child is set with its parent but not the other way round."""

    def __init__(self, parent: CancelToken | None = None) -> None:
        self._event = threading.Event()
        self._guard = threading.Lock()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next = 0
        self._detach: Callable[[], None] = lambda: None
        if parent is not None:
            self._detach = parent.on_cancel(self.set)

    def set(self) -> None:
        """Cancel: run every callback once, in the calling thread."""
        with self._guard:
            if self._event.is_set():
                return
            self._event.set()
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            with contextlib.suppress(Exception):
                callback()

    def is_set(self) -> bool:
        """Tell whether the work should stop."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep for at most `seconds`, however many they are; True when cancelled meanwhile."""
        return self._event.wait(min(seconds, threading.TIMEOUT_MAX))

    def raise_if_set(self) -> None:
        """Raise `Cancelled` when the token is set."""
        if self._event.is_set():
            raise Cancelled

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Register a callback (run at once when already set) and return a function that removes it."""
        with self._guard:
            if not self._event.is_set():
                key = self._next
                self._next += 1
                self._callbacks[key] = callback
                return lambda: self._forget(key)
        callback()
        return lambda: None

    def detach(self) -> None:
        """Stop listening to the parent."""
        self._detach()

    def _forget(self, key: int) -> None:
        with self._guard:
            self._callbacks.pop(key, None)
