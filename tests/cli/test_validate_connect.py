"""validate --connect: what it prints, in text and as one object."""

from __future__ import annotations

import json
from pathlib import Path

from command_calls import Call


def test_it_says_what_it_reached(pz: Call, sample: Path) -> None:
    """A note for each connection, the closing line, and the cache as the only file."""
    called = pz("validate", "--project", sample, "--connect")
    assert (called.code, called.err) == (0, "")
    assert called.out == (
        "note: connection 'city': folder 'data' exists\n"
        "note: connection 'out': folder 'output' does not exist yet; the first write creates it\n"
        "validation passed (4 pipelines, 2 connections checked)\n"
    )
    written = [path for path in (sample / ".pz").rglob("*") if path.is_file()]
    assert written == [sample / ".pz/target/schemas.json"]


def test_what_it_finds_exits_2(pz: Call, sample: Path) -> None:
    """Missing files and columns are errors of the declaration's place, in both formats."""
    (sample / "data/trips.csv").write_text("trip_id,started_at\n1,2026-01-01 00:00:00\n")
    called = pz("validate", "--project", sample, "--connect")
    assert called.code == 2
    assert called.err.splitlines()[0] == (
        "error PZ0331: 'city.trips': the source has no column 'end_zone' (connections.yml:7) — "
        "hint: the columns are: trip_id, started_at"
    )
    assert "validation passed" not in called.out
    called = pz("validate", "--project", sample, "--connect", "--log-format", "json")
    assert called.code == 2
    document = json.loads(called.out)
    assert document["ok"] is False
    assert document["errors"][0] == {
        "code": "PZ0331",
        "message": "'city.trips': the source has no column 'end_zone'",
        "file": "connections.yml",
        "line": 7,
        "next_step": "the columns are: trip_id, started_at",
    }
    assert "note: connection 'city'" in called.err


def test_lineage_expands_stars_over_what_it_stored(pz: Call, sample: Path) -> None:
    """The cache makes a star over an undeclared entity known."""
    (sample / "data/extra.csv").write_text("a,b\n1,x\n")
    (sample / "pipelines/extra.sql").write_text("select * from {{ source('city', 'extra') }}\n")
    path = sample / ".pz/target/lineage.json"

    def columns() -> list[str]:
        assert pz("compile", "--project", sample, "--lineage").code == 0
        (found,) = [p for p in json.loads(path.read_text())["pipelines"] if p["name"] == "extra"]
        return [column["name"] for column in found["columns"]]

    assert columns() == ["*"]
    assert pz("validate", "--project", sample, "--connect").code == 0
    assert columns() == ["a", "b"]
