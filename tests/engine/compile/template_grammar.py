"""Random templates out of pieces of the language, in both spellings, with what does not belong to it mixed in."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = st.sampled_from(
    ["x", "y", "loop", "this", "self", "run_id", "true", "false", "null", "none", "cycler", "range", "dict", "lipsum",
     "namespace", "joiner", "missing", "context", "environment", "l_0_x", "ﬁ", "__class__"]
)  # fmt: skip
MEMBERS = st.sampled_from(
    ["a", "b", "k", "index", "last", "length", "cycle", "previtem", "changed", "items", "append", "format", "format_map",
     "__class__", "__init__", "__globals__", "_x", "upper", "mro"]
)  # fmt: skip
LITERALS = st.sampled_from(
    ["1", "0", "-3", "2.5", "1e9", "0x1f", "'a'", '"b"', "'%s'", "'{0.__class__}'", "'it\\'s'", "'\\n'", "[]", "[1, 'a']",
     "(1, 2)", "{ k: 1 }", "{'k': [1]}", "{ a: { b: 2 } }", "true", "null", "'erp'", "'dbo.orders'", "'2026-01-01'"]
)  # fmt: skip
FUNCTIONS = st.sampled_from(
    ["source", "ref", "sink", "watermark", "var", "env", "range", "x", "loop.cycle", "'a'.join"]
)
FILTERS = st.sampled_from(
    ["default", "first", "join", "last", "length", "list", "lower", "replace", "sort", "trim", "unique", "upper", "attr",
     "map", "format", "tojson", "safe", "batch", "string"]
)  # fmt: skip
TESTS = st.sampled_from(
    ["boolean", "defined", "even", "float", "in", "integer", "mapping", "none", "number", "odd", "sequence", "string",
     "undefined", "callable", "escaped"]
)  # fmt: skip
OPERATORS = st.sampled_from(
    ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">=", "and", "or", "in", "not in", "|"]
)
SQL = st.sampled_from(
    ["select 1", " from t ", "INSERT INTO ", "\n", ", ", "where u > ", "-- note\n", "/* c */", "'q'", "[", "]", ";",
     "WITH a AS (", ")", "}}", "{", "%}", "émile", "__pz_sink__0__"]
)  # fmt: skip


def _arguments(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    named = st.tuples(st.sampled_from(["format", "columns", "keys", "strategy", "x", "sync", "from"]),
                      st.sampled_from([": ", "=", ":"]), inner).map("".join)  # fmt: skip
    names = st.sampled_from(["'erp'", "'dbo.orders'", "'n'", "'xs'", "'m'", "'q'", "'lake'"])
    return st.lists(names | inner | named | st.sampled_from(["*x", "**x"]), max_size=4).map(", ".join)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    call = st.tuples(FUNCTIONS, st.sampled_from(["(", "(\n"]), _arguments(inner), st.just(")")).map("".join)
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


EXPRESSIONS = st.recursive(WORDS | LITERALS | st.just("var('xs')") | st.just("var('m')"), _larger, max_leaves=8)
"""Expressions, most of them well formed."""


def _blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    end = st.sampled_from(["{{ end }}", "{% endif %}", "{% endfor %}", "{% endset %}", ""])
    start = st.one_of(
        EXPRESSIONS.map(lambda text: f"{{{{ if {text} }}}}"),
        EXPRESSIONS.map(lambda text: f"{{% if {text} %}}"),
        EXPRESSIONS.map(lambda text: f"{{{{ for x in {text} }}}}"),
        EXPRESSIONS.map(lambda text: f"{{% for x, y in {text} %}}"),
        EXPRESSIONS.map(lambda text: f"{{%- for x in {text} if x -%}}"),
        EXPRESSIONS.map(lambda text: f"{{% for x in {text} recursive %}}"),
        EXPRESSIONS.map(lambda text: f"{{% set x = {text} %}}"),
        EXPRESSIONS.map(lambda text: f"{{% set x.a = {text} %}}"),
        st.sampled_from(["{% set y %}", "{% raw %}", "{% macro m() %}", "{% block b %}", "{% with %}", "{% filter upper %}",
                         "{% include 'a' %}", "{% import 'a' as x %}", "{% autoescape true %}", "{% do 1 %}", "{%"]),
    )  # fmt: skip
    middle = st.one_of(
        st.just("{{ else }}"),
        EXPRESSIONS.map(lambda text: f"{{{{ else if {text} }}}}"),
        EXPRESSIONS.map(lambda text: f"{{% elif {text} %}}"),
        st.just(""),
    )
    return st.tuples(start, inner, middle, inner, end).map("".join)


_PIECES = st.one_of(
    SQL,
    EXPRESSIONS.map(lambda text: f"{{{{ {text} }}}}"),
    EXPRESSIONS.map(lambda text: f"{{{{- {text} -}}}}"),
    st.just("{# gone #}"),
)
TEMPLATES = st.recursive(_PIECES, lambda inner: _blocks(inner) | st.lists(inner, max_size=4).map("".join), max_leaves=8)
"""Whole files."""
