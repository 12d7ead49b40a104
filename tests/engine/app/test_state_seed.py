"""A watermark stored by hand where none is: what it writes, and what it leaves alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pz_engine import PzStateError, WatermarkSeed, seed_watermark, stored_watermark_keys
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall, ScriptedConnector

KEY = "api.things"


def seed(factory: ProjectFactory, value: str = "5", **options: Any) -> WatermarkSeed:
    return seed_watermark(
        factory.directory, KEY, **{"cursor": "id", "cursor_type": "bigint", "value": value, **options}
    )


def stored(factory: ProjectFactory) -> dict[str, Any]:
    path = factory.directory / ".pz" / "state" / "watermarks.json"
    return dict(json.loads(path.read_text())["watermarks"]) if path.exists() else {}


def audit(factory: ProjectFactory) -> list[dict[str, Any]]:
    path = factory.directory / ".pz" / "state" / "audit.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_seed_is_shown_first_and_stored_on_request(factory: ProjectFactory) -> None:
    """Without `apply` nothing is written; with it the entry and one line of the log are."""
    assert seed(factory) == WatermarkSeed(KEY, "5", None, "would store")
    assert not (factory.directory / ".pz").exists()
    assert seed(factory, apply=True, reason="a backfill") == WatermarkSeed(KEY, "5", None, "stored")
    assert stored(factory) == {KEY: {"cursor": "id", "type": "bigint", "value": "5", "runId": "manual"}}
    (line,) = audit(factory)
    assert {name: line[name] for name in ("action", "key", "to", "target", "reason")} == {
        "action": "set", "key": KEY, "to": "5", "target": "value", "reason": "a backfill",
    }  # fmt: skip
    assert "from" not in line
    assert stored_watermark_keys(factory.directory) == {KEY}


@pytest.mark.parametrize(("value", "action"), [("4", "kept"), ("05", "kept"), ("6", "stored")])
def test_only_an_older_watermark_is_replaced(factory: ProjectFactory, value: str, action: str) -> None:
    """The same or a newer one stays, compared by value, and nothing is logged then."""
    seed(factory, "5", apply=True)
    assert seed(factory, value, apply=True).action == action
    assert stored(factory)[KEY]["value"] == ("6" if action == "stored" else "5")
    assert len(audit(factory)) == (2 if action == "stored" else 1)


def test_what_belongs_to_another_column_or_cannot_be_read_stays(factory: ProjectFactory) -> None:
    """A seed never guesses: another cursor, a value of another type and an unreadable file are refused."""
    seed(factory, apply=True)
    for options in ({"cursor": "seen"}, {"cursor_type": "decimal"}, {"value": "five"}):
        with pytest.raises(PzStateError) as caught:
            seed(factory, apply=True, **options)
        assert caught.value.code == "PZ0515"
    factory.write(".pz/state/watermarks.json", "not json")
    with pytest.raises(PzStateError) as caught:
        seed(factory, apply=True)
    assert caught.value.code == "PZ0518"
    assert (factory.directory / ".pz/state/watermarks.json").read_text() == "not json"


def test_a_live_run_refuses_the_change(factory: ProjectFactory) -> None:
    """It might store its own position over it."""
    source = ScriptedConnector()
    factory.connections(
        "api: { connector: scripted, retry: { max_attempts: 1 }, entities: { things: { read: { columns: { id: bigint, "
        "name: varchar }, sync: { mode: incremental, cursor: id } } } } }\nstore: { connector: scripted }\n"
    )
    factory.pipeline(
        "copy",
        "INSERT INTO {{ sink('store', 'copy', strategy: 'merge', keys: ['id']) }}\nSELECT * FROM {{ source('api', 'things') }}",
    )
    codes: list[str] = []

    def read(call: ReadCall) -> Any:
        assert seed(factory).action == "would store"
        with pytest.raises(PzStateError) as caught:
            seed(factory, apply=True)
        codes.append(caught.value.code)
        raise PzConnectorError("enough", is_transient=False)

    source.on_read = read
    with source.installed():
        factory.run()
    assert codes == ["PZ0517"]
    assert stored(factory) == {}
