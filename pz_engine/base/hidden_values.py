"""Values that came from outside the project's files: the environment and `--vars`.

They may be credentials, so no text that leaves the engine shows them; the name they were given under stands in their
place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

HIDDEN: Final = "***"
"""Stands for a value whose name cannot be told."""

SHORTEST: Final = 6
"""Characters; a shorter value is too likely to be part of an ordinary word."""


class RecordingEnvironment(Mapping[str, str]):
    """An environment that remembers which variables were read."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.used: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        value = self._values[name]
        self.used[name] = value
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class HiddenValues:
    """Takes values out of texts."""

    def __init__(self, shown_as: Mapping[str, str] | None = None) -> None:
        """Prepare the replacement.

        Args:
            shown_as: what stands in place of each value; values under `SHORTEST` characters are passed over.
        """
        spelled: dict[str, str] = {}
        for value, shown in (shown_as or {}).items():
            if len(value.strip()) >= SHORTEST:
                spelled.setdefault(value, shown)
                spelled.setdefault(quote(value, safe=""), shown)
        self._shown = {value.lower(): shown for value, shown in spelled.items()}
        longest_first = sorted(self._shown, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE) if spelled else None

    def hide(self, text: str) -> str:
        """Return the text without any of the values, however they are capitalized: host names come back in lower case.

        >>> HiddenValues({"/srv/s3cret": "${ROOT}"}).hide("cannot read /srv/s3cret/a.csv")
        'cannot read ${ROOT}/a.csv'
        """
        if self._values is None:
            return text
        return self._values.sub(lambda found: self._shown.get(found[0].lower(), HIDDEN), text)

    @classmethod
    def of(cls, used: Mapping[str, str], variables: Mapping[str, Any]) -> HiddenValues:
        """Hide the environment variables that were read, and every text among the variables of an invocation.

        Args:
            used: variables by name.
            variables: `--vars`, as parsed.
        """
        shown = {text: f"[var {name}]" for name, value in variables.items() for text in _texts(value)}
        return cls({**shown, **{value: f"${{{name}}}" for name, value in used.items()}})


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)
