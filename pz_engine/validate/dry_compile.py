"""Tier 4: every pipeline's SQL against empty tables, in a throwaway database.

A pipeline is compiled when everything it reads is; so one broken pipeline gives one error, not one per dependent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pz_engine.compile.dag import CheckNode, CompiledProject, Node, PipelineNode, SourceLoadNode
from pz_engine.compile.watermark_sql import null_watermarks
from pz_engine.duck.quoting import quote_identifier, staging_relation
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.contract_types import duck_type_of
from pz_engine.model.policies import Materialization
from pz_engine.validate.author_lines import author_line, plain_sql
from pz_engine.validate.report import ValidationReport

if TYPE_CHECKING:
    from pz_engine.duck.instance import DuckInstance
    from pz_engine.duck.session import DuckCursor
    from pz_engine.duck.statement_error import DuckStatementError

_ECHO = re.compile(r"^LINE (\d+):", re.MULTILINE)
_WORD = re.compile(r"[^\W\d]\w*")
_NEAR = re.compile(r'near "([^\W\d]\w*)"')


def dry_compile(compiled: CompiledProject, instance: DuckInstance | None = None) -> ValidationReport:
    """Bind every pipeline that can be; a refusal is `PZ0401` on the pipeline's file."""
    if not any(isinstance(node, PipelineNode) for node in compiled.nodes):
        return ValidationReport()
    from pz_engine.duck.session import DuckSession, DuckSettings

    with DuckSession.open(None, DuckSettings(threads=1), instance) as session, session.cursor() as cursor:
        return _DryCompile(compiled, cursor).run()


class _DryCompile:
    def __init__(self, compiled: CompiledProject, cursor: DuckCursor) -> None:
        self._compiled = compiled
        self._cursor = cursor
        self._problems = ProblemCollector()
        self._available: set[str] = set()
        self._undeclared: dict[str, SourceLoadNode] = {}
        self._skipped: set[str] = set()

    def run(self) -> ValidationReport:
        for node in self._compiled.nodes:
            if isinstance(node, SourceLoadNode):
                self._source(node)
            elif isinstance(node, CheckNode):
                self._custom_sql(node)
            elif isinstance(node, PipelineNode) and self._is_one_query(node.sql, node, f"pipeline '{node.name}'"):
                if self._available.issuperset(node.depends_on):
                    self._pipeline(node)
                else:
                    self._skipped.add(node.id)
        return ValidationReport.of(self._problems, [self._note(node) for node in self._undeclared.values()])

    def _source(self, node: SourceLoadNode) -> None:
        if not node.columns:
            self._undeclared[node.id] = node
            return
        columns = ", ".join(f"{quote_identifier(name)} {duck_type_of(kind)}" for name, kind in node.columns.items())
        if self._execute(
            f"create table {staging_relation(node.name)} ({columns})", node, f"the contract of '{node.key}'"
        ):
            self._available.add(node.id)

    def _is_one_query(self, sql: str, node: PipelineNode | CheckNode, subject: str) -> bool:
        """Parse a text on its own: what is run later wraps it, and must not be able to leave the wrapping."""
        from pz_engine.duck.statement_error import DuckStatementError

        file, own_line = node.file, node.line
        if isinstance(node, CheckNode):
            file, own_line = node.sidecar or node.file, node.check.line
        try:
            kinds = self._cursor.statement_kinds(sql)
        except DuckStatementError as error:
            first = _shown(error, node)
            line = _line(error, node, leading=0) if isinstance(node, PipelineNode) else own_line
            self._problems.add(
                "PZ0401", f"{subject} does not parse: {first}", file=file, line=line, hint="correct the SQL"
            )
            return False
        is_pivot = kinds == ("CREATE", "SELECT") and "pivot" in sql.lower()
        if kinds != ("SELECT",) and not is_pivot:
            what = "no statement" if not kinds else f"{len(kinds)} statements ({', '.join(kinds)})"
            self._problems.add(
                "PZ0401", f"{subject} holds {what} where one query is wanted", file=file, line=own_line,
                hint="keep one SELECT; a trailing ; is fine",
            )  # fmt: skip
            return False
        return True

    def _custom_sql(self, node: CheckNode) -> None:
        text = node.check.options.get("sql")
        if isinstance(text, str):
            self._is_one_query(text.strip().rstrip(";"), node, f"check '{node.name}'")

    def _pipeline(self, node: PipelineNode) -> None:
        kind = "view" if node.materialization is Materialization.VIEW else "table"
        sql = null_watermarks(node, self._compiled.graph)
        statement = f"create {kind} {staging_relation(node.name)} as select * from (\n{sql}\n) limit 0"
        if self._execute(statement, node, f"pipeline '{node.name}'"):
            self._available.add(node.id)

    def _execute(self, statement: str, node: SourceLoadNode | PipelineNode, subject: str) -> bool:
        from pz_engine.duck.statement_error import DuckStatementError

        try:
            self._cursor.execute(statement)
        except DuckStatementError as error:
            lines = error.summary.splitlines() or ["DuckDB refused it"]
            candidates = next((line.strip() for line in lines[1:] if line.startswith("Candidate")), None)
            line = _line(error, node) if isinstance(node, PipelineNode) else node.line
            self._problems.add(
                "PZ0401", f"{subject} does not compile: {_shown(error, node)}", file=node.file, line=line,
                hint=candidates or "correct the SQL, or the column contract of what it reads",
            )  # fmt: skip
            return False
        return True

    def _note(self, node: SourceLoadNode) -> str:
        below = self._compiled.graph.descendants([node.id])
        count = sum(identity in self._skipped for identity in below)
        pipelines = "1 pipeline was" if count == 1 else f"{count} pipelines were"
        return f"{node.key} has no column contract: {pipelines} not checked against it"


def _line(error: DuckStatementError, node: PipelineNode, *, leading: int = 1) -> int | None:
    """Return the author's line that a message points at; `leading` lines of the statement stand before the query."""
    match = _ECHO.search(error.raw)
    if match is None:
        return None
    return author_line(node.source_text, node.sql, int(match[1]) - 1 - leading, _pointed_at(error.raw[match.start() :]))


def _pointed_at(echo: str) -> str | None:
    """Return the word above the caret of an echoed line."""
    line, _, below = echo.partition("\n")
    position = below.partition("\n")[0].find("^")
    word = _WORD.match(line, position) if position >= 0 else None
    return None if word is None else word[0]


def _shown(error: DuckStatementError, node: Node) -> str:
    """Return a message's first line without values; the word a parser stopped at is shown when the author's SQL has it."""
    shown = (error.summary.splitlines() or ["DuckDB refused it"])[0]
    near = _NEAR.search(error.raw)
    if near is None or not isinstance(node, PipelineNode):
        return shown
    is_written = re.search(rf"(?<![\w$]){near[1]}(?![\w$])", plain_sql(node.source_text)) is not None
    return shown.replace('near "***"', f'near "{near[1]}"') if is_written else shown
