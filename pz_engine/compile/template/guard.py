"""Which parts of Jinja a template may use.

Only the kinds of nodes listed here pass, and every value that an operation works on is paid for first; so what a
template can do follows from this file, `values.py` and the environment alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jinja2 import nodes
from jinja2.visitor import NodeTransformer
from msgspec import Struct

from pz_engine.base.plain_text import forbidden_character
from pz_engine.compile.template.spelling import FUNCTIONS, RUN_CONSTANTS
from pz_engine.compile.template.values import CHARGE, CONCAT, EACH, UNKNOWN
from pz_engine.compile.template.work import UNITS_PER_STEP

FILTERS = (
    "default", "first", "join", "last", "length", "list", "lower", "replace", "sort", "trim", "unique", "upper",
)  # fmt: skip
"""Filters a template may use."""

TESTS = ("boolean", "defined", "even", "float", "in", "integer", "mapping", "none", "number", "odd", "sequence",
         "string", "undefined")  # fmt: skip
"""Tests a template may use after `is`."""

LOOP_NAMES = ("index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem",
              "nextitem", "cycle", "changed")  # fmt: skip
"""Members of `loop`."""

PZ_NAMES = (*FUNCTIONS, *RUN_CONSTANTS, "this")
"""Names that pz defines."""

_PLAIN_NODES = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.Assign, nodes.List, nodes.Tuple,
    nodes.Pair, nodes.Keyword, nodes.CondExpr, nodes.And, nodes.Or, nodes.Not, nodes.Operand, nodes.Add, nodes.Sub, nodes.Mul,
    nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos, nodes.Slice,
)  # fmt: skip


class Refusal(Struct, frozen=True):
    """Something that is not part of the language."""

    message: str
    line: int


def guard(tree: nodes.Template) -> list[Refusal]:
    """Make a parsed template safe to compile, in place, and return what it may not contain."""
    guarding = _Guard(known_names(tree))
    guarding.visit(tree)
    return guarding.refusals


def known_names(tree: nodes.Template) -> set[str]:
    """Return pz's names and those that the template sets itself."""
    return {*PZ_NAMES, *(node.name for node in tree.find_all(nodes.Name) if node.ctx != "load")}


