"""Stores a first watermark by hand: where reading goes on after history came in another way.

Unlike `pz state set` it needs no earlier value. It never takes the place of a newer one, it refuses while a run lives, and
the change is in the same log as every other manual one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from pz_engine.app.state_edits import MANUAL, refuse_live_runs
from pz_engine.app.state_owner import open_state
from pz_engine.base.clock import Clock, SystemClock, format_instant
from pz_engine.config.state_only import load_state_settings
from pz_engine.errors.exceptions import PzStateError
from pz_engine.model.cursor_values import canonicalize, compare
from pz_engine.state.audit_log import AuditRecord, append_audit, audit_line
from pz_engine.state.factory import open_state_stores
from pz_engine.state.store import StateStores, WatermarkEntry


class WatermarkSeed(Struct, frozen=True):
    """What a seed did, or would do."""

    key: str
    value: str
    """The watermark to go on from, canonical."""

    before: str | None
    """What was stored; None for nothing."""

    action: Literal["would store", "stored", "kept"]
    """`kept`: the stored watermark is this one or a newer one."""

    unwritten_audit_line: str | None = None
    """The line that could not be appended to the log, for the person to keep."""


def seed_watermark(
    project_dir: Path,
    key: str,
    *,
    cursor: str,
    cursor_type: str,
    value: str,
    apply: bool = False,
    reason: str | None = None,
    state_dir: Path | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> WatermarkSeed:
    """Store the watermark of an entity unless a newer one is there; without `apply` only say what would happen.

    Args:
        project_dir: the project's directory.
        key: `<connection>.<entity>`.
        cursor: the cursor column.
        cursor_type: `int`, `bigint`, `decimal`, `date` or `timestamp`.
        value: the position, as text of that type.
        apply: store it.
        reason: kept in the log.
        state_dir: what stands in for the project's `.pz`; `PZ_STATE_DIR` says it otherwise.
        env: in place of the process environment.
        clock: tells the log's time.

    Raises:
        PzValidationError: there is no `project.yml`, or its `state:` is wrong.
        PzStateError: `PZ0515`, the value is none of the type, or what is stored belongs to another column or type;
            `PZ0517`, a run is in flight; `PZ0518`, the store cannot be used; `PZ0520`, the value changed meanwhile.
    """
    canonical = canonicalize(cursor_type, value)
    if canonical is None:
        raise PzStateError("PZ0515", f"the watermark for '{key}' is no {cursor_type}")
    state_dir = open_state(project_dir, state_dir, env)
    if apply:
        refuse_live_runs(state_dir)
    with _stores(project_dir, state_dir, env) as stores:
        before = _stored(stores, key)
        if before is not None and (before.cursor, before.type) != (cursor, cursor_type):
            raise PzStateError(
                "PZ0515",
                f"the stored watermark of '{key}' belongs to {before.type} column '{before.cursor}', not to {cursor_type} "
                f"column '{cursor}'",
                hint=f"pz state clear {key}, if it has no use any more",
            )
        earlier = before.value if before is not None else None
        if earlier is not None and _is_reached(cursor_type, earlier, canonical):
            return WatermarkSeed(key, canonical, earlier, "kept")
        if not apply:
            return WatermarkSeed(key, canonical, earlier, "would store")
        stores.watermarks.set(key, WatermarkEntry(cursor, cursor_type, canonical, MANUAL))
    record = AuditRecord(
        at=format_instant((clock or SystemClock()).now()),
        action="set",
        key=key,
        cursor=cursor,
        type=cursor_type,
        before=earlier,
        before_run_id=before.run_id if before is not None else None,
        after=canonical,
        target="value",
        reason=reason,
    )
    try:
        append_audit(state_dir, record)
    except OSError:
        return WatermarkSeed(key, canonical, earlier, "stored", audit_line(record))
    return WatermarkSeed(key, canonical, earlier, "stored")


def stored_watermark_keys(
    project_dir: Path, *, state_dir: Path | None = None, env: Mapping[str, str] | None = None
) -> frozenset[str]:
    """Return the keys that have a stored watermark; the arguments are those of `seed_watermark`.

    Raises:
        PzValidationError: there is no `project.yml`, or its `state:` is wrong.
        PzStateError: `PZ0518`, the store cannot be used.
    """
    with _stores(project_dir, open_state(project_dir, state_dir, env), env) as stores:
        return frozenset(stores.watermarks.list_all() or {})


def _stores(project_dir: Path, state_dir: Path, env: Mapping[str, str] | None) -> StateStores:
    settings = load_state_settings(project_dir, env=os.environ if env is None else env)
    unsaid: list[str] = []
    return open_state_stores(settings, state_dir, note=unsaid.append)


def _stored(stores: StateStores, key: str) -> WatermarkEntry | None:
    found = stores.watermarks.get(key)
    if found is None and stores.watermarks.list_all() is None:
        raise PzStateError(
            "PZ0518", "the stored watermarks cannot be read, so none is stored over them", hint="see 'pz state show'"
        )
    return found


def _is_reached(cursor_type: str, stored: str, wanted: str) -> bool:
    """Tell whether the stored position is the wanted one or past it; one that cannot be compared is left alone."""
    known = canonicalize(cursor_type, stored)
    return known is None or compare(cursor_type, known, wanted) >= 0
