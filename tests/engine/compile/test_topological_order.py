"""Order of nodes, and what a circle looks like."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pz_engine.compile.dag import CheckNode, Node, PipelineNode, SinkWriteNode, SourceLoadNode
from pz_engine.compile.topological_order import order_nodes
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.checks import Check, CheckType


def node(kind: int, name: str, identity: str, depends_on: tuple[str, ...]) -> Node:
    common = {"id": identity, "name": name, "depends_on": depends_on, "file": "f"}
    if kind == 0:
        return SourceLoadNode(**common, connection="c", entity="e")
    if kind == 1:
        return PipelineNode(**common, sql="", source_text="")
    if kind == 2:
        return CheckNode(**common, pipeline="p", check=Check(CheckType.UNIQUE, ("id",)))
    return SinkWriteNode(**common, connection="c", entity="e", pipeline="p")


@st.composite
def graphs(draw: st.DrawFn) -> list[Node]:
    """Nodes without a circle, in any order."""
    count = draw(st.integers(0, 9))
    names = draw(st.lists(st.sampled_from("abcdeé_Z"), min_size=count, max_size=count))
    nodes = []
    for index in range(count):
        parents = draw(st.lists(st.integers(0, index - 1), max_size=3, unique=True)) if index else []
        nodes.append(
            node(draw(st.integers(0, 3)), names[index], f"{index:02}", tuple(f"{parent:02}" for parent in parents))
        )
    return draw(st.permutations(nodes))


@given(graphs())
def test_the_smallest_ready_node_is_always_next(nodes):
    """Among those whose parents are placed: by kind, then name, then id, whatever the order they came in."""
    problems = ProblemCollector()
    ordered = order_nodes(nodes, problems)
    assert problems.errors == []
    assert {item.id for item in ordered} == {item.id for item in nodes}
    placed: set[str] = set()
    for item in ordered:
        ready = [other for other in nodes if other.id not in placed and placed.issuperset(other.depends_on)]
        assert item == min(ready, key=lambda other: (other.kind.rank, other.name, other.id))
        placed.add(item.id)


@given(st.permutations(range(4)), st.booleans())
def test_a_circle_is_one_problem_that_starts_with_its_smallest_name(order, has_tail):
    """Nodes behind a circle are not part of the path."""
    names = "wxyz"
    nodes = [node(1, names[index], names[index], (names[(index + 1) % 3],) if index < 3 else ("w",)) for index in order]
    nodes = [item for item in nodes if has_tail or item.name != "z"]
    problems = ProblemCollector()
    assert order_nodes(nodes, problems) == ()
    (problem,) = problems.errors
    assert (problem.code, problem.file, problem.line) == ("PZ0202", None, None)
    assert problem.message.endswith("w -> x -> y -> w")
