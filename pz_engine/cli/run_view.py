"""Runs a project on behalf of a verb and shows it: as lines, as a live tree, or as JSON lines.

The view only listens. It can neither fail a run nor hold it up.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from pz_engine.app.host import RunOutcome, RunRequest, Selection
from pz_engine.base.cancellation import CancelToken
from pz_engine.base.stop_signals import stop_signals
from pz_engine.cli.exit_codes import ExitCode
from pz_engine.cli.render import console
from pz_engine.cli.render.live_display import LiveDisplay
from pz_engine.cli.render.ndjson import NdjsonWriter
from pz_engine.cli.render.terminal import DRAIN_SECONDS, Terminal
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.events.types import ConnectorLog, NodeStarted, RetentionSwept, RunEvent, RunStarted


class RunOptions(Struct, frozen=True):
    """What a verb was asked for."""

    project_dir: Path
    vars: Mapping[str, Any]
    mode: Literal["run", "test"]
    selection: Selection
    verbosity: int
    is_json: bool
    full_refresh: bool = False
    fail_fast: bool = False
    check_lock: bool = True
    state_url: str | None = None
    retry_from: str | None = None


def run_and_show(terminal: Terminal, options: RunOptions) -> ExitCode:
    """Run the project, show it, and return the exit code.

    Raises:
        PzValidationError: the project was refused before anything ran.
        PzStateError: the state store is not usable.
    """
    return _run_once(terminal, options, CancelToken())[0]


def run_until_caught_up(terminal: Terminal, options: RunOptions, max_runs: int) -> ExitCode:
    """Run the project again and again, show each pass, and say at the end why there is no further one.

    Raises:
        PzValidationError: the project was refused before a pass ran.
        PzStateError: the state store is not usable.
    """
    cancel = CancelToken()
    passes = 0
    while True:
        code, outcome = _run_once(terminal, options, cancel)
        passes += 1
        from pz_engine.app.catch_up import next_step

        reason = next_step(outcome, passes, max_runs)
        if reason is not None:
            terminal.err(f"{passes} pass{'' if passes == 1 else 'es'}, stopped because: {reason}")
            return code
        options = replace(options, full_refresh=False)


def _run_once(terminal: Terminal, options: RunOptions, cancel: CancelToken) -> tuple[ExitCode, RunOutcome]:
    terminal.drain_seconds = DRAIN_SECONDS
    view = RunView(terminal, options)

    shown: list[RunOutcome] = []

    def show_end(outcome: RunOutcome) -> None:
        shown.append(outcome)
        view.close()
        _show_end(terminal, options, view, outcome)

    try:
        with stop_signals(cancel, install=True):
            # Imported here: a signal that arrives while the engine loads is a cancellation already.
            from pz_engine.app.run import run_project

            outcome = run_project(
                RunRequest(
                    project_dir=options.project_dir,
                    vars=options.vars,
                    mode=options.mode,
                    selection=options.selection,
                    fail_fast=options.fail_fast,
                    full_refresh=options.full_refresh,
                    check_lock=options.check_lock,
                    state_url=options.state_url,
                    retry_from=options.retry_from,
                    event_sink=view.show_event,
                    note_sink=view.show_note,
                    alert_sink=view.show_alert,
                    warning_sink=view.show_warning,
                    on_finished=show_end,
                    cancel=cancel,
                )
            )
    finally:
        view.close()
    if not shown:
        _show_end(terminal, options, view, outcome)
    if options.verbosity >= console.VERBOSE:
        for key, reason in outcome.watermarks_held.items():
            if not any(key in note for note in outcome.notes):
                view.show_note(f"the watermark of {key} stays: {reason}")
    return ExitCode(outcome.exit_code), outcome


class RunView:
    """What a run shows while it lives."""

    def __init__(self, terminal: Terminal, options: RunOptions) -> None:
        self._terminal = terminal
        self._verbosity = options.verbosity
        self._is_json = options.is_json
        self._title = "pz retry" if options.retry_from is not None else f"pz {options.mode}"
        self._writer = NdjsonWriter(terminal)
        self._live: LiveDisplay | None = None
        self.has_begun = False
        """Whether any node started."""

        self.swept: RetentionSwept | None = None

    def show_event(self, event: RunEvent) -> None:
        """Show one event."""
        self.has_begun = self.has_begun or isinstance(event, NodeStarted)
        if isinstance(event, RetentionSwept):
            self.swept = event
        if self._is_json:
            self._writer(event)
            return
        if isinstance(event, RunStarted):
            self._live = self._open_live()
        if isinstance(event, RetentionSwept):
            return
        if self._live is not None:
            self._live(event)
        if self._live is None or isinstance(event, ConnectorLog):
            for line in console.event_lines(event, self._verbosity):
                self._print(line)

    def show_note(self, note: str) -> None:
        """Show one note; called from any thread."""
        if self._verbosity > console.QUIET:
            self._print(console.note_line(note))

    def show_alert(self, text: str) -> None:
        """Show what must be seen however little was asked for; called from any thread."""
        live = self._live
        if live is not None:
            live.say(f"warning: {text}")
        else:
            self._terminal.err(f"warning: {text}")

    def show_warning(self, warning: Diagnostic) -> None:
        """Show a warning found before the run."""
        if self._verbosity > console.QUIET:
            self._terminal.err(console.warning_line(warning))

    def close(self) -> None:
        """Stop the live tree, leaving its last state on the terminal."""
        live, self._live = self._live, None
        if live is not None and not live.close(DRAIN_SECONDS):
            self._terminal.abandon()

    def _open_live(self) -> LiveDisplay | None:
        stream = self._terminal.out_stream
        if stream is None or not self._terminal.is_interactive or self._verbosity == console.QUIET:
            return None
        return LiveDisplay(stream, self._title, has_colour=self._terminal.has_colour)

    def _print(self, line: str) -> None:
        live = self._live
        if live is not None:
            live.say(line)
        elif self._is_json:
            self._terminal.err(line)
        else:
            self._terminal.out(line)


def _show_end(terminal: Terminal, options: RunOptions, view: RunView, outcome: RunOutcome) -> None:
    """Print how a run ended, or that there was nothing to start; state has not advanced yet."""
    write = terminal.err if options.is_json else terminal.out
    is_cancelled = outcome.problem is not None
    if is_cancelled and not view.has_begun:
        terminal.err("cancelled: the run was stopped before any node started")
        return
    if not outcome.results and options.retry_from is not None:
        return  # a note has said why there is nothing to do
    if not outcome.results and options.mode == "test":
        write("no checks to run")
        return
    if is_cancelled:
        terminal.err("cancelled: the run was stopped before it finished")
    write(console.summary_line(outcome.run_id, outcome.results, outcome.results_path))
    swept = console.retention_line(view.swept) if view.swept is not None else None
    if swept is not None and options.verbosity > console.QUIET:
        write(swept)
