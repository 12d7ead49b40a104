"""Random templates out of pieces of the language, in both spellings, with what does not belong to it mixed in."""

from __future__ import annotations

from hypothesis import strategies as st


def _mostly(good: list[str], odd: list[str]) -> st.SearchStrategy[str]:
    """Return mostly what belongs to the language, and now and then what does not."""
    return st.integers(0, 11).flatmap(lambda roll: st.sampled_from(odd if roll == 0 else good))


WORDS = _mostly(
    ["this", "run_id", "run_started_at", "true", "false", "null", "var('n')", "var('name')", "var('xs')", "var('m')", "env('E')"],
    ["x", "y", "loop", "self", "none", "cycler", "range", "dict", "lipsum", "namespace", "joiner", "missing", "context",
     "environment", "l_0_x", "ﬁ", "__class__", "var('nope')", "env('NOPE')"],
)  # fmt: skip
MEMBERS = _mostly(
    ["a", "b", "k"],
    ["index", "last", "length", "cycle", "previtem", "changed", "items", "append", "format", "format_map", "__class__",
     "__init__", "__globals__", "_x", "upper", "mro"],
)  # fmt: skip
LITERALS = _mostly(
    ["1", "0", "-3", "2.5", "0x1f", "'a'", '"b"', "'%s'", "'it\\'s'", "'\\n'", "[]", "[1, 'a']", "(1, 2)", "{ k: 1 }",
     "{'k': [1]}", "{ a: { b: 2 } }", "'erp'", "'dbo.orders'", "'2026-01-01'"],
    ["1e9", "'{0.__class__}'", "'unclosed", "1__0", "0777", "'\\x'", "[1", "{ 1: 2 }", "{ a b }"],
)  # fmt: skip
FUNCTIONS = _mostly(
    ["source", "ref", "sink", "watermark", "var", "env"], ["range", "x", "loop.cycle", "'a'.join", "this"]
)
FILTERS = _mostly(
    ["default", "first", "join", "last", "length", "list", "lower", "replace", "sort", "trim", "unique", "upper"],
    ["attr", "map", "format", "tojson", "safe", "batch", "string"],
)
TESTS = _mostly(
    ["boolean", "defined", "even", "float", "in", "integer", "mapping", "none", "number", "odd", "sequence", "string",
     "undefined"],
    ["callable", "escaped", "nope"],
)  # fmt: skip
OPERATORS = _mostly(
    ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">=", "and", "or", "in", "not in"], ["**", "|", "=", "is"]
)
SQL = _mostly(
    ["select 1", " from t ", "\n", ", ", "where u > ", "-- note\n", "/* c */", "'q'", ";", "WITH a AS (", ")", "émile"],
    ["INSERT INTO ", "[", "]", "}}", "{", "%}", "__pz_sink__0__"],
)


def _arguments(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    named = st.tuples(st.sampled_from(["format", "columns", "keys", "strategy", "x", "sync", "from"]),
                      st.sampled_from([": ", "=", ":"]), inner).map("".join)  # fmt: skip
    pair = st.sampled_from(["'erp', 'dbo.orders'", "'lake', 'o'", "'n'", "'xs'", "'q'", "'e'"])
    rest = st.lists(_mostly(["1", "'a'"], ["*x", "**x"]) | inner | named, max_size=2)
    return st.tuples(pair | inner, rest).map(lambda part: ", ".join([part[0], *part[1]]))


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    call = st.tuples(FUNCTIONS, _mostly(["("], ["(\n"]), _arguments(inner), st.just(")")).map("".join)
    return st.one_of(
        call,
        st.tuples(inner, OPERATORS, inner).map(" ".join),
        st.tuples(inner, MEMBERS).map(".".join),
        st.tuples(inner, inner).map(lambda pair: f"{pair[0]}[{pair[1]}]"),
        st.tuples(inner, inner, inner).map(lambda part: f"{part[0]}[{part[1]}:{part[2]}]"),
        st.tuples(inner, FILTERS, _arguments(inner)).map(lambda part: f"{part[0]} | {part[1]}({part[2]})"),
        st.tuples(inner, FILTERS).map(" | ".join),
        st.tuples(inner, TESTS).map(" is ".join),
        st.tuples(inner, inner, inner).map(lambda part: f"{part[0]} if {part[1]} else {part[2]}"),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"not {text}"),
        inner.map(lambda text: f"-{text}"),
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        inner.map(lambda text: f"{{ k: {text}, 'b': {text} }}"),
        st.tuples(LITERALS, inner).map(lambda part: f"{{ {part[0]}: {part[1]} }}"),
    )


EXPRESSIONS = st.recursive(WORDS | LITERALS, _larger, max_leaves=5)
"""Expressions, most of them well formed."""


def _blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    head = _mostly(["if {}", "for x in {}", "for x in var('xs') if {}", "for k in var('m')"],
                   ["for x, y in {}", "for x in {} recursive", "if", "for x", "set x = {}", "set x.a = {}"])  # fmt: skip
    filled = st.tuples(head, EXPRESSIONS).map(lambda part: part[0].replace("{}", part[1]))
    middle = st.one_of(st.just(""), st.just("{{ else }}"), EXPRESSIONS.map(lambda text: f"{{{{ else if {text} }}}}"))
    block = st.tuples(filled, st.booleans(), inner, middle, inner, _mostly([""], ["-"])).map(
        lambda part: (
            f"{'{{' if part[1] else '{%'}{part[5]} {part[0]} {'}}' if part[1] else '%}'}"
            f"{part[2]}{part[3] if part[0].startswith('if') else ''}{part[4]}"
            + ("{{ end }}" if part[1] or part[5] else "{% endif %}" if part[0].startswith("if") else "{% endfor %}")
        )
    )
    variable = st.tuples(EXPRESSIONS, inner).map(lambda part: f"{{% set y = {part[0]} %}}{part[1]}{{{{ y }}}}")
    kept = inner.map(lambda text: f"{{% set y %}}{text}{{% endset %}}{{{{ y }}}}")
    loop = inner.map(lambda text: f"{{{{ for z in var('xs') }}}}{{{{ loop.index }}}}{text}{{{{ z }}}}{{{{ end }}}}")
    raw = inner.map(lambda text: f"{{% raw %}}{text}{{% endraw %}}")
    odd = st.sampled_from(["{% macro m() %}", "{% block b %}", "{% with %}", "{% filter upper %}", "{% include 'a' %}",
                           "{% import 'a' as x %}", "{% autoescape true %}", "{% do 1 %}", "{%", "{{", "}}"])  # fmt: skip
    return st.one_of(block, block, variable, kept, loop, raw, st.tuples(odd, inner).map("".join))


_PIECES = st.one_of(
    SQL,
    EXPRESSIONS.map(lambda text: f"{{{{ {text} }}}}"),
    EXPRESSIONS.map(lambda text: f"{{{{- {text} -}}}}"),
    st.just("{# gone #}"),
)
TEMPLATES = st.recursive(_PIECES, lambda inner: _blocks(inner) | st.lists(inner, max_size=4).map("".join), max_leaves=8)
"""Whole files."""
