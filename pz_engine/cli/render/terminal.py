"""The only place that writes to standard output and standard error.

Lines are queued and written by one thread, so whoever prints never waits for a slow, hanging or closed terminal; what
is still queued when the closing bound is over is dropped.
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import re
import select
import sys
import threading
from collections.abc import Mapping
from typing import TextIO

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What a terminal would obey and what is no text. It is written the way JSON escapes it, so a line of JSON stays one."""

DRAIN_SECONDS = 5.0
"""How long a finished run waits for its output to be read."""


class Terminal:
    """Standard output and standard error of one invocation."""

    def __init__(self, out: TextIO | None, err: TextIO | None, env: Mapping[str, str]) -> None:
        self._streams: dict[bool, TextIO | None] = {False: out, True: err}
        self._queue: queue.SimpleQueue[tuple[bool, str] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._start_guard = threading.Lock()
        self._is_abandoned = False
        self.drain_seconds: float | None = None
        """Bound of the closing wait; None waits as long as the reader of a pipe takes."""

        self.lost_output: OSError | None = None
        """Why standard output could not be written, unless its reader just went away."""

        self.is_interactive = _is_terminal(out) and "CI" not in env and env.get("TERM") != "dumb"
        self.has_colour = self.is_interactive and "NO_COLOR" not in env
        for stream in (out, err):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                with contextlib.suppress(OSError, ValueError):
                    reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")

    @property
    def out_stream(self) -> TextIO | None:
        """The stream of standard output, for the live display."""
        return self._streams[False]

    def out(self, line: str) -> None:
        """Queue a line for standard output."""
        self._put(False, line)

    def err(self, line: str) -> None:
        """Queue a line for standard error."""
        self._put(True, line)

    def ask(self, question: str) -> str | None:
        """Print a question after everything queued and return the line typed; None when nobody can answer."""
        if not _is_terminal(sys.stdin):
            return None
        self.out(question)
        self.close()
        return sys.stdin.readline()

    def close(self) -> bool:
        """Wait until everything queued is written, at most `drain_seconds`.

        Returns:
            False when lines were dropped because nobody took them; the process must then end without flushing.
        """
        with self._start_guard:
            writer = self._writer
        if writer is None:
            return not self._is_abandoned
        self._queue.put(None)
        writer.join(0 if self._is_abandoned else self.drain_seconds)
        if writer.is_alive() or self._is_abandoned:
            self._is_abandoned = True
            self._warn_past_the_queue("warning: the terminal did not take all output in time; the rest was dropped\n")
            return False
        self._writer = None
        return True

    def abandon(self) -> None:
        """Give up on the terminal: nothing more is written and `close` reports it."""
        self._is_abandoned = True

    def _put(self, is_error: bool, line: str) -> None:
        with self._start_guard:
            if self._writer is None:
                self._writer = threading.Thread(target=self._write, name="pz-terminal", daemon=True)
                self._writer.start()
        self._queue.put((is_error, _CONTROL.sub(_escape, line)))

    def _write(self) -> None:
        while (item := self._queue.get()) is not None and not self._is_abandoned:
            is_error, line = item
            stream = self._streams[is_error]
            if stream is None:
                continue
            try:
                stream.write(f"{line}\n")
                stream.flush()
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and not is_error and error.errno not in {errno.EPIPE, errno.EBADF}:
                    self.lost_output = error
                self._streams[is_error] = None
                _silence(stream)

    def _warn_past_the_queue(self, text: str) -> None:
        stream = self._streams[True]
        with contextlib.suppress(OSError, ValueError, AttributeError):
            descriptor = stream.fileno()  # type: ignore[union-attr]  # a missing stream is suppressed like a broken one
            if select.select([], [descriptor], [], 0)[1]:
                os.write(descriptor, text.encode())


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def _silence(stream: TextIO) -> None:
    """Point a broken stream at nothing, so that flushing it when the process ends cannot fail again."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, stream.fileno())
        finally:
            os.close(null)
