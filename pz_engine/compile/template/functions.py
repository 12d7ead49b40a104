"""The functions of the template language.

Each records what it was asked for and returns SQL text; a wrong argument is a problem, never an exception, so that all
of a file's problems are found in one rendering.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from jinja2.runtime import Undefined
from msgspec import Struct, field

from pz_engine.base.near_miss import closest, is_one_edit_apart
from pz_engine.base.plain_text import forbidden_character
from pz_engine.compile.template.calls import (
    CTE_MARKER,
    MAX_TEXT,
    SINK_MARKER,
    RecordedCalls,
    RefCall,
    SinkCall,
    SourceCall,
    WatermarkCall,
)
from pz_engine.compile.template.environment import PzFunction
from pz_engine.compile.template.spelling import REPEATED_PREFIX
from pz_engine.compile.template.values import WORK
from pz_engine.compile.template.work import Work
from pz_engine.config.entity_sides import (
    READ_KEYS,
    WRITE_KEYS,
    entity_name_problem,
    parse_read_side,
    parse_write_side,
)
from pz_engine.config.located import Located, Table, locate
from pz_engine.config.reporter import Reporter
from pz_engine.duck.quoting import STAGING_SCHEMA, quote_literal
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.entity import staging_name

_MOST_SUGGESTIONS = 20


class RenderScope(Struct):
    """Everything the functions of one pipeline see."""

    pipeline: str
    file: str
    ephemerals: Collection[str]
    variables: Mapping[str, Any]
    env: Mapping[str, str]
    run_id: str
    run_started_at: str
    problems: ProblemCollector
    calls: RecordedCalls = field(default_factory=RecordedCalls)
    _suggestions: dict[str, str | None] = field(default_factory=dict)

    def suggest(self, name: str, candidates: Iterable[str]) -> str | None:
        """Return the candidate most like a name; for the first few names only, since looking takes time."""
        if name not in self._suggestions:
            is_late = len(self._suggestions) >= _MOST_SUGGESTIONS
            self._suggestions[name] = None if is_late else closest(name, candidates)
        return self._suggestions[name]

    def report(self, call: str) -> Reporter:
        """Return a reporter for a call of this pipeline."""
        return Reporter(self.problems, self.file, f"pipeline '{self.pipeline}', {call}")


def template_names(scope: RenderScope) -> dict[str, Any]:
    """Return every name a template may use, and the account of one rendering."""
    return {
        "source": _Source(scope),
        "ref": _Ref(scope),
        "sink": _Sink(scope),
        "watermark": _Watermark(scope),
        "var": _Var(scope),
        "env": _Env(scope),
        "run_id": _RunConstant(scope, scope.run_id),
        "run_started_at": _RunConstant(scope, scope.run_started_at),
        "this": f"{STAGING_SCHEMA}.{scope.pipeline}",
        WORK: Work(),
    }


class _Function(PzFunction):
    """What the functions share: the checks of their arguments."""

    name = ""
    code = "PZ0104"
    parameters: tuple[str, ...] = ()
    usage = ""

    def __init__(self, scope: RenderScope) -> None:
        self.scope = scope

    def _texts(self, line: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the positional texts, or None after reporting what is wrong with them."""
        report = self.scope.report(f"{self.name}()")
        undefined = next((value for value in args if isinstance(value, Undefined)), None)
        if undefined is not None:
            report.add("PZ0104", f"unknown name '{undefined._undefined_name}'", line=line, hint=self.usage)
            return None
        texts = tuple(value for value in args if isinstance(value, str) and len(value) <= MAX_TEXT)
        if len(texts) != len(args) or len(texts) != len(self.parameters):
            wanted = " and ".join(self.parameters)
            report.add(self.code, f"it takes {wanted}, as text", line=line, hint=self.usage)
            return None
        if kwargs and not self._takes_named_arguments:
            names = ", ".join(_original_name(name) for name in kwargs)
            report.add(self.code, f"it takes no named arguments ({names})", line=line, hint=self.usage)
            return None
        return texts

    def _text_value(self, name: str, value: Any, line: int) -> Any:
        """Return a value that comes from outside, nothing after reporting what it cannot hold."""
        if forbidden_character(value) is None:
            return value
        report = self.scope.report(f"{self.name}()")
        report.add("PZ0104", f"the value of {name} is not UTF-8 text", line=line, hint="set it anew, without NUL")
        return ""

    @property
    def _takes_named_arguments(self) -> bool:
        return False

    def _entity_is_valid(self, texts: tuple[str, ...], line: int) -> bool:
        problem = entity_name_problem(texts[1])
        if problem is not None:
            report = self.scope.report(f"{self.name}()")
            report.add("PZ0344", f"the entity's name {problem}", line=line, hint="spell it as the remote system does")
        return problem is None


class _EntityFunction(_Function):
    """A function whose named arguments declare one side of an entity."""

    owned: tuple[str, ...] = ()

    @property
    def _takes_named_arguments(self) -> bool:
        return True

    def _declaration(self, line: int, kwargs: Mapping[str, Any], report: Reporter) -> Table | None:
        """Return the named arguments as a table, or None when there are none."""
        entries: dict[str, Located] = {}
        for name, value in kwargs.items():
            if name.startswith(REPEATED_PREFIX):
                report.add(self.code, f"{_original_name(name)} is given twice", line=line, hint="keep one of them")
                continue
            try:
                entries[name] = locate(value, line)
            except TypeError as error:
                if isinstance(value, Undefined):
                    cause = f"{name} uses the unknown name '{value._undefined_name}'"
                    report.add("PZ0104", cause, line=line, hint="quote texts, and use var() for variables")
                else:
                    report.add(
                        "PZ0137", f"{name} holds {error}", line=line, hint="use texts, numbers, lists and objects"
                    )
        self._warn_about_near_misses(entries, line, report)
        return Table(entries, line, dict.fromkeys(entries, line)) if kwargs else None

    def _warn_about_near_misses(self, entries: Mapping[str, Located], line: int, report: Reporter) -> None:
        for name in entries:
            for owned in self.owned:
                if name not in self.owned and is_one_edit_apart(name, owned):
                    report.problems.warn(
                        self.code, f"{report.where}: '{name}' is passed to the connector; '{owned}' is pz's own",
                        file=report.file, line=line, hint=f"write {owned} if that was meant",
                    )  # fmt: skip


