"""A slow, broken or hanging terminal costs its output and nothing else."""

from __future__ import annotations

import io
import json
import os
import threading
import time

import pytest

from pz_engine.base.stable_json import compact_json
from pz_engine.cli.render.terminal import Terminal


class Stuck(io.StringIO):
    """A stream whose reader never takes anything."""

    def __init__(self) -> None:
        super().__init__()
        self.release = threading.Event()

    def write(self, text: str) -> int:
        self.release.wait(10)
        return super().write(text)


class Broken(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_lines_keep_their_order() -> None:
    """Lines of both streams are written in the order they were given."""
    both = io.StringIO()
    terminal = Terminal(both, both, {})
    for number in range(100):
        (terminal.out if number % 2 else terminal.err)(str(number))
    assert terminal.close()
    assert both.getvalue() == "".join(f"{number}\n" for number in range(100))


def test_closing_an_unused_terminal_is_fine() -> None:
    """Nothing printed, nothing to wait for; and it can be closed twice."""
    terminal = Terminal(io.StringIO(), None, {})
    assert terminal.close()
    terminal.out("x")
    assert terminal.close()
    assert terminal.close()


def test_hanging_terminal_costs_only_the_bound() -> None:
    """Printing never waits, and closing gives up after its bound."""
    stuck = Stuck()
    terminal = Terminal(stuck, io.StringIO(), {})
    terminal.drain_seconds = 0.05
    started = time.monotonic()
    for _ in range(1000):
        terminal.out("line")
    assert not terminal.close()
    assert time.monotonic() - started < 2
    stuck.release.set()


def test_broken_pipe_silences_one_stream() -> None:
    """A reader that has gone silences standard output; standard error is still written."""
    err = io.StringIO()
    terminal = Terminal(Broken(), err, {})
    terminal.out("lost")
    terminal.err("kept")
    terminal.out("lost")
    assert terminal.close()
    assert err.getvalue() == "kept\n"


def test_broken_pipe_of_a_process_leaves_no_trace() -> None:
    """A real pipe without a reader is replaced, so that nothing fails when the process ends."""
    reader, writer = os.pipe()
    stream = os.fdopen(writer, "w")
    os.close(reader)
    terminal = Terminal(stream, io.StringIO(), {})
    terminal.out("lost")
    assert terminal.close()
    stream.write("after")
    stream.close()


def test_missing_streams_are_survived() -> None:
    """A process without standard streams prints nothing and fails nothing."""
    terminal = Terminal(None, None, {})
    terminal.out("a")
    terminal.err("b")
    assert terminal.close()
    assert not terminal.is_interactive


def test_odd_characters_never_fail() -> None:
    """Text that has no encoding is written escaped."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    terminal = Terminal(stream, None, {})
    terminal.out("naïve \udc80")
    assert terminal.close()
    assert raw.getvalue() == "naïve \\udc80\n".encode()


@pytest.mark.parametrize(
    ("env", "is_interactive", "has_colour"),
    [
        ({}, True, True),
        ({"CI": ""}, False, False),
        ({"CI": "true"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({"NO_COLOR": ""}, True, False),
    ],
)
def test_interactive_means_a_terminal_outside_ci(env: dict[str, str], is_interactive: bool, has_colour: bool) -> None:
    """A terminal is interactive unless CI is set at all, and coloured unless NO_COLOR is."""
    terminal = Terminal(Screen(), None, env)
    assert (terminal.is_interactive, terminal.has_colour) == (is_interactive, has_colour)
    assert not Terminal(io.StringIO(), None, env).is_interactive


def test_nothing_is_written_that_a_terminal_obeys() -> None:
    """Escape sequences from a state file or a server are spelled out, and a line of JSON stays JSON with the same text."""
    both = io.StringIO()
    terminal = Terminal(both, both, {})
    terminal.out("a\x1b[2Jb\x9bc\rd\te\u2028")
    terminal.out(compact_json({"reason": "\x9b1m\x7f"}))
    assert terminal.close()
    first, second = both.getvalue().splitlines()
    assert first == "a\\u001b[2Jb\\u009bc\\u000dd\te\\u2028"
    assert json.loads(second) == {"reason": "\x9b1m\x7f"}
