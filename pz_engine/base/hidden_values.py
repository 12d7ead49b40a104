"""Values that came from outside the project's files: the environment and `--vars`.

They may be credentials, so no text that leaves the engine shows them; the name they were given under stands in their
place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

HIDDEN: Final = "***"
"""Stands for a value whose name cannot be told."""

SHORTEST: Final = 6
"""Characters; a shorter value is too likely to be part of an ordinary word."""


_LONGEST_WORD = 16
"""Characters from which a folder's name is taken for a credential even when it is a word, a number or a date."""

_MOST_FOLDERS = 24
_WORD = re.compile("[a-z_.-]*|[0-9_.-]*")
_CREDENTIAL = re.compile(r"(?i)(?:password|passwd|pwd|secret|token|key|signature|sig)\s*=\s*'?([^;&\s']+)")


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
            shown_as: what stands in place of each value, and of the parts of an address, a path or a connection string;
                anything under `SHORTEST` characters is passed over.
        """
        spelled: dict[str, str] = {}
        for value, shown in (shown_as or {}).items():
            for text in {each: None for part in (value, *_parts(value)) for each in (part, unquote(part))}:
                if len(text.strip()) >= SHORTEST:
                    spelled.setdefault(text, shown)
                    spelled.setdefault(quote(text, safe=""), shown)
                    spelled.setdefault(quote(text), shown)
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


def _parts(value: str) -> Iterator[str]:
    """Yield what a message may show of a value without showing all of it.

    Of an address: host, user, password, values of the query; of it and of a path: every two or more folders in a row, and
    each folder that does not look like a word; of a connection string: what follows `password=` and its like.
    """
    for found in _CREDENTIAL.finditer(value):
        yield found[1]
    try:
        address = urlsplit(value)
    except ValueError:
        return
    if address.netloc:
        yield from (address.netloc, address.hostname or "", address.username or "", address.password or "")
        yield address.query
        yield from (text for _, text in parse_qsl(address.query))
    folders = [folder for folder in address.path.split("/") if folder]
    if "/" not in value:
        return
    for start, end in combinations(range(len(folders[:_MOST_FOLDERS]) + 1), 2):
        if end - start > 1:
            yield "/".join(folders[start:end])
    for folder in folders:
        if len(folder) >= _LONGEST_WORD or not _WORD.fullmatch(folder):
            yield folder


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)
