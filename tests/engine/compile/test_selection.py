"""Flows, positional names and the `--select` grammar."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pz_engine.compile.dag import CompiledProject
from pz_engine.compile.selection import resolve_selection
from pz_engine.errors.exceptions import PzValidationError


@pytest.fixture
def compiled(project) -> CompiledProject:
    """Two flows: a -> b -> sink and a check; lone."""
    project.write("connections.yml", "c: {connector: x}\nd: {connector: x}\n")
    project.sql("a", "select id from {{ source('c', 'dbo.orders') }}").sidecar("a", "tags: [daily]\n")
    project.sql("b", "INSERT INTO {{ sink('d', 'out') }} select * from {{ ref('a') }}")
    project.sidecar("b", "tags: [daily, crm]\nchecks:\n  - unique: [id]\n")
    project.sql("b2", "INSERT INTO {{ sink('d', 'more') }} select * from {{ ref('a') }}")
    project.sidecar("b2", "tags: ['équipe:core']\n")
    return project.sql("lone", "select 1").compile()


def names(compiled, **options):
    ids = resolve_selection(compiled, **options)
    return [node.name for node in compiled.nodes if node.id in ids]


def problem(compiled, **options):
    with pytest.raises(PzValidationError) as caught:
        resolve_selection(compiled, **options)
    return caught.value.errors


def test_flows_are_connected_components(compiled):
    """Flows come in the order of their first member, labelled by their sinks, or by their last nodes."""
    assert [flow.label for flow in compiled.flows] == ["d.more + d.out", "lone"]
    assert sum(len(flow.node_ids) for flow in compiled.flows) == len(compiled.nodes)


def test_names_bring_ancestors_and_descendants_but_no_siblings(compiled):
    """A name stands for itself and everything above and below it."""
    assert names(compiled, names=["b"]) == ["src_c__dbo_orders", "a", "b", "check_b_unique_id", "d.out"]
    assert names(compiled, names=["lone", "d.more"]) == ["src_c__dbo_orders", "a", "b2", "lone", "d.more"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a", ["a"]),
        ("+a", ["src_c__dbo_orders", "a"]),
        ("b+", ["b", "check_b_unique_id", "d.out"]),
        ("+b", ["src_c__dbo_orders", "a", "b"]),
        ("tag:daily", ["a", "b"]),
        ("tag:daily,tag:crm", ["b"]),
        ("+tag:équipe:core+", ["src_c__dbo_orders", "a", "b2", "d.more"]),
        ("a lone", ["a", "lone"]),
        ("a, b", ["a", "b"]),
        ("a,b", []),
        ("b*", ["b", "b2"]),
        ("d.*", ["d.more", "d.out"]),
        ("source:c.dbo.orders", ["src_c__dbo_orders"]),
        ("source:c.*+", ["src_c__dbo_orders", "a", "b", "b2", "check_b_unique_id", "d.more", "d.out"]),
        ("+tag:crm,d.out+ lone", ["lone"]),
    ],
)
def test_expressions(compiled, expression, expected):
    """Blanks unite, commas intersect, `+` adds one side; nothing is added by itself."""
    assert names(compiled, expression=expression) == expected


@pytest.mark.parametrize(
    "expression", ["nope", "tag:none", "tag:dail*", "source:c.dbo_orders", "a@", "tag:", "A", "kind:x"]
)
def test_bad_atoms_are_refused(compiled, expression):
    """What does not parse or matches nothing is PZ0210."""
    assert [p.code for p in problem(compiled, expression=expression)] == ["PZ0210"]


def test_many_stars_take_no_time(compiled):
    """A pattern is matched from the left, star by star."""
    assert [p.code for p in problem(compiled, expression="*a" * 60 + "x")] == ["PZ0210"]
    assert names(compiled, expression="*" * 60 + "one") == ["lone"]


def test_unknown_names_are_each_refused(compiled):
    """Unknown names list the flows; a dash is an unknown option."""
    found = problem(compiled, names=["lonee", "--fast"])
    assert [p.code for p in found] == ["PZ0210", "PZ0210"]
    assert "d.more + d.out" in found[0].message
    assert found[0].hint == "did you mean 'lone'?"
    assert "option" in found[1].message


def test_one_way_of_selecting_at_a_time(compiled):
    """Names, an expression and --all exclude each other; a blank expression is none."""
    assert [p.code for p in problem(compiled, names=["a"], everything=True)] == ["PZ0216"]
    assert [p.code for p in problem(compiled, expression="a", everything=True)] == ["PZ0216"]
    assert len(names(compiled, expression="  ", everything=True)) == len(compiled.nodes)


def test_a_bare_run_of_several_flows_must_choose(compiled):
    """Only a run must choose; the labels are listed."""
    (found,) = problem(compiled, require_choice=True)
    assert found.code == "PZ0215"
    assert "d.more + d.out; lone" in found.message
    assert len(names(compiled)) == len(compiled.nodes)
    assert len(names(compiled, require_choice=True, everything=True)) == len(compiled.nodes)


def test_hosts_select_by_id(compiled):
    """Ids are taken exactly."""
    identity = compiled.graph.by_name["b"].id
    assert resolve_selection(compiled, node_ids=frozenset({identity})) == {identity}


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="ab+,: tag.*@d", max_size=12))
def test_any_expression_selects_or_is_refused(compiled, expression):
    """No expression fails in another way, and only known nodes are selected."""
    problems = ()
    found = frozenset()
    try:
        found = resolve_selection(compiled, expression=expression)
    except PzValidationError as error:
        problems = error.errors
    assert {p.code for p in problems} <= {"PZ0210"}
    assert found <= set(compiled.graph.by_id)
