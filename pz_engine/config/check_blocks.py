"""`checks:` of a sidecar.

Every problem is `PZ0113`; each bad check is left out and the rest still load.
"""

from __future__ import annotations

import re
from typing import Any

from pz_engine.base.near_miss import did_you_mean
from pz_engine.base.stable_json import canonical_json
from pz_engine.config.located import Listing, Located, Scalar, Table, as_bool, as_text, plain
from pz_engine.config.policy_blocks import positive_duration
from pz_engine.config.reporter import Reporter
from pz_engine.config.shape_check import kind_of, text_list
from pz_engine.model.checks import Check, CheckType

_OPTIONS = {
    CheckType.NOT_NULL: (),
    CheckType.UNIQUE: (),
    CheckType.ROW_COUNT: ("min", "max"),
    CheckType.FRESHNESS: ("max_age",),
    CheckType.ACCEPTED_VALUES: ("values",),
    CheckType.CUSTOM_SQL: ("name", "sql"),
}
_COMMON = ("column", "columns", "sample_values")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TYPES = tuple(kind.value for kind in CheckType)


def parse_checks(node: Located | None, report: Reporter) -> tuple[Check, ...]:
    """Read the list of checks of one pipeline."""
    if node is None or node.is_blank:
        return ()
    if not isinstance(node, Listing):
        report.add(
            "PZ0113", f"checks must be a list, not {kind_of(node)}", line=node.line, hint="write - not_null: [id]"
        )
        return ()
    found: list[Check] = []
    seen: set[str] = set()
    for item in node.items:
        check = _parse_check(item, report)
        if check is None:
            continue
        identity = canonical_json([check.type.value, list(check.columns), dict(check.options)])
        name = f"custom_sql name {check.options['name']}" if check.type is CheckType.CUSTOM_SQL else None
        if identity in seen:
            report.add(
                "PZ0113", f"the same {check.type.value} check is written twice", line=check.line, hint="remove one"
            )
        elif name is not None and name in seen:
            report.add("PZ0113", f"{name} is used twice", line=check.line, hint="give each custom_sql its own name")
        else:
            found.append(check)
        seen.update({identity, *([name] if name else [])})
    return tuple(found)


def _parse_check(node: Located, report: Reporter) -> Check | None:
    if not isinstance(node, Table) or len(node.entries) != 1:
        cause = "a check must be one type with its options"
        report.add("PZ0113", cause, line=node.line, hint="write - not_null: [id]")
        return None
    ((type_name, body),) = node.entries.items()
    if type_name not in _TYPES:
        report.add(
            "PZ0113", f"there is no check type '{type_name}'", line=node.line_of(type_name),
            hint=did_you_mean(type_name, _TYPES) or f"types: {', '.join(_TYPES)}",
        )  # fmt: skip
        return None
    kind = CheckType(type_name)
    reader = _CheckReader(kind, node.line_of(type_name), report)
    return reader.read(body)


