"""Stop signals of a command-line run.

The first of SIGINT, SIGTERM or SIGHUP cancels the run and is absorbed; the second finds the default action restored
and ends the process. Hosts install nothing and pass a token instead.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pz_engine.base.cancellation import CancelToken

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stop_signals(cancel: CancelToken, *, install: bool) -> Iterator[None]:
    """Cancel the token on the first stop signal while the block runs; only the main thread may install handlers."""
    if not install or threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in _SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        # A handler may interrupt this thread while it holds the token's guard, so the token is set from another one.
        threading.Thread(target=cancel.set, name="pz-stop").start()

    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
