"""Checks the slices a request gives before anything of the run exists; every problem is reported at once."""

from __future__ import annotations

from collections.abc import Iterator

from pz_engine.app.host import RunRequest
from pz_engine.base.near_miss import did_you_mean
from pz_engine.compile.dag import CompiledProject, SourceLoadNode
from pz_engine.connectors.capabilities import Capability
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.errors.exceptions import PzValidationError
from pz_engine.execute.run_windows import RunWindow, RunWindows
from pz_engine.model.cursor_values import canonicalize, compare
from pz_engine.plan.specs import connector_of


def check_windows(compiled: CompiledProject, request: RunRequest) -> RunWindows:
    """Return a request's slices in canonical spelling.

    Raises:
        PzValidationError: `PZ0210`, nothing reads the entity; `PZ0212`, it has no cursor of a declared type; `PZ0213`, the
            ends are no values of that type, not ascending, or cannot be asked for; `PZ0313`, the connector has no
            bounded reads. No message holds a bound.
    """
    loads = {node.key: node for node in compiled.nodes if isinstance(node, SourceLoadNode)}
    problems: list[Diagnostic] = []
    found: dict[str, RunWindow] = {}
    for key in sorted({*request.windows, *request.window_cuts}):
        node = loads.get(key)
        if node is None:
            hint = did_you_mean(key, loads) or "name an entity that a pipeline reads, as <connection>.<entity>"
            problems.append(Diagnostic("PZ0210", f"no pipeline reads '{key}', for which a window is given", hint=hint))
            continue
        refused = list(_refusals(compiled, node))
        problems.extend(refused)
        if not refused and node.incremental is not None and node.incremental.cursor_type is not None:
            window = _window(request, key, node.incremental.cursor_type)
            if window is None:
                problems.append(
                    Diagnostic(
                        "PZ0213",
                        f"the window given for '{key}' is no pair of ascending {node.incremental.cursor_type} values, or "
                        "its parts do not ascend to its end",
                        node.file,
                        node.line,
                        hint=f"give the lower end, exclusive, and the upper end, inclusive, as {_EXAMPLES[node.incremental.cursor_type]}",
                    )
                )
            else:
                found[key] = window
    if problems:
        raise PzValidationError(problems)
    return RunWindows(found, request.state_mode == "bypass")


_EXAMPLES = {
    "int": "whole numbers",
    "bigint": "whole numbers",
    "decimal": "decimal numbers",
    "date": "dates such as 2026-01-31",
    "timestamp": "UTC timestamps such as 2026-01-31T23:59:59.999999",
}


def _refusals(compiled: CompiledProject, node: SourceLoadNode) -> Iterator[Diagnostic]:
    connector = connector_of(compiled, node.connection)
    if node.incremental is None or node.incremental.cursor_type is None:
        what = "is read in full" if node.incremental is None else "has a cursor whose type is not declared"
        yield Diagnostic(
            "PZ0212",
            f"'{node.key}' {what}, so no window can be cut from it",
            node.file,
            node.line,
            hint="declare sync: {mode: incremental, cursor: <column>} and the column's type in columns",
        )
    if isinstance(node.options.get("query"), str):
        yield Diagnostic(
            "PZ0213",
            f"'{node.key}' is read by a query option, from which no window can be cut",
            node.file,
            node.line,
            hint="name the entity instead of giving query",
        )
    if Capability.BOUNDED_WINDOW not in connector.capabilities:
        yield Diagnostic(
            "PZ0313",
            f"a window is given for '{node.key}'; connector '{connector.info.name}' has no bounded reads",
            node.file,
            node.line,
            hint="read it without a window",
        )


def _window(request: RunRequest, key: str, cursor_type: str) -> RunWindow | None:
    given = request.windows.get(key)
    if given is None or len(given) != 2:
        return None
    values = [canonicalize(cursor_type, text) for text in (*given, *request.window_cuts.get(key, ()))]
    lower, upper, *cuts = values
    if lower is None or upper is None or compare(cursor_type, lower, upper) >= 0:
        return None
    last, ends = lower, []
    for cut in cuts:
        if cut is None or compare(cursor_type, last, cut) >= 0:
            return None
        ends.append(cut)
        last = cut
    if ends and compare(cursor_type, last, upper) != 0:
        return None
    return RunWindow(lower, upper, tuple(ends))
