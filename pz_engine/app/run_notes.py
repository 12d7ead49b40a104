"""The notes of a run: sentences for a person, without any hidden value."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from pz_engine.app.host import RunRequest
from pz_engine.base.hidden_values import HiddenValues


class RunNotes(Struct):
    """Notes of one run, serialized."""

    request: RunRequest
    hidden: HiddenValues
    texts: list[str] = field(default_factory=list)

    def __call__(self, text: str) -> None:
        """Note something of interest."""
        self._say(text, self.request.note_sink)

    def alert(self, text: str) -> None:
        """Say what a person has to see even where notes are not shown."""
        self._say(text, self.request.alert_sink or self.request.note_sink)

    def _say(self, text: str, sink: Callable[[str], None] | None) -> None:
        text = self.hidden.hide(text)
        self.texts.append(text)
        if sink is not None:
            sink(text)
