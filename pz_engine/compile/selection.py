"""Which nodes a command is about: names, a `--select` expression, everything, or ids from a host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from pz_engine.base.near_miss import did_you_mean
from pz_engine.compile.dag import CompiledProject, Graph, PipelineNode, SourceLoadNode
from pz_engine.errors.collector import ProblemCollector

_ATOM = re.compile(r"(\+?)(?:tag:([^\s,+]+)|(source:)?([A-Za-z0-9_.*/-]+))(\+?)")


def resolve_selection(
    compiled: CompiledProject,
    *,
    names: Sequence[str] = (),
    expression: str | None = None,
    everything: bool = False,
    node_ids: frozenset[str] | None = None,
    require_choice: bool = False,
) -> frozenset[str]:
    """Return the ids of the selected nodes; an expression adds nothing that it does not say.

    Args:
        compiled: a project that compiled.
        names: exact node names; each brings its ancestors and descendants.
        expression: a `--select` expression; blank counts as none.
        everything: `--all`.
        node_ids: exactly these; for hosts, and exclusive with the rest.
        require_choice: refuse to choose everything when the project has several flows.

    Raises:
        PzValidationError: `PZ0210`, `PZ0215` or `PZ0216`.
    """
    problems = ProblemCollector()
    if node_ids is not None:
        return node_ids & frozenset(compiled.graph.by_id)
    has_expression = expression is not None and expression.strip() != ""
    if sum([bool(names), has_expression, everything]) > 1:
        problems.add(
            "PZ0216", "names, --select and --all exclude each other", hint="keep one of them, for example only the names"
        )  # fmt: skip
        problems.raise_if_any()
    if names:
        selected = _by_names(compiled, names, problems)
    elif expression is not None and has_expression:
        selected = _by_expression(compiled.graph, expression, problems)
    else:
        if require_choice and not everything and len(compiled.flows) > 1:
            labels = "; ".join(flow.label for flow in compiled.flows)
            problems.add(
                "PZ0215", f"the project has {len(compiled.flows)} flows: {labels}",
                hint=f"pz run --all, or name a node such as `pz run {_first_name(compiled)}`",
            )  # fmt: skip
        selected = frozenset(compiled.graph.by_id)
    problems.raise_if_any()
    return selected


def _first_name(compiled: CompiledProject) -> str:
    return compiled.graph.by_id[compiled.flows[0].node_ids[-1]].name


def _by_names(compiled: CompiledProject, names: Sequence[str], problems: ProblemCollector) -> frozenset[str]:
    graph = compiled.graph
    selected: set[str] = set()
    for name in dict.fromkeys(names):
        if name.startswith("-"):
            problems.add("PZ0210", f"unknown option {name}", hint="see --help for the options of this command")
        elif name not in graph.by_name:
            labels = "; ".join(flow.label for flow in compiled.flows)
            problems.add(
                "PZ0210", f"no node is called '{name}'; flows: {labels}",
                hint=did_you_mean(name, graph.by_name) or "see `pz ls`",
            )  # fmt: skip
        else:
            ids = [node.id for node in graph.nodes if node.name == name]  # a check may be called like a pipeline
            selected |= {*ids, *graph.ancestors(ids), *graph.descendants(ids)}
    return frozenset(selected)


def _by_expression(graph: Graph, expression: str, problems: ProblemCollector) -> frozenset[str]:
    selected: set[str] = set()
    for group in expression.split():
        atoms = [_atom(graph, piece, problems) for piece in group.split(",") if piece]
        if atoms:
            selected |= set.intersection(*atoms)
    return frozenset(selected)


def _atom(graph: Graph, text: str, problems: ProblemCollector) -> set[str]:
    match = _ATOM.fullmatch(text)
    if match is None:
        problems.add(
            "PZ0210", f"'{text}' is no selector", hint="write a name, tag:<name> or source:<connection>.<entity>, with + around it"
        )  # fmt: skip
        return set()
    tag, is_source, pattern = match[2], match[3] is not None, match[4]
    base = _tagged(graph, tag) if tag is not None else _matching(graph, pattern, is_source=is_source)
    if not base:
        hint = None if tag is not None or is_source else did_you_mean(pattern, [node.name for node in graph.nodes])
        problems.add("PZ0210", f"'{text}' matches no node", hint=hint or "see `pz ls`")
    found = set(base)
    if match[1]:
        found |= graph.ancestors(base)
    if match[5]:
        found |= graph.descendants(base)
    return found


def _tagged(graph: Graph, tag: str) -> set[str]:
    return {node.id for node in graph.nodes if isinstance(node, PipelineNode) and tag in node.tags}


def _matching(graph: Graph, pattern: str, *, is_source: bool) -> set[str]:
    found: set[str] = set()
    for node in graph.nodes:
        name = node.key if is_source and isinstance(node, SourceLoadNode) else node.name
        if (not is_source or isinstance(node, SourceLoadNode)) and fnmatchcase(name, pattern):
            found.add(node.id)
    return found
