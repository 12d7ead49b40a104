"""What the engine saw in the data, as it reports it: columns that changed, keys that repeat, types that do not fit.

A load that is taken from an earlier run is not looked at again; what was seen then is in that run's journal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from msgspec import Struct, field

Finding = Mapping[str, Any]
"""What is shown of one event, by name."""


def finding(record: Mapping[str, Any]) -> tuple[str, Finding] | None:
    """Read an event's JSON object; returns the switch of its built-in check and what is shown, or None for other events."""
    known = _FINDINGS.get(record["event"])
    return (known[0], known[1](record)) if known is not None else None


class EarlierFindings(Struct, frozen=True):
    """What earlier runs saw in the nodes that are taken from them."""

    known: frozenset[str] = frozenset()
    """Names of the nodes whose journal is still there."""

    found: Mapping[tuple[str, str], list[Finding]] = field(default_factory=dict)
    """By switch and node name."""

    @classmethod
    def read(cls, project_dir: Path, run_ids: Iterable[str], names: Collection[str]) -> EarlierFindings:
        """Read journals until it is known of every node what was seen when it was last computed.

        Args:
            project_dir: the project.
            run_ids: pz runs that continued each other, newest first.
            names: the nodes to ask for.
        """
        known: set[str] = set()
        found: dict[tuple[str, str], list[Finding]] = {}
        for run_id in run_ids:
            if known.issuperset(names):
                break
            seen: dict[str, list[tuple[str, Finding]]] = {}
            for record in _records(project_dir / ".pz" / "journal" / f"{run_id}.jsonl"):
                each = finding(record)
                if each is not None:
                    seen.setdefault(record["nodeId"], []).append(each)
                elif record["event"] == "node_completed" and _is_computed(record) and record["name"] not in known:
                    known.add(record["name"])
                    for switch, what in seen.get(record["nodeId"], ()):
                        found.setdefault((switch, record["name"]), []).append(what)
        return cls(frozenset(known), found)


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
