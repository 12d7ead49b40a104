"""Renders pipelines: template text to SQL text and recorded calls.

A failure in one pipeline never keeps the others from rendering.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from pz_engine.base.near_miss import did_you_mean
from pz_engine.compile.template.calls import CTE_MARKER, RecordedCalls, RenderedPipeline
from pz_engine.duck.quoting import quote_literal
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.pipeline import PipelineFile

if TYPE_CHECKING:
    from jinja2 import Template

    from pz_engine.compile.template.environment import PzEnvironment
    from pz_engine.compile.template.functions import RenderScope

GENERAL_HINT = "correct the template on this line; its functions are source, ref, sink, watermark, var and env"
"""What to do about a template that is wrong in no particular way."""

_LONGEST_CAUSE = 300
_TAG = re.compile(r"\{\{|\{%|\{#")
_RESERVED = re.compile(r"__pz_(?:sink|watermark|cte)__")


def render_pipelines(
    pipelines: Sequence[PipelineFile],
    *,
    ephemerals: Collection[str],
    variables: Mapping[str, Any],
    env: Mapping[str, str],
    run_id: str,
    started_at: datetime,
    problems: ProblemCollector,
) -> tuple[RenderedPipeline, ...]:
    """Render every pipeline; those with a problem are left out and reported to `problems`."""
    rendered: list[RenderedPipeline] = []
    for pipeline in pipelines:
        found = ProblemCollector()
        if not _TAG.search(pipeline.text):
            text, calls = pipeline.text, RecordedCalls()
        else:
            from pz_engine.compile.template.functions import RenderScope

            scope = RenderScope(
                pipeline.name, pipeline.file, ephemerals, variables, env, run_id, format_started_at(started_at), found
            )
            text, calls = _render(pipeline, scope) or "", scope.calls
        _refuse_reserved(pipeline, found)
        # A call inside a loop fails anew in every turn.
        problems.errors.extend(dict.fromkeys(found.errors))
        problems.warnings.extend(dict.fromkeys(found.warnings))
        if not found.errors:
            rendered.append(RenderedPipeline(pipeline, text, calls))
    return tuple(rendered)


def format_started_at(moment: datetime) -> str:
    """Render `run_started_at`: ISO 8601 with seven fractional digits and an offset.

    >>> from datetime import timezone
    >>> format_started_at(datetime(2026, 1, 2, 3, 4, 5, 600000, tzinfo=timezone.utc))
    '2026-01-02T03:04:05.6000000+00:00'
    """
    text = moment.isoformat(timespec="microseconds")
    return f"{text[:26]}0{text[26:]}"


@cache
def _environment() -> PzEnvironment:
    from pz_engine.compile.template.environment import PzEnvironment

    return PzEnvironment()


def _refuse_reserved(pipeline: PipelineFile, problems: ProblemCollector) -> None:
    match = _RESERVED.search(pipeline.text)
    if match is None:
        return
    line = pipeline.text.count("\n", 0, match.start()) + 1
    problems.add(
        "PZ0104", f"pipeline '{pipeline.name}': names that start with {match[0]} are reserved", file=pipeline.file,
        line=line, hint="use another name",
    )  # fmt: skip


def _render(pipeline: PipelineFile, scope: RenderScope) -> str | None:
    from pz_engine.compile.template.functions import template_names

    environment = _environment()
    template = _compiled(pipeline, environment, scope)
    if template is None:
        return None
    before = len(scope.problems.errors)
    try:
        text = "".join(template.root_render_func(template.new_context(template_names(scope))))
    except Exception as error:
        if len(scope.problems.errors) == before:  # otherwise a follow-up of what was already reported
            _add(scope, _describe(error), _line_of(error, template), _near_miss(error))
        return None
    if _holds_foreign_marker(text, scope.calls):
        _add(scope, "what it renders to holds a name that starts with __pz_, which is reserved", 1)
    return text


def _holds_foreign_marker(text: str, calls: RecordedCalls) -> bool:
    """Tell whether a reserved name is in the text that no call of this pipeline put there."""
    if _RESERVED.search(text) is None:
        return False
    own = [sink.marker for sink in calls.sinks]
    own += [quote_literal(watermark.sentinel) for watermark in calls.watermarks]
    own += [f"{CTE_MARKER}{ref.pipeline}" for ref in calls.refs]
    for marker in dict.fromkeys(own):
        text = text.replace(marker, "")
    return _RESERVED.search(text) is not None


def _compiled(pipeline: PipelineFile, environment: PzEnvironment, scope: RenderScope) -> Template | None:
    from jinja2 import Template, TemplateSyntaxError

    from pz_engine.compile.template.guard import guard

    try:
        tree = environment.parse(pipeline.text, pipeline.name, pipeline.file)
        refusals = guard(tree)
        if not refusals:
            return Template.from_code(environment, environment.compile(tree, pipeline.name, pipeline.file), {})
    except TemplateSyntaxError as error:
        _add(scope, error.message or "it cannot be parsed", error.lineno)
        return None
    except RecursionError:
        _add(scope, "it is nested too deeply", None)
        return None
    except Exception as error:  # Jinja hands some malformed input on to Python's compiler
        _add(scope, f"it cannot be parsed ({type(error).__name__})", None)
        return None
    for refusal in refusals:
        _add(scope, refusal.message, refusal.line)
    return None


def shorten(cause: str) -> str:
    """Cut a sentence that repeats a word of absurd length."""
    return cause if len(cause) <= _LONGEST_CAUSE else f"{cause[:_LONGEST_CAUSE]}..."


def _add(scope: RenderScope, cause: str, line: int | None, hint: str | None = None) -> None:
    message = f"pipeline '{scope.pipeline}': {shorten(cause)}"
    scope.problems.add("PZ0104", message, file=scope.file, line=line, hint=hint or GENERAL_HINT)


def _near_miss(error: Exception) -> str | None:
    from pz_engine.compile.template.guard import PZ_NAMES
    from pz_engine.compile.template.values import UnknownNameError

    return did_you_mean(error.name, PZ_NAMES) if isinstance(error, UnknownNameError) else None


def _describe(error: Exception) -> str:
    from jinja2 import TemplateError

    if isinstance(error, TemplateError):
        return (error.message or "it cannot be rendered").rstrip(".")
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    # The text of other exceptions may quote a variable's value.
    detail = f": {error}" if isinstance(error, TypeError) else ""
    return f"an expression cannot be evaluated ({type(error).__name__}{detail})"


def _line_of(error: Exception, template: Any) -> int | None:
    from pz_engine.compile.template.values import UnknownNameError

    if isinstance(error, UnknownNameError):
        return error.line
    trace = error.__traceback__
    line: int | None = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == template.filename:
            line = template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return line
