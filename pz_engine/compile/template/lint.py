"""Mistakes of a template that are mistakes whatever the other files say.

Used when another file of the project is broken, so that its problems and these come in one report. Only what no other
file can excuse is looked for, and nothing is rendered: what stands inside a condition or a loop may never be evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pz_engine.base.near_miss import did_you_mean
from pz_engine.compile.template.calls import MAX_TEXT
from pz_engine.compile.template.renderer import GENERAL_HINT, shorten
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.pipeline import PipelineFile

if TYPE_CHECKING:
    from jinja2 import nodes


def lint_templates(pipelines: Sequence[PipelineFile], names: set[str], problems: ProblemCollector) -> None:
    """Report templates that do not parse (`PZ0104`), unknown names (`PZ0104`) and unknown pipelines (`PZ0201`).

    Args:
        pipelines: the files that could be read.
        names: every pipeline there is a file of, readable or not.
        problems: takes what is found.
    """
    tagged = [pipeline for pipeline in pipelines if "{{" in pipeline.text or "{%" in pipeline.text]
    if not tagged:
        return
    from jinja2 import TemplateSyntaxError

    from pz_engine.compile.template.environment import PzEnvironment
    from pz_engine.compile.template.guard import guard, known_names

    environment = PzEnvironment()
    for pipeline in tagged:
        try:
            tree = environment.parse(pipeline.text, pipeline.name, pipeline.file)
        except TemplateSyntaxError as error:
            _add(pipeline, error.message or "it cannot be parsed", error.lineno, problems)
            continue
        except RecursionError:
            continue
        known = {*known_names(tree), "loop"}
        for node in _always_evaluated(tree):
            _look(node, pipeline, known, names, problems)
        for refusal in guard(tree):
            _add(pipeline, refusal.message, refusal.line, problems)


def _add(pipeline: PipelineFile, cause: str, line: int, problems: ProblemCollector, hint: str | None = None) -> None:
    message = f"pipeline '{pipeline.name}': {shorten(cause)}"
    problems.add("PZ0104", message, file=pipeline.file, line=line, hint=hint or GENERAL_HINT)


def _look(
    node: nodes.Node, pipeline: PipelineFile, known: set[str], names: set[str], problems: ProblemCollector
) -> None:
    from jinja2 import nodes as kinds

    from pz_engine.compile.template.guard import PZ_NAMES

    if isinstance(node, kinds.Name) and node.ctx == "load" and node.name not in known:
        _add(pipeline, f"'{node.name}' is undefined", node.lineno, problems, did_you_mean(node.name, PZ_NAMES))
    if isinstance(node, kinds.Call) and isinstance(node.node, kinds.Name) and node.node.name == "ref":
        written = node.args[1:]  # the spelling puts the author's line in front
        target = written[0].value if len(written) == 1 and isinstance(written[0], kinds.Const) else None
        if isinstance(target, str) and len(target) <= MAX_TEXT and target not in names:
            problems.add(
                "PZ0201",
                f"pipeline '{pipeline.name}' reads ref('{target}'), which does not exist",
                file=pipeline.file,
                line=node.lineno,
                hint=did_you_mean(target, names - {pipeline.name}) or f"create pipelines/{target}.sql",
            )


def _always_evaluated(node: nodes.Node) -> Iterator[nodes.Node]:
    from jinja2 import nodes as kinds

    for child in node.iter_child_nodes():
        if not isinstance(child, (kinds.If, kinds.For, kinds.CondExpr, kinds.And, kinds.Or, kinds.Test, kinds.Filter)):
            yield child
            yield from _always_evaluated(child)
