"""Random queries that know, by how they were put together, which columns each of their outputs comes from.

Columns that decide about rows are kept apart in `deciding`; everything is an integer, so every expression binds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

Taint = frozenset[str]
NONE: Taint = frozenset()

TABLES = {"t": ("a", "b", "c"), "u": ("a", "d", "e"), "w": ("b", "d", "f")}


@dataclass(frozen=True)
class Value:
    """An expression or a column, and the base columns it comes from."""

    text: str
    taint: Taint


@dataclass
class Frame:
    """A relation under an alias."""

    alias: str
    columns: list[Value]


@dataclass
class Visible:
    """What a SELECT can name: `references` holds text that is valid as it stands."""

    sql: str
    references: list[Value]
    star: list[Value]
    frames: list[Frame]


@dataclass
class Query:
    sql: str
    columns: list[Value]


def united(*values: Value) -> Taint:
    return frozenset().union(*(value.taint for value in values))


@dataclass
class Generator:
    """Builds one query; `draw` picks an element of a sequence."""

    draw: Callable[[Any], Any]
    deciding: set[str] = field(default_factory=set)
    commons: dict[str, list[Value]] = field(default_factory=dict)
    names: Any = field(default_factory=itertools.count)

    def statement(self) -> Query:
        parts = []
        for _ in range(self.draw(range(3))):
            name = f"c{next(self.names)}"
            inner = self.query(2)
            parts.append(f"{name} as ({inner.sql})")
            self.commons[name] = inner.columns
        last = self.query(2)
        head = f"with {', '.join(parts)} " if parts else ""
        return Query(head + last.sql, last.columns)

    def query(self, depth: int) -> Query:
        kind = self.draw(("select", "select", "select", "grouped", "stars", "union", "by_name", "except", "recursive"))
        if depth == 0 or kind == "select":
            return self.select(depth)
        return getattr(self, kind)(depth)

    def select(self, depth: int) -> Query:
        visible = self.visible(depth)
        items: list[str] = []
        columns: list[Value] = []
        earlier: list[Value] = []
        for _ in range(self.draw(range(1, 5))):
            value = self.expression([*visible.references, *earlier], 2, visible.frames if depth else None)
            name = f"x{next(self.names)}"
            items.append(f"{value.text} as {name}")
            columns.append(Value(name, value.taint))
            if "select" not in value.text and "over" not in value.text:  # DuckDB repeats no sub-query and no window
                earlier.append(Value(name, value.taint))
        tail = self.conditions(visible)
        window = self.draw((None, "filter", "qualify"))
        if window == "qualify":
            key, order = self.draw(visible.references), self.draw(visible.references)
            self.deciding |= united(key, order)
            tail += f" qualify rank() over (partition by {key.text} order by {order.text}) < 4"
        head = self.draw(("select", "select", "from"))
        if head == "from":
            return Query(f"from {visible.sql} select {', '.join(items)}{tail}", columns)
        return Query(f"select {', '.join(items)} from {visible.sql}{tail}", columns)

    def grouped(self, depth: int) -> Query:
        visible = self.visible(depth)
        key = self.draw(visible.references)
        self.deciding |= key.taint
        a, b = self.draw(visible.references), self.draw(visible.references)
        names = [f"x{next(self.names)}" for _ in range(4)]
        items = [
            Value(key.text, key.taint),
            Value(f"sum({a.text})", a.taint),
            Value(f"max({a.text}) filter (where {b.text} > 3)", united(a, b)),
            Value(
                self.draw(("count(*)", f"count(distinct {b.text})", f"list_sum(list({b.text} order by {a.text}))")),
                NONE,
            ),
        ]
        last = items[3]
        items[3] = replace(
            last, taint=NONE if "*" in last.text else united(*((b,) if "distinct" in last.text else (a, b)))
        )
        written = ", ".join(f"{item.text} as {name}" for item, name in zip(items, names, strict=True))
        tail = self.conditions(visible)
        if self.draw((True, False)):
            self.deciding |= b.taint
            tail_having = f" having sum({b.text}) > 0"
        else:
            tail_having = ""
        grouping = self.draw((f"group by {key.text}", "group by all"))
        columns = [Value(name, item.taint) for item, name in zip(items, names, strict=True)]
        return Query(f"select {written} from {visible.sql}{tail} {grouping}{tail_having}", columns)

    def stars(self, depth: int) -> Query:
        visible = self.visible(depth)
        listed = list(visible.star)
        names = [value.text for value in listed]
        usable = [value for value in listed if names.count(value.text) == 1]
        if len(set(names)) != len(names) or len(usable) < 3:
            frame = self.draw(visible.frames)
            return Query(f"select {frame.alias}.* from {visible.sql}{self.conditions(visible)}", list(frame.columns))
        out, changed, named = usable[:3]
        value = self.expression(visible.references, 1, None)
        label = f"x{next(self.names)}"
        sql = f"select * exclude ({out.text}) replace ({value.text} as {changed.text}) rename ({named.text} as {label})"
        columns = []
        for column in listed:
            if column is changed:
                columns.append(Value(column.text, value.taint))
            elif column is named:
                columns.append(Value(label, column.taint))
            elif column is not out:
                columns.append(column)
        return Query(f"{sql} from {visible.sql}{self.conditions(visible)}", columns)

    def pair(self, depth: int) -> tuple[Query, Query]:
        left, right = self.query(depth - 1), self.query(depth - 1)
        count = min(len(left.columns), len(right.columns))
        return self.first(left, count), self.first(right, count)

    def first(self, query: Query, count: int) -> Query:
        alias = f"q{next(self.names)}"
        columns = [Value(f"x{next(self.names)}", column.taint) for column in query.columns]
        renamed = ", ".join(column.text for column in columns)
        chosen = columns[:count]
        listed = ", ".join(column.text for column in chosen)
        return Query(f"select {listed} from ({query.sql}) {alias}({renamed})", chosen)

    def union(self, depth: int) -> Query:
        left, right = self.pair(depth)
        word = self.draw(("union all", "union"))
        columns = [Value(a.text, united(a, b)) for a, b in zip(left.columns, right.columns, strict=True)]
        if word == "union":
            self.deciding |= united(*columns)
        return Query(f"({left.sql}) {word} ({right.sql})", columns)

    def by_name(self, depth: int) -> Query:
        left = self.query(depth - 1)
        right = self.visible(0)
        other = self.draw(right.references)
        if len({column.text for column in left.columns}) != len(left.columns):
            return left
        name = self.draw([column.text for column in left.columns])
        extra = f"x{next(self.names)}"
        columns = [Value(c.text, united(c, other) if c.text == name else c.taint) for c in left.columns]
        sql = f"({left.sql}) union all by name (select 7 as {extra}, {other.text} as {name.upper()} from {right.sql})"
        return Query(sql, [*columns, Value(extra, NONE)])

    def __getattr__(self, name: str) -> Any:
        if name == "except":
            return self.difference
        raise AttributeError(name)

    def difference(self, depth: int) -> Query:
        left, right = self.pair(depth)
        self.deciding |= united(*left.columns, *right.columns)
        word = self.draw(("except", "intersect", "except all"))
        return Query(f"({left.sql}) {word} ({right.sql})", left.columns)

    def recursive(self, depth: int) -> Query:
        base = self.first(self.query(depth - 1), 2)
        if len(base.columns) < 2:
            return base
        a, b = base.columns
        name = f"r{next(self.names)}"
        both = united(a, b)
        sql = (
            f"with recursive {name}(n, p, q) as (select 1, {a.text}, {b.text} from ({base.sql}) "
            f"union all select n + 1, q, p from {name} where n < 3) select n, p, q from {name}"
        )
        sql = f"select n, p, q from ({sql}) q{next(self.names)}"
        return Query(sql, [Value("n", NONE), Value("p", both), Value("q", both)])

    def expression(self, references: list[Value], depth: int, outer: list[Frame] | None) -> Value:
        kind = self.draw(
            ("column", "column", "literal", "sum", "case", "coalesce", "window", "struct", "list", "scalar", "exists")
        )
        if depth == 0 or kind == "column":
            return self.draw(references)
        a = self.expression(references, depth - 1, None)
        b = self.expression(references, depth - 1, None)
        c = self.draw(references)
        if kind == "sum":
            return Value(f"({a.text} + abs({b.text}) * 3)", united(a, b))
        if kind == "case":
            return Value(f"(case when {a.text} > 4 then {b.text} when {c.text} = 2 then 1 end)", united(a, b, c))
        if kind == "coalesce":
            return Value(f"coalesce({a.text}, {b.text})", united(a, b))
        if kind == "window":
            p, o, v = self.draw(references), self.draw(references), self.draw(references)
            return Value(f"sum({v.text}) over (partition by {p.text} order by {o.text})", united(p, o, v))
        if kind == "struct":
            return Value(f"struct_extract({{'f': {a.text}, 'g': {b.text}}}, 'f')", united(a, b))
        if kind == "list":
            return Value(f"list_sum(list_transform([{a.text}, {b.text}], lambda lam: lam + {c.text}))", united(a, b, c))
        if kind in ("scalar", "exists") and outer:
            return self.nested(kind, outer)
        return Value("5", NONE)

    def nested(self, kind: str, outer: list[Frame]) -> Value:
        table = self.draw(sorted(TABLES))
        names = TABLES[table]
        alias = f"z{next(self.names)}"
        key, value = self.draw(names), self.draw(names)
        frame = self.draw(outer)
        other = self.draw(frame.columns)
        condition = f"{alias}.{key} = {frame.alias}.{other.text}"
        mentioned = frozenset({f"{table}.{key}"}) | other.taint
        if kind == "exists":
            sql = f"exists (select {value} from staging.{table} {alias} where {condition})::int"
            return Value(sql, mentioned)
        return Value(
            f"(select max({value}) from staging.{table} {alias} where {condition})",
            mentioned | {f"{table}.{value}"},
        )

    def visible(self, depth: int) -> Visible:
        left = self.frame(depth)
        kind = self.draw(("one", "on", "using", "lateral", "values"))
        if kind == "one":
            return one(left)
        if kind == "lateral":
            base = self.draw(left[1].columns)
            alias = f"l{next(self.names)}"
            sql = f"{left[0]}, lateral (select {left[1].alias}.{base.text} * 2 as y) {alias}"
            return both(sql, left[1], Frame(alias, [Value("y", base.taint)]))
        if kind == "values":
            alias = f"l{next(self.names)}"
            return both(f"{left[0]}, (values (1), (2)) {alias}(y)", left[1], Frame(alias, [Value("y", NONE)]))
        right = self.frame(depth)
        mine, theirs = unique(left[1]), unique(right[1])
        common = sorted(set(mine) & set(theirs))
        if kind == "using" and common:
            name = self.draw(common)
            side = self.draw(("", "left ", "right ", "full "))
            self.deciding |= mine[name] | theirs[name]
            return using(f"{left[0]} {side}join {right[0]} using ({name})", left[1], right[1], name, side.strip())
        a, b = self.draw(left[1].columns), self.draw(right[1].columns)
        self.deciding |= united(a, b)
        side = self.draw(("", "left ", "right ", "full "))
        on = f"{left[1].alias}.{a.text} = {right[1].alias}.{b.text}"
        return both(f"{left[0]} {side}join {right[0]} on {on}", left[1], right[1])

    def frame(self, depth: int) -> tuple[str, Frame]:
        alias = f"s{next(self.names)}"
        kind = self.draw(("table", "table", "common", "query"))
        if kind == "common" and self.commons:
            name = self.draw(sorted(self.commons))
            columns = self.commons[name]
            return self.aliased(name, alias, columns)
        if kind == "query" and depth:
            inner = self.query(depth - 1)
            return self.aliased(f"({inner.sql})", alias, inner.columns)
        table = self.draw(sorted(TABLES))
        columns = [Value(name, frozenset({f"{table}.{name}"})) for name in TABLES[table]]
        return f"staging.{table} {alias}", Frame(alias, columns)

    def aliased(self, text: str, alias: str, columns: list[Value]) -> tuple[str, Frame]:
        names = [column.text for column in columns]
        if len(set(names)) == len(names) and self.draw((True, False)):
            return f"{text} {alias}", Frame(alias, columns)
        fresh = [Value(f"y{next(self.names)}", column.taint) for column in columns]
        return f"{text} {alias}({', '.join(column.text for column in fresh)})", Frame(alias, fresh)

    def conditions(self, visible: Visible) -> str:
        if self.draw((True, False, False)):
            column = self.draw(visible.references)
            self.deciding |= column.taint
            return f" where {column.text} > 1 or {column.text} is null"
        return ""


def unique(frame: Frame) -> dict[str, Taint]:
    names = [column.text for column in frame.columns]
    return {column.text: column.taint for column in frame.columns if names.count(column.text) == 1}


def one(part: tuple[str, Frame]) -> Visible:
    sql, frame = part
    qualified = [Value(f"{frame.alias}.{column.text}", column.taint) for column in frame.columns]
    return Visible(sql, [*frame.columns, *qualified], list(frame.columns), [frame])


def both(sql: str, left: Frame, right: Frame) -> Visible:
    names = [column.text for column in (*left.columns, *right.columns)]
    plain = [column for column in (*left.columns, *right.columns) if names.count(column.text) == 1]
    qualified = [Value(f"{f.alias}.{column.text}", column.taint) for f in (left, right) for column in f.columns]
    return Visible(sql, [*plain, *qualified], [*left.columns, *right.columns], [left, right])


def using(sql: str, left: Frame, right: Frame, name: str, side: str) -> Visible:
    mine = next(column for column in left.columns if column.text == name)
    theirs = next(column for column in right.columns if column.text == name)
    taint = {"right": theirs.taint, "full": united(mine, theirs)}.get(side, mine.taint)
    merged = Value(name, taint)
    seen = both(sql, left, right)
    references = [value for value in seen.references if value.text != name]
    star = [merged if column is mine else column for column in left.columns]
    star += [column for column in right.columns if column is not theirs]
    return Visible(sql, [merged, *references], star, [left, right])
