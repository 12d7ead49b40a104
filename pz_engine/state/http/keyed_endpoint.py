"""A `KeyedStore` on one scope of a state endpoint.

Versions come from the endpoint's entity tags and are never computed. An entry whose version is unknown is written only
where nothing is stored.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from pz_engine.base.stable_json import compact_json, ordinal, parse_json
from pz_engine.state.http.client import ConflictError, StateClient
from pz_engine.state.scopes import Scope
from pz_engine.state.store import lost_race

Entry = TypeVar("Entry")

_FOUND: Final = 200
_ABSENT: Final = 204


class KeyedEndpoint(Generic[Entry]):
    """One scope; one instance lives for one run.

    Args:
        client: shared by the scopes of a run.
        scope: how its entries are spelled.
        note: receives a sentence, once, when content is unreadable.
    """

    def __init__(self, client: StateClient, scope: Scope[Entry], note: Callable[[str], None]) -> None:
        self._client = client
        self._scope = scope
        self._note = note
        self._guard = threading.Lock()
        self._versions: dict[str, int] = {}
        self._has_noted = False

    def get(self, key: str) -> Entry | None:
        """Return the entry and remember its version, that of an unreadable one too.

        Raises:
            PzStateError: `PZ0518`, the endpoint is not usable.
        """
        try:
            answer = self._client.send("GET", self._scope.name, key, accept=frozenset({_FOUND, _ABSENT}))
        except ConflictError:
            raise self._client.unusable("answered a read with a conflict") from None
        if answer.status == _ABSENT:
            self._remember(key, None)
            return None
        self._remember(key, answer.version)
        entry = self._decode(answer.content)
        if entry is None:
            self._say_unreadable()
        return entry

    def list_all(self) -> Mapping[str, Entry] | None:
        """Return every entry ordered by key; None when one of them, or the list, is unreadable.

        Raises:
            PzStateError: `PZ0518`, the endpoint is not usable.
        """
        try:
            answer = self._client.send("GET", self._scope.name, accept=frozenset({_FOUND}))
        except ConflictError:
            raise self._client.unusable("answered a read with a conflict") from None
        entries = self._decode_list(answer.content)
        if entries is None:
            self._say_unreadable()
        return entries

    def set(self, key: str, value: Entry) -> None:
        """Store an entry unless the endpoint holds another version than this instance saw.

        Raises:
            PzStateError: `PZ0520` when it does, `PZ0518` when the endpoint is not usable.
        """
        with self._guard:
            version = self._versions.get(key)
        content = compact_json(self._scope.encode(value)).encode()
        accepted = frozenset({200, 201, 204})
        try:
            answer = self._client.send("PUT", self._scope.name, key, accept=accepted, content=content, if_match=version)
        except ConflictError as conflict:
            self._remember(key, None)
            if conflict.is_repeat and self.get(key) == value:
                return  # the first try arrived; only its answer was lost
            self._remember(key, None)
            raise lost_race(key, "this run's value was not stored") from None
        self._remember(key, answer.version)

    def remove(self, key: str) -> None:
        """Remove an entry and forget its version.

        Raises:
            PzStateError: `PZ0520` when the endpoint refuses, `PZ0518` when it is not usable.
        """
        self._remember(key, None)
        try:
            self._client.send("DELETE", self._scope.name, key, accept=frozenset({_FOUND, _ABSENT}))
        except ConflictError:
            raise lost_race(key, "it was not removed") from None

    def _remember(self, key: str, version: int | None) -> None:
        with self._guard:
            if version is None:
                self._versions.pop(key, None)
            else:
                self._versions[key] = version

    def _decode(self, content: bytes | str) -> Entry | None:
        try:
            return self._scope.decode(parse_json(content))
        except ValueError:
            return None

    def _decode_list(self, content: bytes) -> dict[str, Entry] | None:
        try:
            listed: Any = parse_json(content)["entries"]
            pairs = [(item["key"], self._decode(item["payload"])) for item in listed]
        except (ValueError, KeyError, TypeError):
            return None
        if any(not isinstance(key, str) or entry is None for key, entry in pairs):
            return None
        return {key: entry for key, entry in sorted(pairs, key=lambda pair: ordinal(pair[0])) if entry is not None}

    def _say_unreadable(self) -> None:
        with self._guard:
            is_first = not self._has_noted
            self._has_noted = True
        if is_first:
            self._note(
                f"the {self._scope.name} on {self._client.host} hold an entry that is unreadable; what it stood for is "
                "read in full and the next stored value replaces it"
            )
