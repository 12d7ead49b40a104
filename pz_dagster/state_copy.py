"""Keeps a copy of a run's positions in the Dagster instance while an op runs.

The engine's own store stays the only one that is asked and compared. What it stored is queued here on the engine's
thread; the instance is read and written on the op's thread only.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Any, Generic, TypeVar

import dagster as dg

from pz_dagster.project import PzProject
from pz_dagster.reconciliation import TOKENS, WATERMARKS, CopyRecord
from pz_dagster.snapshot import Snapshot
from pz_dagster.state_records import CopyUnavailableError, state_key, write_records
from pz_dagster.state_restore import copy_of, fingerprint_of, is_copied, reconcile, stamped
from pz_engine import KeyedStore, PzConfigError, PzStateError, PzValidationError, ScopedStore, SourceLoadNode

Entry = TypeVar("Entry")


class DagsterStateCopy:
    """The copy of one project's state, for one op.

    Args:
        instance: where copies are kept.
        project: the project.
        snapshot: what its definitions were built from.
        prefix: key prefix of its assets.
        env: laid over the process environment for `${NAME}`.
        dagster_run_id: the Dagster run of the op.
    """

    def __init__(
        self,
        instance: dg.DagsterInstance,
        project: PzProject,
        snapshot: Snapshot,
        *,
        prefix: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        dagster_run_id: str | None = None,
    ) -> None:
        self._instance = instance
        self._project = project
        self._snapshot = snapshot
        self._prefix = prefix
        self._env = env
        self._dagster_run_id = dagster_run_id
        self._owner = threading.get_ident()
        self._guard = threading.Lock()
        self._pending: dict[str, CopyRecord] = {}

    def reconcile(self, running: Collection[str]) -> list[str]:
        """Make the positions of the nodes that run agree with their copies; returns warnings.

        Args:
            running: node ids, ancestors included.
        """
        try:
            done = reconcile(
                self._instance,
                self._project,
                prefix=self._prefix,
                names=self._names(running),
                env=self._env,
                dagster_run_id=self._dagster_run_id,
                writes_copies=False,
                asks_remote=False,
            )
        except CopyUnavailableError as error:
            return [str(error.diagnostic)]
        except (PzStateError, PzConfigError, PzValidationError):
            return []  # the engine meets the same and says so
        self._queue(done.to_copy)
        return [str(problem) for problem in done.problems]

    def wrap(self, store: ScopedStore[Any]) -> KeyedStore[Any]:
        """Decorate a store so that what it stores is copied; baselines are not."""
        return _CopiedStore(store, self) if store.scope in (WATERMARKS, TOKENS) else store

    def write(self, run_id: str | None) -> list[str]:
        """Write what is queued as one observation; returns warnings.

        Does nothing on any thread but the op's: a generator that is dropped may end anywhere.
        """
        if threading.get_ident() != self._owner:
            return []
        with self._guard:
            records, self._pending = tuple(self._pending.values()), {}
        if not records:
            return []
        name = self._snapshot.project_name
        key = state_key(name, self._prefix)
        try:
            write_records(self._instance, key, stamped(records, run_id), self._dagster_run_id, project=name)
        except CopyUnavailableError as error:
            return [str(error.diagnostic)]
        return []

    def stored(self, name: str, entry: Mapping[str, Any] | None, previous: Mapping[str, Any] | None) -> None:
        """Queue the copy of an entry that was just stored or removed; called from the engine's threads."""
        may_copy = is_copied(self._snapshot, name, entry)
        if not may_copy and (previous is None or not is_copied(self._snapshot, name, previous)):
            return
        self._queue([copy_of(name, entry if may_copy else None, previous=fingerprint_of(previous))])

    def _queue(self, records: Collection[CopyRecord]) -> None:
        with self._guard:
            for record in records:
                self._pending[record.name] = record

    def _names(self, running: Collection[str]) -> set[str]:
        """Return the positions of the loads that run: every cursor, and tokens that may have been copied."""
        from pz_engine import has_public_tokens

        found = set()
        for node in self._snapshot.compiled.nodes:
            if isinstance(node, SourceLoadNode) and node.id in running:
                connection = self._snapshot.compiled.connections[node.connection]
                if node.id in self._snapshot.incremental:
                    found.add(f"{WATERMARKS}/{node.key}")
                elif has_public_tokens(connection.connector):
                    found.add(f"{TOKENS}/{node.key}")
        return found


class _CopiedStore(Generic[Entry]):
    """A store that tells the copy what it stored."""

    def __init__(self, store: ScopedStore[Entry], copy: DagsterStateCopy) -> None:
        self._store = store
        self._copy = copy
        self._guard = threading.Lock()
        self._seen: dict[str, Mapping[str, Any] | None] = {}

    def get(self, key: str) -> Entry | None:
        """Pass on to the store."""
        entry = self._store.get(key)
        self._remember(key, entry)
        return entry

    def list_all(self) -> Mapping[str, Entry] | None:
        """Pass on to the store."""
        return self._store.list_all()

    def set(self, key: str, value: Entry) -> None:
        """Store an entry; only what was stored is copied."""
        self._store.set(key, value)
        self._tell(key, value)

    def remove(self, key: str) -> None:
        """Remove an entry, and copy that it is gone."""
        self._store.remove(key)
        self._tell(key, None)

    def _tell(self, key: str, value: Entry | None) -> None:
        previous = self._remember(key, value)
        encoded = self._store.encode(value) if value is not None else None
        self._copy.stored(f"{self._store.scope}/{key}", encoded, previous)

    def _remember(self, key: str, value: Entry | None) -> Mapping[str, Any] | None:
        with self._guard:
            previous = self._seen.get(key)
            self._seen[key] = self._store.encode(value) if value is not None else None
        return previous
