"""State in a local JSON file, shared safely by threads and processes.

A change reads, checks and replaces the whole file under an operating-system lock on a sibling file, so runs that move
different keys never lose each other's entry and runs that move the same key collide loudly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Generic, TypeVar

from pz_engine.base.atomic_files import write_atomically
from pz_engine.base.file_locks import FileLock, LockHeldError
from pz_engine.base.stable_json import canonical_json, ordinal, parse_json, pretty_json
from pz_engine.errors.exceptions import PzStateError
from pz_engine.errors.unexpected import obstacle
from pz_engine.state.scopes import Scope
from pz_engine.state.store import lost_race

Entry = TypeVar("Entry")

VERSION: Final = 1
LOCK_WAIT_SECONDS: Final = 30.0
_ABSENT: Final = ""
"""Version of a key that has no entry; no serialized entry is empty."""


class _UnreadableError(Exception):
    """The file holds something that is no state."""


class KeyedFile(Generic[Entry]):
    """A `KeyedStore` on one file; one instance lives for one run.

    Args:
        path: the state file; it and its directory are made by the first write.
        scope: how its entries are spelled.
        note: receives a sentence, once, when the content is unreadable.
        lock_wait: longest wait for the file's lock, in seconds.
    """

    def __init__(
        self, path: Path, scope: Scope[Entry], note: Callable[[str], None], *, lock_wait: float = LOCK_WAIT_SECONDS
    ) -> None:
        self._path = path
        self._scope = scope
        self._note = note
        self._lock_path = path.with_name(f"{path.name}.lock")
        self._lock_wait = lock_wait
        self._seen_guard = threading.Lock()
        self._seen: dict[str, str] = {}
        self._has_noted = False

    def get(self, key: str) -> Entry | None:
        """Return the entry and remember its version; unreadable content gives None and a note.

        Raises:
            PzStateError: `PZ0518` when the file cannot be opened, `PZ0519` when a newer version wrote it.
        """
        entries = self._read_or_note()
        entry = entries.get(key) if entries is not None else None
        self._remember(key, entry)
        return entry

    def list_all(self) -> Mapping[str, Entry] | None:
        """Return every entry ordered by key; None when the content is unreadable."""
        return self._read_or_note()

    def set(self, key: str, value: Entry) -> None:
        """Store an entry unless somebody else changed it since this instance read it.

        Raises:
            PzStateError: `PZ0520` when the stored version moved, `PZ0518` when the file cannot be locked or written.
        """
        with self._exclusively():
            entries = self._read_or_empty()
            with self._seen_guard:
                seen = self._seen.get(key)
            if seen is not None and seen != self._version(entries.get(key)):
                raise lost_race(key, "this run's value was not stored")
            entries[key] = value
            self._write(entries)
        self._remember(key, value)

    def remove(self, key: str) -> None:
        """Remove an entry and forget its version; an unreadable file is left as it is.

        Raises:
            PzStateError: `PZ0518` when the file cannot be locked or written.
        """
        with self._seen_guard:
            self._seen.pop(key, None)
        if not self._path.exists():
            return
        with self._exclusively():
            entries = self._read_or_empty()
            if entries.pop(key, None) is not None:
                self._write(entries)

    def _remember(self, key: str, entry: Entry | None) -> None:
        with self._seen_guard:
            self._seen[key] = self._version(entry)

    def _version(self, entry: Entry | None) -> str:
        return _ABSENT if entry is None else canonical_json(self._scope.encode(entry))

    def _read_or_note(self) -> dict[str, Entry] | None:
        try:
            return self._read()
        except _UnreadableError:
            with self._seen_guard:
                is_first = not self._has_noted
                self._has_noted = True
            if is_first:
                self._note(
                    f"the state file {self._path.name} is unreadable; what it held is read in full "
                    "and the next stored value starts a new file"
                )
            return None

    def _read_or_empty(self) -> dict[str, Entry]:
        try:
            return self._read()
        except _UnreadableError:
            return {}

    def _read(self) -> dict[str, Entry]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unavailable("read", error) from error
        try:
            document = parse_json(content)
        except ValueError:
            raise _UnreadableError from None
        if not isinstance(document, dict) or not _is_version(document.get("version")):
            raise _UnreadableError
        if document["version"] > VERSION:
            raise PzStateError(
                "PZ0519",
                f"the state file {self._path.name} has version {document['version']}, this pz knows {VERSION}",
                hint="install the version of pz that wrote it, or a newer one",
            )
        stored = document.get(self._scope.root)
        if not isinstance(stored, dict):
            raise _UnreadableError
        entries: dict[str, Entry] = {}
        for key in sorted(stored, key=ordinal):
            entry = self._scope.decode(stored[key])
            if entry is None:
                raise _UnreadableError
            entries[key] = entry
        return entries

    def _write(self, entries: Mapping[str, Entry]) -> None:
        encoded = {key: self._scope.encode(entries[key]) for key in sorted(entries, key=ordinal)}
        write_atomically(self._path, pretty_json({"version": VERSION, self._scope.root: encoded}))

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        try:
            with FileLock(self._lock_path, wait_seconds=self._lock_wait):
                yield
        except LockHeldError:
            raise PzStateError(
                "PZ0518",
                f"the state file {self._path.name} stayed locked by another process for {self._lock_wait:g} s",
                hint="wait for the other process, then run again",
            ) from None
        except OSError as error:
            raise self._unavailable("written", error) from error

    def _unavailable(self, verb: str, error: OSError) -> PzStateError:
        hint = "check the permissions and free space of .pz/state"
        if isinstance(error, (NotADirectoryError, FileExistsError)):
            hint = f"move '{obstacle(str(self._path))}'; a folder is needed in its place"
        return PzStateError(
            "PZ0518",
            f"the state file {self._path.name} cannot be {verb}: {error.strerror or type(error).__name__}",
            hint=hint,
        )


def _is_version(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
