"""The leading `INSERT INTO` of a pipeline.

It is only a declaration: it is cut off, and no statement is ever run against a destination from a pipeline's text.
"""

from __future__ import annotations

import re

from pz_engine.compile.template.calls import SINK_MARKER, RenderedPipeline
from pz_engine.errors.collector import ProblemCollector

_HEAD = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*(?:[^*]|\*(?!/))*\*/)*insert\s+into\s+", re.IGNORECASE)
_SHAPE = (
    "start the file with INSERT INTO {{ sink(...) }}, or INSERT INTO [{{ sink(...) }}, {{ sink(...) }}], then the query"
)


def cut_insert_prefix(rendered: RenderedPipeline, problems: ProblemCollector) -> str:
    """Return the query without its prefix, normalised; a wrong shape is `PZ0208` on the first call's line."""
    sinks = rendered.calls.sinks
    if not sinks:
        return normalise_query(rendered.sql)
    markers = [sink.marker for sink in sinks]
    query = _match(rendered.sql, markers)
    if query is None:
        if any(problem.code == "PZ0208" and problem.file == rendered.file.file for problem in problems.errors):
            return normalise_query(rendered.sql)  # the second mention is why the shape is wrong
        problems.add(
            "PZ0208", f"pipeline '{rendered.name}': sink() may stand only in a leading INSERT INTO",
            file=rendered.file.file, line=sinks[0].line, hint=_SHAPE,
        )  # fmt: skip
        return normalise_query(rendered.sql)
    return query


def normalise_query(text: str) -> str:
    """Trim a query's end and drop one trailing semicolon; what stands in front stays.

    >>> normalise_query("  select 1 ; ")
    '  select 1'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").rstrip()
    return text[:-1].rstrip() if text.endswith(";") else text


def _match(text: str, markers: list[str]) -> str | None:
    head = _HEAD.match(text)
    if head is None:
        return None
    listed = r"\s*,\s*".join(re.escape(marker) for marker in markers)
    single = rf"{re.escape(markers[0])}|" if len(markers) == 1 else ""
    target = re.compile(rf"(?:{single}\[\s*{listed}\s*\])\s+").match(text, head.end())
    if target is None:
        return None
    query = normalise_query(text[target.end() :])
    return None if not query or SINK_MARKER in query else query