class _Source(_EntityFunction):
    name = "source"
    code = "PZ0201"
    parameters = ("a connection", "an entity")
    usage = "write {{ source('<connection>', '<entity>') }}"
    owned = READ_KEYS

    def __call__(self, line: int, /, *args: Any, **kwargs: Any) -> str:
        """Record a read and return its staging relation."""
        texts = self._texts(line, args, kwargs)
        if texts is None or not self._entity_is_valid(texts, line):
            return ""
        connection, entity = texts
        report = self.scope.report(f"source('{connection}', '{entity}')")
        table = self._declaration(line, kwargs, report)
        read = parse_read_side(table, entity, report) if table is not None else None
        self.scope.calls.sources.append(SourceCall(connection, entity, line, read))
        return f"{STAGING_SCHEMA}.{staging_name(connection, entity)}"


class _Sink(_EntityFunction):
    name = "sink"
    code = "PZ0208"
    parameters = ("a connection", "an entity")
    usage = "write INSERT INTO {{ sink('<connection>', '<entity>') }}"
    owned = WRITE_KEYS

    def __call__(self, line: int, /, *args: Any, **kwargs: Any) -> str:
        """Record a write and return its marker."""
        texts = self._texts(line, args, kwargs)
        if texts is None or not self._entity_is_valid(texts, line):
            return ""
        connection, entity = texts
        report = self.scope.report(f"sink('{connection}', '{entity}')")
        table = self._declaration(line, kwargs, report)
        write = parse_write_side(table, entity, report) if table is not None else None
        marker = f"{SINK_MARKER}{len(self.scope.calls.sinks)}__"
        self.scope.calls.sinks.append(SinkCall(connection, entity, line, marker, write))
        return marker


class _Ref(_Function):
    name = "ref"
    code = "PZ0201"
    parameters = ("a pipeline",)
    usage = "write {{ ref('<pipeline>') }}"

    def __call__(self, line: int, /, *args: Any, **kwargs: Any) -> str:
        """Record a dependency and return its relation."""
        texts = self._texts(line, args, kwargs)
        if texts is None:
            return ""
        self.scope.calls.refs.append(RefCall(texts[0], line))
        return f"{CTE_MARKER}{texts[0]}" if texts[0] in self.scope.ephemerals else f"{STAGING_SCHEMA}.{texts[0]}"


class _Watermark(_Function):
    name = "watermark"
    parameters = ("a connection", "an entity")
    usage = "write <cursor> >= {{ watermark('<connection>', '<entity>') }}"

    def __call__(self, line: int, /, *args: Any, **kwargs: Any) -> str:
        """Record a reference and return the quoted sentinel."""
        texts = self._texts(line, args, kwargs)
        if texts is None or not self._entity_is_valid(texts, line):
            return ""
        call = WatermarkCall(texts[0], texts[1], line)
        self.scope.calls.watermarks.append(call)
        return quote_literal(call.sentinel)


class _Var(_Function):
    name = "var"
    parameters = ("a variable's name",)
    usage = "write {{ var('<name>') }}"

    def __call__(self, line: int, /, *args: Any, **kwargs: Any) -> Any:
        """Return a variable's value."""
        texts = self._texts(line, args, kwargs)
        if texts is None:
            return ""
        if texts[0] in self.scope.variables:
            return self._text_value(texts[0], self.scope.variables[texts[0]], line)
        best = self.scope.suggest(texts[0], self.scope.variables)
        hint = f"did you mean '{best}'?" if best else f"declare {texts[0]} below vars: in project.yml"
        self.scope.report("var()").add("PZ0104", f"there is no variable '{texts[0]}'", line=line, hint=hint)
        return ""


class _Env(_Function):
    name = "env"
    parameters = ("a variable's name",)
    usage = "write {{ env('<NAME>') }}"

    def __call__(self, line: int, /, *args: Any, **kwargs: Any) -> str:
        """Return an environment variable's text."""
        texts = self._texts(line, args, kwargs)
        if texts is None:
            return ""
        if texts[0] in self.scope.env:
            text: str = self._text_value(texts[0], self.scope.env[texts[0]], line)
            return text
        best = self.scope.suggest(texts[0], self.scope.env)
        hint = f"set it with `export {texts[0]}=...`" + (f", or use {best}" if best else "")
        self.scope.report("env()").add("PZ0103", f"environment variable {texts[0]} is not set", line=line, hint=hint)
        return ""


class _RunConstant(PzFunction):
    """`run_id` or `run_started_at`; remembers that it was used."""

    def __init__(self, scope: RenderScope, text: str) -> None:
        self._scope = scope
        self._text = text

    def __call__(self) -> str:
        """Return the constant."""
        self._scope.calls.uses_run_identity = True
        return self._text


def _original_name(name: str) -> str:
    return name.removeprefix(REPEATED_PREFIX).partition("_")[2] if name.startswith(REPEATED_PREFIX) else name
