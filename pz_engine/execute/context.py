"""What every executor of one run shares."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct, field

from pz_engine.base.cancellation import CancelToken
from pz_engine.base.clock import Clock
from pz_engine.compile.dag import CompiledProject
from pz_engine.duck.session import DuckCursor, DuckSession
from pz_engine.events.publisher import Publisher
from pz_engine.execute.instances import Instances
from pz_engine.execute.ledgers.partition_ledger import LedgerTables
from pz_engine.execute.outcome import WarningSlot
from pz_engine.execute.prior_database import PriorDatabase
from pz_engine.execute.resume_plan import ResumePlan
from pz_engine.execute.run_windows import RunWindows
from pz_engine.execute.setup_ledger import SetupLedger
from pz_engine.execute.staging_copy import TakenOver
from pz_engine.model.project import EngineSettings
from pz_engine.plan.strategies import ExecutionPlan
from pz_engine.state.store import KeyedStore, SchemaBaseline, SyncTokenEntry, WatermarkEntry


class RunContext(Struct, frozen=True):
    """One run's shared objects."""

    run_id: str
    started_at: datetime
    compiled: CompiledProject
    plan: ExecutionPlan
    engine: EngineSettings
    session: DuckSession
    publisher: Publisher
    note: Callable[[str], None]
    clock: Clock
    setup: SetupLedger
    instances: Instances
    schemas: KeyedStore[SchemaBaseline]
    """Accepted columns of entities without a contract."""

    jitter: Callable[[], float]
    """Uniform numbers in [0, 1), for waits between repeats."""

    full_refresh: bool = False
    stored_watermarks: Mapping[str, WatermarkEntry] = field(default_factory=dict)
    """Entries observed before dispatch, full refresh included."""

    windows: RunWindows = field(default_factory=RunWindows)
    """Slices that the request gives."""

    written_connections: frozenset[str] = frozenset()
    """Connections that some node of the effective set writes."""

    stored_tokens: Mapping[str, SyncTokenEntry] = field(default_factory=dict)
    """Tokens observed before dispatch, full refresh included."""

    ledgers: LedgerTables = field(default_factory=LedgerTables)
    resume: ResumePlan | None = None
    """What may be taken from the run that is continued."""

    prior: PriorDatabase | None = None
    """That run's staging database; None when nothing can be taken from it."""

    taken_over: TakenOver = field(default_factory=TakenOver)
    """What was in it and is here since the start."""

    notices_seen: set[tuple[str, str]] = field(default_factory=set)
    notices_guard: threading.Lock = field(default_factory=threading.Lock)

    def first_notice(self, connection: str, text: str) -> bool:
        """Tell whether a connector says this for the first time in the run."""
        with self.notices_guard:
            is_new = (connection, text) not in self.notices_seen
            self.notices_seen.add((connection, text))
        return is_new

    def stored(self, key: str) -> WatermarkEntry | None:
        """Return the entry this run reads from; none under a full refresh, none for a slice that the request gives."""
        return None if self.full_refresh or key in self.windows.by_key else self.stored_watermarks.get(key)

    def safe(self, text: str) -> str:
        """Return a text without values from outside the project's files."""
        return self.compiled.hidden.hide(text)

    def stored_token(self, key: str) -> str | None:
        """Return the token this run continues from; none under a full refresh."""
        entry = None if self.full_refresh else self.stored_tokens.get(key)
        return entry.token if entry is not None else None

    def shown_location(self, location: str | None) -> str | None:
        """Return where rows landed as people see it: a path is shown from the project's directory, and no hidden value."""
        if location is None:
            return None
        shown = self.safe(location)  # before the path is cut short and a value no longer whole
        if not shown.startswith(os.sep):
            return shown
        return Path(os.path.relpath(shown, self.compiled.project_dir)).as_posix()


class Attempt(Struct, frozen=True):
    """One try of one node or group."""

    context: RunContext
    ordinal: int
    """Counts from 1."""

    cancel: CancelToken
    cursor: DuckCursor
    warnings: WarningSlot
