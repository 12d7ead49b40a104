"""How each entity is read: full, or above a cursor that YAML or `watermark()` declares.

An entity is declared in one place; its readers agree on one cursor, and all of them filter or none does.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from pz_engine.compile.assembly import AssembledPipeline, EntityKey
from pz_engine.compile.dag import Floor, IncrementalRead, Window
from pz_engine.compile.entity_rules import contract_spelling, declared_cursor_type
from pz_engine.compile.sql_tree import is_table, walk
from pz_engine.compile.template.calls import WatermarkCall, watermark_sentinel
from pz_engine.compile.watermark_guard import write_guards
from pz_engine.compile.watermark_sql import Comparison, WatermarkAnalysis, analyse_watermarks
from pz_engine.duck.introspect import SqlParser
from pz_engine.duck.quoting import STAGING_SCHEMA, quote_literal
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.connection import Connection
from pz_engine.model.contract_types import cursor_type_of_contract
from pz_engine.model.cursor_values import CURSOR_TYPES
from pz_engine.model.entity import ReadSide
from pz_engine.model.policies import SyncMode

_ACCEPTED = "write a condition of WHERE such as <cursor> >= {{ watermark('<connection>', '<entity>') }}"
_CURSOR_TYPES = ", ".join(CURSOR_TYPES)


class IncrementalReads(Struct):
    """Every entity that is read incrementally, and what was noticed on the way."""

    by_entity: dict[EntityKey, IncrementalRead] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def infer_incremental_reads(
    pipelines: Mapping[str, AssembledPipeline],
    connections: Mapping[str, Connection],
    parser: SqlParser,
    problems: ProblemCollector,
) -> IncrementalReads:
    """Recognise `watermark()`, guard it against NULL in each pipeline's SQL, and fold it per entity."""
    found = IncrementalReads()
    comparisons: dict[EntityKey, dict[str, list[Comparison]]] = {}
    for pipeline in pipelines.values():
        if not any(quote_literal(sentinel) in pipeline.sql for sentinel in pipeline.watermarks):
            continue
        for comparison in _analyse(pipeline, parser, problems, found.notes):
            call, _ = pipeline.watermarks[comparison.sentinel]
            by_pipeline = comparisons.setdefault((call.connection, call.entity), {})
            by_pipeline.setdefault(pipeline.name, []).append(comparison)
    for key in sorted(comparisons):
        _fold(key, comparisons[key], pipelines, connections, problems, found)
    for (connection, entity), read in _yaml_reads(connections).items():
        found.by_entity.setdefault((connection, entity), read)
    return found


def _analyse(
    pipeline: AssembledPipeline, parser: SqlParser, problems: ProblemCollector, notes: list[str]
) -> tuple[Comparison, ...]:
    foreign = [
        s for s, (call, _) in pipeline.watermarks.items() if (call.connection, call.entity) not in pipeline.reads
    ]
    for sentinel in foreign:
        place = pipeline.watermarks[sentinel]
        call, _ = place
        _refuse(pipeline, place, f"it never reads source('{call.connection}', '{call.entity}')", problems)
    tree = parser.parse(pipeline.sql)
    if tree is None:
        if not foreign:
            for place in pipeline.watermarks.values():
                _refuse(pipeline, place, "the SQL is no single SELECT that DuckDB can take apart", problems)
        return ()
    analysis = analyse_watermarks(tree, pipeline.tables(), parser)
    for violation in analysis.violations:
        if violation.sentinel not in foreign:
            place = pipeline.watermark_at(violation.sentinel, violation.location)
            _refuse(pipeline, place, violation.cause, problems)
    _note_boundaries(pipeline, analysis, notes)
    _note_unfiltered(pipeline, tree, analysis, notes)
    if analysis.comparisons and not analysis.violations:
        text = write_guards(pipeline.sql, tree, analysis.comparisons, parser)
        if text is None:
            cause = "its comparison cannot be found in the text of the query, so a first run cannot be prepared"
            _refuse(pipeline, pipeline.watermarks[analysis.comparisons[0].sentinel], cause, problems)
            return ()
        pipeline.sql = text
        pipeline.used_sentinels = tuple(dict.fromkeys(item.sentinel for item in analysis.comparisons))
    return analysis.comparisons