class _Guard(NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names
        self._loops = 0
        self.refusals: list[Refusal] = []

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        """Visit a node that is part of the language; refuse any other."""
        if isinstance(node, _PLAIN_NODES):
            return self.generic_visit(node)
        visitor = self.get_visitor(node)
        if visitor is None:
            self._refuse(f"{type(node).__name__.lower()} is not available", node)
            return node
        return visitor(node, *args, **kwargs)

    def visit_Name(self, node: nodes.Name) -> nodes.Node:  # noqa: N802 - the visitor's protocol
        if node.ctx != "load":
            if node.name in {*PZ_NAMES, "loop"}:
                self._refuse(f"'{node.name}' is pz's own name and cannot be set", node)
            return node
        if node.name == "loop" and self._loops:
            self._refuse("loop is no value of its own; use a member such as loop.index", node)
        return node if node.name in self._names else _unknown(node)

    def visit_Call(self, node: nodes.Call) -> nodes.Node:  # noqa: N802
        target = node.node
        if isinstance(target, nodes.Name) and target.name not in {*self._names, "loop"}:
            return _unknown(target)
        if not _is_callable(target):
            self._refuse("only pz's functions can be called; values have no methods", node)
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            self._refuse("* and ** cannot be used in a call", node)
        if isinstance(target, nodes.Getattr):
            node.node = self.visit(target)
        node.args = [self._charged(argument) for argument in node.args]
        for keyword in node.kwargs:
            keyword.value = self._charged(keyword.value)
        return node

    def visit_Const(self, node: nodes.Const) -> nodes.Node:  # noqa: N802
        forbidden = forbidden_character(node.value)
        if forbidden is not None:
            self._refuse(f"a text holds {forbidden}", node)
        return node

    def visit_Getattr(self, node: nodes.Getattr) -> nodes.Node:  # noqa: N802
        if node.attr.startswith("__"):
            self._refuse(f"'{node.attr}' cannot be reached", node)
            return node
        if isinstance(node.node, nodes.Name) and node.node.name == "loop" and self._loops:
            if node.attr not in LOOP_NAMES:
                self._refuse(f"loop has no member '{node.attr}'", node)
            return node
        node.node = self.visit(node.node)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        is_slice = isinstance(node.arg, nodes.Slice)
        node.arg = self.visit(node.arg)
        node.node = self.visit(node.node)
        if is_slice:  # the only operation that Jinja leaves to Python alone, which warns about slices of literals
            node.node = _filtered(node.node, CHARGE)
        return node

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802
        for pair in node.items:
            if not isinstance(pair.key, nodes.Const):
                self._refuse("the keys of an object are names or texts", pair)
        return self.generic_visit(node)

    def visit_Filter(self, node: nodes.Filter) -> nodes.Node:  # noqa: N802
        if node.name not in FILTERS:
            self._refuse(f"there is no filter '{node.name}'; filters: {', '.join(FILTERS)}", node)
        return self._operation(node)

    def visit_Test(self, node: nodes.Test) -> nodes.Node:  # noqa: N802
        if node.name not in TESTS:
            self._refuse(f"there is no test '{node.name}'; tests: {', '.join(TESTS)}", node)
        return self._operation(node)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        node.expr = self._charged(node.expr)
        for operand in node.ops:
            operand.expr = self._charged(operand.expr)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        parts = nodes.List([self.visit(part) for part in node.nodes], lineno=node.lineno)
        return _filtered(parts, CONCAT)

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        if node.recursive:
            self._refuse("a loop cannot be recursive", node)
        self.visit(node.target)
        turn = UNITS_PER_STEP + sum(_cost(part) for part in [*node.body, *([node.test] if node.test else [])])
        node.iter = _filtered(self._charged(node.iter), EACH, nodes.Const(turn, lineno=node.lineno))
        if node.test is not None:
            node.test = self.visit(node.test)
        self._loops += 1
        node.body = [self.visit(part) for part in node.body]
        self._loops -= 1
        node.else_ = [self.visit(part) for part in node.else_]
        return node

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.Node:  # noqa: N802
        if node.filter is not None:
            self._refuse("a block of set takes no filter", node)
            node.filter = None
        return self.generic_visit(node)

    def visit_NSRef(self, node: nodes.NSRef) -> nodes.Node:  # noqa: N802
        self._refuse("a member of a value cannot be set", node)
        return node

    def visit_Pow(self, node: nodes.Pow) -> nodes.Node:  # noqa: N802
        self._refuse("the operator ** is not available", node)
        return node

    def _operation(self, node: nodes.Filter | nodes.Test) -> nodes.Node:
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            self._refuse("* and ** cannot be used in a call", node)
        if node.node is not None:
            node.node = self._charged(node.node)
        node.args = [self._charged(argument) for argument in node.args]
        for pair in node.kwargs:
            pair.value = self._charged(pair.value)
        return node

    def _charged(self, node: nodes.Node) -> nodes.Expr:
        guarded: nodes.Expr = self.visit(node)
        return guarded if isinstance(guarded, nodes.Const) else _filtered(guarded, CHARGE)

    def _refuse(self, message: str, node: nodes.Node) -> None:
        self.refusals.append(Refusal(message, node.lineno))


def _is_callable(target: nodes.Node) -> bool:
    if isinstance(target, nodes.Name):
        return target.name in {*FUNCTIONS, *RUN_CONSTANTS}
    if not isinstance(target, nodes.Getattr) or not isinstance(target.node, nodes.Name):
        return False
    return target.node.name == "loop" and target.attr in {"cycle", "changed"}


def _unknown(node: nodes.Name) -> nodes.Expr:
    """Return an expression that refuses a name when, and only when, it is evaluated."""
    return _filtered(nodes.Const(node.name, lineno=node.lineno), UNKNOWN, nodes.Const(node.lineno, lineno=node.lineno))


def _filtered(node: nodes.Expr, name: str, *args: nodes.Expr) -> nodes.Expr:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)


def _cost(node: nodes.Node) -> int:
    """Return what one turn over a node costs; the bodies of loops inside it are paid for by those loops."""
    if isinstance(node, nodes.TemplateData):
        return UNITS_PER_STEP + len(node.data)
    return UNITS_PER_STEP + sum(_cost(child) for child in _children(node))


def _children(node: nodes.Node) -> Iterator[nodes.Node]:
    return node.iter_child_nodes(only=("iter",)) if isinstance(node, nodes.For) else node.iter_child_nodes()