class _CheckReader:
    """Reads the options of one check and remembers whether any was bad."""

    def __init__(self, kind: CheckType, line: int | None, report: Reporter) -> None:
        self._kind = kind
        self._line = line
        self._report = report
        self._is_bad = False

    def read(self, body: Located) -> Check | None:
        table = self._as_table(body)
        if table is None:
            return None
        known = (*_OPTIONS[self._kind], *_COMMON)
        for key in table.entries:
            if key not in known:
                self._bad(
                    f"unknown option '{key}'",
                    did_you_mean(key, known) or f"options: {', '.join(known)}",
                    table.line_of(key),
                )
        columns = self._columns(table)
        self._options(table)
        samples: bool | None = None
        if "sample_values" in table.entries:
            samples = as_bool(table.get("sample_values"))
            if samples is None:
                self._bad(
                    "sample_values must be true or false", "write sample_values: false", table.line_of("sample_values")
                )
        if self._is_bad:
            return None
        options: dict[str, Any] = {
            key: plain(table.entries[key]) for key in _OPTIONS[self._kind] if key in table.entries
        }
        return Check(self._kind, columns, options, samples, self._line)

    def _as_table(self, body: Located) -> Table | None:
        if isinstance(body, Table):
            return body
        if isinstance(body, Listing):
            return Table({"columns": body}, body.line, {"columns": self._line})
        if body.is_blank:
            return Table({}, self._line)
        self._bad(f"its options must be a list of columns or a mapping, not {kind_of(body)}", "write [<column>]")
        return None

    def _columns(self, table: Table) -> tuple[str, ...]:
        column, columns = table.get("column"), table.get("columns")
        if column is not None and columns is not None:
            self._bad("column and columns are both given", "keep one of them")
            return ()
        found: tuple[str, ...] = ()
        if column is not None:
            name = as_text(column)
            if not name:
                self._bad("column must be the name of a column", "write column: id", table.line_of("column"))
                return ()
            found = (name,)
        elif columns is not None:
            listed = text_list(columns)
            if listed is None:
                self._bad("columns must be a list of column names", "write columns: [id]", table.line_of("columns"))
                return ()
            found = listed
        self._check_count(found)
        return found

    def _check_count(self, columns: tuple[str, ...]) -> None:
        if self._kind in {CheckType.NOT_NULL, CheckType.UNIQUE} and not columns:
            self._bad("it needs at least one column", f"write - {self._kind.value}: [id]")
        elif self._kind in {CheckType.FRESHNESS, CheckType.ACCEPTED_VALUES} and len(columns) != 1:
            self._bad("it needs exactly one column", "write column: <name>")
        elif self._kind in {CheckType.ROW_COUNT, CheckType.CUSTOM_SQL} and columns:
            self._bad("it takes no columns", "remove the columns")
        if len({name.lower() for name in columns}) != len(columns):
            self._bad("a column is listed twice", "list each column once")

    def _options(self, table: Table) -> None:
        if self._kind is CheckType.ROW_COUNT:
            self._row_count(table)
        elif self._kind is CheckType.FRESHNESS and positive_duration(table.get("max_age")) is None:
            self._bad("max_age must be a duration above zero", "write max_age: 24h", table.line_of("max_age"))
        elif self._kind is CheckType.ACCEPTED_VALUES:
            values = table.get("values")
            is_valid = isinstance(values, Listing) and values.items and all(_is_accepted(v) for v in values.items)
            if not is_valid:
                self._bad(
                    "values must be a list of texts, numbers or booleans",
                    "write values: [a, b]",
                    table.line_of("values"),
                )
        elif self._kind is CheckType.CUSTOM_SQL:
            name, sql = as_text(table.get("name")), as_text(table.get("sql"))
            if name is None or not _NAME.fullmatch(name):
                self._bad(
                    "name must be lowercase letters, digits and _", "write name: no_orphans", table.line_of("name")
                )
            if sql is None or not sql.strip(" \t\r\n;"):
                self._bad("sql must be a query", "write sql: select ... returning the bad rows", table.line_of("sql"))

    def _row_count(self, table: Table) -> None:
        limits: dict[str, int] = {}
        for key in ("min", "max"):
            node = table.present(key)
            if node is None:
                continue
            value = node.value if isinstance(node, Scalar) else None
            if isinstance(value, bool) or not isinstance(value, int):
                self._bad(f"{key} must be a whole number", f"write {key}: 1", table.line_of(key))
                return
            limits[key] = value
        if not limits:
            self._bad("it needs min or max", "write {min: 1}")
        elif limits.get("min", 0) > limits.get("max", limits.get("min", 0)):
            self._bad("min is above max", "swap them", table.line_of("min"))

    def _bad(self, cause: str, hint: str, line: int | None = None) -> None:
        self._is_bad = True
        self._report.add("PZ0113", f"check {self._kind.value}: {cause}", line=line or self._line, hint=hint)


def _is_accepted(node: Located) -> bool:
    return isinstance(node, Scalar) and not node.is_blank