def _refuse(
    pipeline: AssembledPipeline, place: tuple[WatermarkCall, str], cause: str, problems: ProblemCollector
) -> None:
    call, file = place
    message = f"pipeline '{pipeline.name}': watermark('{call.connection}', '{call.entity}') is not usable: {cause}"
    known = [problem for problem in problems.errors if problem.code == "PZ0224" and problem.file == file]
    is_repeated = file != pipeline.file and any(
        problem.line == call.line and problem.message.endswith(cause) for problem in known
    )
    if not is_repeated:  # an ephemeral's mistake is found once for each of its consumers
        problems.add("PZ0224", message, file=file, line=call.line, hint=_ACCEPTED)


def _note_boundaries(pipeline: AssembledPipeline, analysis: WatermarkAnalysis, notes: list[str]) -> None:
    for comparison in analysis.comparisons:
        if not comparison.is_inclusive:
            call, _ = pipeline.watermarks[comparison.sentinel]
            note = (
                f"pipeline '{pipeline.name}' reads {call.connection}.{call.entity} with >: rows that arrive later with "
                f"the stored cursor value are not read; >= with a merge reads them"
            )
            if note not in notes:
                notes.append(note)


def _note_unfiltered(pipeline: AssembledPipeline, tree: object, analysis: WatermarkAnalysis, notes: list[str]) -> None:
    for sentinel, table in pipeline.tables().items():
        floors = sum(comparison.sentinel == sentinel for comparison in analysis.comparisons)
        mentions = sum(is_table(node, STAGING_SCHEMA, table) for node in walk(tree))
        if 0 < floors < mentions:
            call, _ = pipeline.watermarks[sentinel]
            notes.append(
                f"pipeline '{pipeline.name}' reads {call.connection}.{call.entity} {mentions} times and filters it "
                f"{floors} times by watermark(): every one of them sees only the newly read rows"
            )


def _fold(
    key: EntityKey,
    comparisons: Mapping[str, list[Comparison]],
    pipelines: Mapping[str, AssembledPipeline],
    connections: Mapping[str, Connection],
    problems: ProblemCollector,
    found: IncrementalReads,
) -> None:
    read = _read_side(connections, key)
    if read is None:
        return
    name = f"{key[0]}.{key[1]}"
    first = pipelines[min(comparisons)]
    call, file = first.watermarks[watermark_sentinel(*key)]
    if read.sync is not None and read.sync.mode in {SyncMode.AUTO, SyncMode.CDC}:
        problems.add(
            "PZ0315", f"'{name}' has sync mode {read.sync.mode.value} and is filtered by watermark()", file=file,
            line=call.line, hint="remove its sync: block, or the watermark() filter",
        )  # fmt: skip
        return
    if read.sync is not None:
        windowed = " with a window; windows of YAML entities are declared in YAML only" if read.sync.is_windowed else ""
        problems.add(
            "PZ0225", f"'{name}' is declared incremental in YAML{windowed}, and filtered by watermark() as well", file=file,
            line=call.line, hint="remove its sync: block, or the watermark() filter",
        )  # fmt: skip
        return
    cursor = contract_spelling(read, comparisons[first.name][0].cursor)
    code = _disagreement(name, comparisons, pipelines, key, problems)
    if code == "PZ0225":
        return
    if code is None and not _contract_allows(name, read, cursor, file, call.line, problems):
        return
    _refuse_unfiltered_readers(key, cursor, comparisons, pipelines, problems)
    floors = tuple(
        Floor(pipeline, item.is_inclusive, item.value_sql, item.keeps_null_cursor)
        for pipeline in sorted(comparisons)
        for item in comparisons[pipeline]
    )
    found.by_entity[key] = IncrementalRead(
        cursor, declared_cursor_type(read, cursor), is_declared_in_sql=True, floors=floors
    )


