"""`checks:` of a sidecar.

Every problem is `PZ0113`; each bad check is left out and the rest still load.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pz_engine.base.stable_json import canonical_json
from pz_engine.config import sidecar_keys as keys
from pz_engine.config.block_reader import BlockReader
from pz_engine.config.kinds import Malformed
from pz_engine.config.located import Listing, Located, Table, kind_of, plain
from pz_engine.config.reporter import Reporter
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.checks import Check, CheckType

_USAGE = "write - not_null: [id]"


def parse_checks(node: Listing | None, report: Reporter) -> tuple[Check, ...]:
    """Read the list of checks of one pipeline."""
    found: list[Check] = []
    seen: set[str] = set()
    for item in node.items if node is not None else ():
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
    item = keys.CheckItem()
    try:
        ((type_name, body),) = item.parse(node).entries.items()
    except Malformed:
        report.add("PZ0113", f"a check must be {item.wanted}", line=node.line, hint=_USAGE)
        return None
    line = node.line_of(type_name) if isinstance(node, Table) else None
    definition = keys.CHECKS.get(type_name)
    if definition is None:
        types = ", ".join(keys.CHECKS)
        report.add(
            "PZ0113", f"there is no check type '{type_name}'; types: {types}", line=line,
            hint=report.near_miss(type_name, keys.CHECKS) or _USAGE,
        )  # fmt: skip
        return None
    return _CheckReader(definition, line, report).read(body)


class _CheckReader:
    """Reads the options of one check."""

    def __init__(self, definition: keys.CheckDefinition, line: int | None, report: Reporter) -> None:
        self._definition = definition
        self._line = line
        self._found = ProblemCollector()
        self._outer = report
        self._report = Reporter(self._found, report.file, f"{report.where}: check {definition.type.value}")

    def read(self, body: Located) -> Check | None:
        """Return the check, or None after reporting what is wrong with it."""
        check = self._read(body)
        self._outer.problems.errors.extend(self._found.errors)
        return None if self._found.errors else check

    def _read(self, body: Located) -> Check | None:
        table = self._as_table(body)
        if table is None:
            return None
        reader = BlockReader(self._definition.block, table, self._report)
        reader.refuse_other_keys()
        columns = self._columns(reader)
        options: dict[str, Any] = {}
        for key in self._definition.options:
            if reader.read(key) is not None and key.name in table.entries:
                options[key.name] = plain(table.entries[key.name])
        if not self._found.errors:
            self._check_limits(options)
        return Check(self._definition.type, columns, options, reader.read(keys.SAMPLE_VALUES), self._line)

    def _as_table(self, body: Located) -> Table | None:
        if isinstance(body, Table):
            return Table(body.entries, self._line, body.key_lines)
        if isinstance(body, Listing):
            return Table({keys.COLUMN_LIST.name: body}, self._line)
        if body.is_blank:
            return Table({}, self._line)
        self._bad(f"its options must be a list of columns or a mapping, not {kind_of(body)}", "write [<column>]")
        return None

    def _columns(self, reader: BlockReader) -> tuple[str, ...]:
        entries = reader.table.entries
        if keys.COLUMN.name in entries and keys.COLUMN_LIST.name in entries:
            self._bad("column and columns are both given", "keep one of them")
            return ()
        if keys.COLUMN.name in entries:
            found: tuple[str, ...] = tuple(filter(None, (reader.read(keys.COLUMN),)))
        else:
            found = reader.read(keys.COLUMN_LIST)
        if not self._found.errors:
            self._check_count(found)
        return found

    def _check_count(self, columns: tuple[str, ...]) -> None:
        wanted = self._definition.columns
        if wanted == "some" and not columns:
            self._bad("it needs at least one column", f"write - {self._definition.type.value}: [id]")
        elif wanted == "one" and len(columns) != 1:
            self._bad("it needs exactly one column", "write column: <name>")
        elif wanted == "none" and columns:
            self._bad("it takes no columns", "remove the columns")
        if len({name.lower() for name in columns}) != len(columns):
            self._bad("a column is listed twice", "list each column once")

    def _check_limits(self, options: Mapping[str, Any]) -> None:
        needed = [key.name for key in self._definition.any_of]
        if needed and not any(name in options for name in needed):
            self._bad(f"it needs {' or '.join(needed)}", f"write {{{needed[0]}: 1}}")
        low, high = options.get(keys.MIN.name), options.get(keys.MAX.name)
        if low is not None and high is not None and low > high:
            self._bad("min is above max", "swap them")

    def _bad(self, cause: str, hint: str) -> None:
        self._report.add("PZ0113", cause, line=self._line, hint=hint)
