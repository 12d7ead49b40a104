"""What the engine saw in the data, as it reports it: columns that changed, keys that repeat, types that do not fit.

A load that is taken from an earlier run is not looked at again; what was seen then is in that run's journal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from msgspec import Struct, field

if TYPE_CHECKING:
    from pz_engine import RunRecord

Finding = Mapping[str, Any]
"""What is shown of one event, by name."""


def finding(record: Mapping[str, Any]) -> tuple[str, Finding] | None:
    """Read an event's JSON object; returns the switch of its built-in check and what is shown, or None for other events."""
    known = _FINDINGS.get(record["event"])
    return (known[0], known[1](record)) if known is not None else None


def plain(found: Finding) -> dict[str, Any]:
    """Return a finding as JSON values."""
    return {
        name: [dict(each.data) for each in value.records] if isinstance(value, dg.TableMetadataValue) else value
        for name, value in found.items()
    }


class EarlierFindings(Struct, frozen=True):
    """What earlier runs saw in the nodes that are taken from them."""

    known: frozenset[str] = frozenset()
    """Names of the nodes whose journal is still there."""

    uncompared: frozenset[str] = frozenset()
    """Names of the loads whose columns nobody compared when they were computed."""

    found: Mapping[tuple[str, str], list[Finding]] = field(default_factory=dict)
    """By switch and node name."""

    def tells(self, subject: tuple[str, str]) -> bool:
        """Tell whether it is known what was seen, given the switch of a check and the name of its node."""
        switch, name = subject
        return name in self.known and not (switch == "drift" and name in self.uncompared)

    @classmethod
    def read(cls, state_path: Path, runs: Iterable[RunRecord], names: Collection[str]) -> EarlierFindings:
        """Read journals until it is known of every node what was seen when it was last computed.

        Args:
            state_path: where the project's runs and journals live.
            runs: pz runs that continued each other, newest first.
            names: the nodes to ask for.
        """
        known: set[str] = set()
        uncompared: set[str] = set()
        found: dict[tuple[str, str], list[Finding]] = {}
        for run in runs:
            if known.issuperset(names):
                break
            compared = {each.name for each in run.results if each.observed_schema is not None}
            seen: dict[str, list[tuple[str, Finding]]] = {}
            for record in _records(state_path / "journal" / f"{run.run_id}.jsonl"):
                each = finding(record)
                if each is not None:
                    seen.setdefault(record["nodeId"], []).append(each)
                elif record["event"] == "node_completed" and _is_computed(record) and record["name"] not in known:
                    known.add(record["name"])
                    if record["name"] not in compared:
                        uncompared.add(record["name"])
                    for switch, what in seen.get(record["nodeId"], ()):
                        found.setdefault((switch, record["name"]), []).append(what)
        return cls(frozenset(known), frozenset(uncompared), found)


def _records(journal: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of a journal that are whole."""
    try:
        lines = journal.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and "event" in record:
            yield record


def _is_computed(record: Mapping[str, Any]) -> bool:
    return record["status"] == "success" and "provenance" not in record


def _drift(record: Mapping[str, Any]) -> Finding:
    changes = [
        {
            "change": change["kind"],
            "column": change["column"],
            "from": change["from"] or "",
            "to": change["to"] or "",
        }
        for change in record["changes"]
    ]
    table = dg.MetadataValue.table([dg.TableRecord(change) for change in changes])
    return {"policy": record["policy"], "changes": table}


def _merge_keys(record: Mapping[str, Any]) -> Finding:
    return {
        "keys": ", ".join(record["keys"]),
        "duplicate_groups": record["duplicateGroups"],
        "extra_rows": record["extraRows"],
    }


def _integers(record: Mapping[str, Any]) -> Finding:
    return {"columns": ", ".join(record["columns"])}


def _dates(record: Mapping[str, Any]) -> Finding:
    return {"columns": ", ".join(record["columns"]), "format": record["format"]}


_FINDINGS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Finding]]] = {
    "source_drift_detected": ("drift", _drift),
    "merge_key_duplicates_detected": ("merge_keys", _merge_keys),
    "lossy_integer_inference_detected": ("integers", _integers),
    "ambiguous_date_inference_detected": ("dates", _dates),
}

EVENTS: Mapping[str, str] = {switch: event for event, (switch, _) in _FINDINGS.items()}
"""Name of the event that each switch is about."""
