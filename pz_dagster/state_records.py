"""Copies of positions as observations of one external asset.

An observation that belongs to no Dagster run survives the deletion of runs. Nothing depends on the asset and nothing
materializes it, so a copy never looks like activity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import dagster as dg

from pz_dagster.keys import asset_key, fold
from pz_dagster.reconciliation import TOKENS, WATERMARKS, CopyRecord
from pz_engine import Diagnostic, Severity

STATE_METADATA = "pz/state"
PROJECT_METADATA = "pz/project"
_PAGE = 50
_MOST_RECORDS = 500

Records = Mapping[str, Sequence[CopyRecord]]
"""Copies by name, newest first."""


class CopyUnavailableError(Exception):
    """The copies cannot be read or written."""

    def __init__(self, verb: str, cause: BaseException) -> None:
        self.diagnostic = Diagnostic(
            "PZ0705",
            f"the copy of the state in the Dagster instance cannot be {verb} ({type(cause).__name__})",
            hint="check the storage of the instance; runs go on with the project's own state",
            severity=Severity.WARNING,
        )
        super().__init__(str(self.diagnostic))


def state_key(project: str, prefix: Sequence[str] = ()) -> dg.AssetKey:
    """Return the key of the asset that holds the copies.

    Args:
        project: the project's name.
        prefix: the prefix of all its keys, which tells two deployments of one project apart.
    """
    return asset_key([*prefix, project, "pz_state"])


def state_spec(project: str, prefix: Sequence[str] = ()) -> dg.AssetSpec:
    """Describe the asset that holds the copies."""
    return dg.AssetSpec(
        state_key(project, prefix),
        group_name=fold(project),
        kinds={"pz"},
        description=f"Copies of the positions up to which project `{project}` has read its sources. A run whose own "
        "state is missing or older continues from here. Nothing needs to be materialized.",
    )


def read_records(
    instance: dg.DagsterInstance,
    key: dg.AssetKey,
    is_enough: Callable[[Records], bool] = lambda _: False,
    *,
    project: str | None = None,
) -> Records:
    """Read the copies, newest first, page by page.

    Args:
        instance: where they are.
        key: the asset.
        is_enough: asked after each page; reading also ends after 500 observations.
        project: name of the project; copies of one whose name is merely spelled alike in Dagster are passed over.

    Raises:
        CopyUnavailableError: the instance's storage fails.
    """
    found: dict[str, list[CopyRecord]] = {}
    cursor: str | None = None
    for _ in range(_MOST_RECORDS // _PAGE):
        try:
            page = instance.fetch_observations(key, limit=_PAGE, cursor=cursor)
        except Exception as error:
            raise CopyUnavailableError("read", error) from None
        for event in page.records:
            observation = event.asset_observation
            metadata = observation.metadata if observation is not None else {}
            owner = getattr(metadata.get(PROJECT_METADATA), "value", project)
            for record in _parse(metadata if project is None or owner == project else {}):
                found.setdefault(record.name, []).append(record)
        cursor = page.cursor
        if len(page.records) < _PAGE or is_enough(found):
            break
    return found


def write_records(
    instance: dg.DagsterInstance,
    key: dg.AssetKey,
    records: Iterable[CopyRecord],
    dagster_run_id: str | None = None,
    *,
    project: str | None = None,
) -> None:
    """Write copies as one observation.

    Raises:
        CopyUnavailableError: the instance's storage fails.
    """
    document = {
        record.name: {
            "fp": record.fingerprint,
            "prev": record.previous,
            "entry": dict(record.entry) if record.entry is not None else None,
            "by": record.by,
            "at": record.at,
        }
        for record in records
    }
    metadata: dict[str, Any] = {STATE_METADATA: dg.MetadataValue.json(document)}
    if project is not None:
        metadata[PROJECT_METADATA] = project
    if dagster_run_id is not None:
        metadata["pz/run"] = dg.MetadataValue.dagster_run(dagster_run_id)
    try:
        instance.report_runless_asset_event(dg.AssetObservation(key, metadata=metadata))
    except Exception as error:
        raise CopyUnavailableError("written", error) from None


def now() -> str:
    """Return the present instant as records spell it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _parse(metadata: Mapping[str, Any]) -> Iterable[CopyRecord]:
    """Yield what an observation holds; anybody can report one by hand, so what is no copy is passed over."""
    document = getattr(metadata.get(STATE_METADATA), "value", None)
    for name, value in document.items() if isinstance(document, Mapping) else ():
        scope, _, key = str(name).partition("/")
        if not isinstance(value, Mapping) or scope not in (WATERMARKS, TOKENS) or not key:
            continue
        entry, texts = value.get("entry"), [value.get(field) for field in ("fp", "prev", "by", "at")]
        is_entry = entry is None or (isinstance(entry, Mapping) and all(isinstance(v, str) for v in entry.values()))
        if is_entry and all(isinstance(text, str) for text in texts):
            fingerprint, previous, by, at = (str(text) for text in texts)
            yield CopyRecord(str(name), fingerprint, previous, dict(entry) if entry is not None else None, by, at)
