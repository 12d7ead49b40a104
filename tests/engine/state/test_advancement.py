"""A watermark moves only behind every committed sink, and never back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from pz_engine.compile.dag import CheckNode, Graph, PipelineNode, SinkWriteNode, SourceLoadNode
from pz_engine.model.checks import Check, CheckType
from pz_engine.model.project import StateSettings
from pz_engine.model.run import NodeKind, NodeResult, NodeStatus, WatermarkCandidate
from pz_engine.state.advancement import advance_state
from pz_engine.state.factory import open_state_stores
from pz_engine.state.store import KeyedStore, StateStores, WatermarkEntry

LOAD = SourceLoadNode(id="l", name="src_a__b", depends_on=(), file="connections.yml", connection="a", entity="b")
OTHER = SourceLoadNode(id="o", name="src_a__c", depends_on=(), file="connections.yml", connection="a", entity="c")
CLEAN = PipelineNode(id="p", name="clean", depends_on=("l",), file="pipelines/clean.sql", sql="", source_text="")
CHECK = CheckNode(
    id="c", name="check_clean", depends_on=("p",), file="x", pipeline="clean", check=Check(CheckType.ROW_COUNT)
)
SINK = SinkWriteNode(
    id="s", name="out.x", depends_on=("p",), file="connections.yml", connection="out", entity="x", pipeline="clean"
)
SECOND = structs.replace(SINK, id="t", name="out.y", entity="y")
GRAPH = Graph((LOAD, OTHER, CLEAN, CHECK, SINK, SECOND))
CANDIDATE = WatermarkCandidate("id", "bigint", "10")


def load(node: SourceLoadNode = LOAD, value: str | None = "10", provenance: str | None = None) -> NodeResult:
    candidate = WatermarkCandidate("id", "bigint", value) if value is not None else None
    return NodeResult(
        node.id, node.kind, node.name, NodeStatus.SUCCESS, 1, 1, watermark=candidate, provenance=provenance
    )


def sink(node: SinkWriteNode, status: NodeStatus = NodeStatus.SUCCESS, provenance: str | None = None) -> NodeResult:
    return NodeResult(node.id, node.kind, node.name, status, 1, 1, provenance=provenance)


class Scene:
    """A project's store and what was said."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.notes: list[str] = []
        self.stores = self.reopen()

    @property
    def store(self) -> KeyedStore[WatermarkEntry]:
        return self.stores.watermarks

    def reopen(self) -> StateStores:
        return open_state_stores(StateSettings(), self.directory / ".pz", note=pytest.fail)

    def advance(self, *results: NodeResult, full_refresh: bool = False, **options: object) -> dict[str, str]:
        return advance_state(
            GRAPH,
            results,
            self.stores,
            run_id="run-9",
            full_refresh=full_refresh,
            note=self.notes.append,
            **options,  # type: ignore[arg-type]
        )

    @property
    def value(self) -> str | None:
        stored = (self.reopen().watermarks.list_all() or {}).get("a.b")
        return stored.value if stored is not None else None


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_all_sinks_committed_advances(scene: Scene) -> None:
    """With every sink below it committed, the candidate is stored with the run's id; a failed check does not block."""
    failed_check = NodeResult("c", NodeKind.CHECK, "check_clean", NodeStatus.FAILED, 3, 1)
    assert scene.advance(load(), failed_check, sink(SINK), sink(SECOND)) == {}
    assert scene.reopen().watermarks.get("a.b") == WatermarkEntry("id", "bigint", "10", "run-9")
    assert scene.notes == []


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        ([sink(SINK)], "sink 'out.y' was not part of this run"),
        ([sink(SINK), sink(SECOND, NodeStatus.FAILED)], "sink 'out.y' did not commit"),
        ([sink(SINK), sink(SECOND, NodeStatus.SKIPPED)], "sink 'out.y' did not commit"),
        (
            [sink(SINK), sink(SECOND, provenance="carried_forward")],
            "sink 'out.y' committed an older slice than the one just read",
        ),
    ],
)
def test_gate_holds(scene: Scene, results: list[NodeResult], reason: str) -> None:
    """A sink that is missing, failed, skipped or carried forward holds the value; a note, where asked for, unless a failure tells."""
    assert scene.advance(load(), *results) == {"a.b": reason}
    assert scene.value is None
    assert scene.notes == []
    scene.advance(load(), *results, says_held=True)
    is_silent = any(result.status is NodeStatus.FAILED for result in results)
    assert scene.notes == ([] if is_silent else [f"the watermark of a.b stays: {reason}"])