def _refuse_unfiltered_readers(
    key: EntityKey,
    cursor: str,
    comparisons: Mapping[str, list[Comparison]],
    pipelines: Mapping[str, AssembledPipeline],
    problems: ProblemCollector,
) -> None:
    for other in pipelines.values():
        if key not in other.reads or other.name in comparisons or _is_reported(other, key, problems):
            continue
        problems.add(
            "PZ0226", f"pipeline '{other.name}' reads '{key[0]}.{key[1]}' without the watermark() filter that "
            f"'{min(comparisons)}' has", file=other.file, line=other.read_lines[key],
            hint=f"add {cursor} >= {{{{ watermark('{key[0]}', '{key[1]}') }}}}, or declare sync: in connections.yml",
        )  # fmt: skip


def _is_reported(pipeline: AssembledPipeline, key: EntityKey, problems: ProblemCollector) -> bool:
    """Tell whether a reader's own watermark() for the entity was already refused."""
    used = pipeline.watermarks.get(watermark_sentinel(*key))
    return used is not None and any(p.code == "PZ0224" and p.file == used[1] for p in problems.errors)


def _disagreement(
    name: str,
    comparisons: Mapping[str, list[Comparison]],
    pipelines: Mapping[str, AssembledPipeline],
    key: EntityKey,
    problems: ProblemCollector,
) -> str | None:
    """Return the code of what was reported when the comparisons name several cursors."""
    columns = {pipeline: {item.cursor.lower() for item in items} for pipeline, items in comparisons.items()}
    if len(set().union(*columns.values())) == 1:
        return None
    sentinel = watermark_sentinel(*key)
    for pipeline in sorted(columns):
        if len(columns[pipeline]) > 1:
            call, file = pipelines[pipeline].watermarks[sentinel]
            problems.add(
                "PZ0231", f"pipeline '{pipeline}' compares the watermark() of '{name}' with different columns: "
                f"{', '.join(sorted(columns[pipeline]))}", file=file, line=call.line, hint="use one cursor column",
            )  # fmt: skip
            return "PZ0231"
    pipeline = max(columns)
    call, file = pipelines[pipeline].watermarks[sentinel]
    used = "; ".join(f"'{other}' uses {', '.join(columns[other])}" for other in sorted(columns))
    problems.add(
        "PZ0225", f"readers of '{name}' use different cursors: {used}", file=file, line=call.line,
        hint="use one cursor column in every reader",
    )  # fmt: skip
    return "PZ0225"


def _contract_allows(name: str, read: ReadSide, cursor: str, file: str, line: int, problems: ProblemCollector) -> bool:
    if not read.columns:
        return True
    if cursor not in read.columns:
        problems.add(
            "PZ0227", f"the watermark() cursor '{cursor}' is not in the column contract of '{name}'", file=file, line=line,
            hint=f"add {cursor} to columns, with one of the types {_CURSOR_TYPES}",
        )  # fmt: skip
        return False
    if cursor_type_of_contract(read.columns[cursor]) is None:
        problems.add(
            "PZ0227", f"the watermark() cursor '{cursor}' of '{name}' has type {read.columns[cursor]}, which cannot be a "
            "cursor", file=file, line=line, hint=f"give it one of the types {_CURSOR_TYPES}",
        )  # fmt: skip
        return False
    return True


def _read_side(connections: Mapping[str, Connection], key: EntityKey) -> ReadSide | None:
    connection = connections.get(key[0])
    entity = connection.entities.get(key[1]) if connection is not None else None
    return entity.read if entity is not None else None


def _yaml_reads(connections: Mapping[str, Connection]) -> dict[EntityKey, IncrementalRead]:
    found: dict[EntityKey, IncrementalRead] = {}
    for connection in connections.values():
        for entity in connection.entities.values():
            sync = entity.read.sync if entity.read is not None else None
            if entity.read is None or sync is None or sync.mode is not SyncMode.INCREMENTAL or sync.cursor is None:
                continue
            window = None
            if sync.max_window is not None and sync.initial is not None:
                window = Window(sync.max_window, sync.initial, sync.until)
            cursor_type = declared_cursor_type(entity.read, sync.cursor)
            found[connection.name, entity.name] = IncrementalRead(sync.cursor, cursor_type, window=window)
    return found
