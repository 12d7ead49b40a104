"""Mistakes of a template that are mistakes whatever the other files say.

Used when another file of the project is broken, so that its problems and these come in one report. Only what no other
file can excuse is looked for, and nothing is rendered: what stands inside a condition or a loop may never be evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pz_engine.base.near_miss import did_you_mean
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.pipeline import PipelineFile

if TYPE_CHECKING:
    from jinja2 import nodes

_HINT = "correct the template on this line; its functions are source, ref, sink, watermark, var and env"


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
    from jinja2 import TemplateSyntaxError, meta

    from pz_engine.compile.template.environment import PzEnvironment
    from pz_engine.compile.template.spelling import FUNCTIONS, RUN_CONSTANTS

    environment = PzEnvironment()
    known = {*FUNCTIONS, *RUN_CONSTANTS, "this"}
    for pipeline in tagged:
        try:
            tree = environment.parse(pipeline.text, pipeline.name, pipeline.file)
        except TemplateSyntaxError as error:
            message = f"pipeline '{pipeline.name}': {error.message or 'it cannot be parsed'}"
            problems.add("PZ0104", message, file=pipeline.file, line=error.lineno, hint=_HINT)
            continue
        except RecursionError:
            continue
        unknown = meta.find_undeclared_variables(tree) - known
        for node in _always_evaluated(tree):
            _look(node, pipeline, unknown, known, names, problems)


def _look(
    node: nodes.Node,
    pipeline: PipelineFile,
    unknown: set[str],
    known: set[str],
    names: set[str],
    problems: ProblemCollector,
) -> None:
    from jinja2 import nodes as kinds

    if isinstance(node, kinds.Name) and node.name in unknown:
        message = f"pipeline '{pipeline.name}': '{node.name}' is undefined"
        hint = did_you_mean(node.name, known) or _HINT
        problems.add("PZ0104", message, file=pipeline.file, line=node.lineno, hint=hint)
    if isinstance(node, kinds.Call) and isinstance(node.node, kinds.Name) and node.node.name == "ref":
        written = node.args[1:]  # the spelling puts the author's line in front
        target = written[0].value if len(written) == 1 and isinstance(written[0], kinds.Const) else None
        if isinstance(target, str) and target not in names:
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