def test_reused_load_may_advance_with_carried_sinks(scene: Scene) -> None:
    """A reused load's slice is the one the carried sink committed."""
    assert scene.advance(load(provenance="reused"), sink(SINK, provenance="carried_forward"), sink(SECOND)) == {}
    assert scene.value == "10"


def test_entity_without_sinks_advances_on_its_own(scene: Scene) -> None:
    """A load nobody writes out advances when it succeeded, whatever happened elsewhere."""
    held = scene.advance(load(OTHER), load(), sink(SINK, NodeStatus.FAILED))
    assert list(held) == ["a.b"]
    assert (scene.reopen().watermarks.list_all() or {}).keys() == {"a.c"}


def test_no_candidate_changes_nothing(scene: Scene) -> None:
    """A failed load or one without a candidate leaves the stored value alone."""
    failed = replace(load(), status=NodeStatus.FAILED)
    assert scene.advance(load(value=None), sink(SINK), sink(SECOND)) == {}
    assert scene.advance(failed, sink(SINK), sink(SECOND)) == {}
    assert scene.value is None


def test_smaller_value_never_replaces_a_larger_one(scene: Scene) -> None:
    """Values compare as numbers, the guard says so in a note, and a full refresh may go back."""
    scene.store.set("a.b", WatermarkEntry("id", "bigint", "100", "run-1"))
    held = scene.advance(load(value="99"), sink(SINK), sink(SECOND))
    assert held == {"a.b": "this run captured a smaller value than the stored one"}
    assert len(scene.notes) == 1
    assert scene.value == "100"
    assert scene.advance(load(value="100"), sink(SINK), sink(SECOND)) == {}
    assert scene.advance(load(value="7"), sink(SINK), sink(SECOND), full_refresh=True) == {}
    assert scene.value == "7"


def test_other_type_or_odd_text_is_not_compared(scene: Scene) -> None:
    """The guard never does arithmetic on a stored value it cannot read."""
    scene.store.set("a.b", WatermarkEntry("id", "bigint", "lots", "run-1"))
    assert scene.advance(load(value="1"), sink(SINK), sink(SECOND)) == {}
    scene.store.set("a.b", WatermarkEntry("id", "decimal", "500", "run-1"))
    assert scene.advance(load(value="2"), sink(SINK), sink(SECOND)) == {}
    assert scene.value == "2"


def test_lost_race_is_a_note_with_both_codes(scene: Scene) -> None:
    """Another run that moved the key first wins, even with a larger value, and the note says what happens next."""
    observed = {"a.b": scene.store.get("a.b")}
    scene.reopen().watermarks.set("a.b", WatermarkEntry("id", "bigint", "500", "run-8"))
    held = scene.advance(load(), load(OTHER), sink(SINK), sink(SECOND), observed=observed)
    assert list(held) == ["a.b"]
    assert scene.value == "500"
    assert len(scene.notes) == 1
    assert "PZ0527" in scene.notes[0]
    assert "PZ0520" in scene.notes[0]
    assert "a.b" in scene.notes[0]
    assert "a.c" in (scene.reopen().watermarks.list_all() or {})


def test_guard_needs_no_list_of_the_whole_store(scene: Scene) -> None:
    """Where another entry is unreadable the list is, too; the guard compares with what the run saw of its own."""
    scene.store.set("a.b", WatermarkEntry("id", "bigint", "100", "run-1"))
    observed = scene.reopen().watermarks.list_all()

    class Unlistable:
        def __init__(self) -> None:
            self.get, self.set, self.remove = scene.store.get, scene.store.set, scene.store.remove

        def list_all(self) -> None:
            return None

    scene.stores = structs.replace(scene.stores, watermarks=Unlistable())
    held = scene.advance(load(value="99"), sink(SINK), sink(SECOND), observed=observed)
    assert held == {"a.b": "this run captured a smaller value than the stored one"}


def test_store_that_raises_is_isolated_per_entity(scene: Scene) -> None:
    """An entity that cannot be stored does not stop the next, and one note names all of them."""

    class Broken:
        def get(self, key: str) -> None: ...
        def list_all(self) -> dict[str, WatermarkEntry]:
            return {}

        def set(self, key: str, value: WatermarkEntry) -> None:
            raise OSError(28, "No space left on device")

        def remove(self, key: str) -> None: ...

    scene.stores = structs.replace(scene.stores, watermarks=Broken())
    held = scene.advance(load(), load(OTHER), sink(SINK), sink(SECOND))
    assert set(held) == {"a.b", "a.c"}
    assert len(scene.notes) == 1
    assert "a.b" in scene.notes[0]
    assert "a.c" in scene.notes[0]
