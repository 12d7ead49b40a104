"""The template language: pz's spelling, values, and what is refused."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pz_engine.compile.template.renderer import format_started_at, render_pipelines
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.pipeline import PipelineFile

STARTED = datetime(2026, 11, 30, 12, tzinfo=timezone.utc)
VARS = {"n": 3, "name": "x", "flag": True, "off": False, "xs": [1, 2], "none": None, "m": {"a": {"b": 7}}, "f": 1.5}


def render(text, *, ephemerals=(), env=None, variables=VARS):
    problems = ProblemCollector()
    rendered = render_pipelines(
        [PipelineFile("p", "pipelines/p.sql", text)],
        ephemerals=frozenset(ephemerals),
        variables=variables,
        env=env or {},
        run_id="run-1",
        started_at=STARTED,
        problems=problems,
    )
    return (rendered[0] if rendered else None), problems


def text_of(text, **options):
    rendered, problems = render(text, **options)
    assert problems.errors == []
    return rendered.sql


def problems_of(text, **options):
    rendered, problems = render(text, **options)
    assert rendered is None
    return [(problem.code, problem.line) for problem in problems.errors]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("select 1", "select 1"),
        ("{{ var('n') }}", "3"),
        ("{{ var('f') }}", "1.5"),
        ("{{ var('flag') }}/{{ var('off') }}", "true/false"),
        ("[{{ var('none') }}]", "[]"),
        ("{{ null }}", ""),
        ("{{ 1 + 2 * 3 }} {{ 7 // 2 }} {{ 'a' ~ 'b' }}", "7 3 ab"),
        ("{{ var('m').a.b }} {{ var('m')['a']['b'] }}", "7 7"),
        ("{{ var('xs')[0] }}", "1"),
        ("{{ var('xs') | join(', ') }}", "1, 2"),
        ("{{ var('name') | upper }}", "X"),
        ("{{ var('none') | default('d', true) }}", "d"),
        ("a\n{{- 1 -}}\nb", "a1b"),
        ("{{ if var('flag') }}A{{ end }}", "A"),
        ("{{ if var('off') }}A{{ else }}B{{ end }}", "B"),
        ("{{ if var('off') }}A{{ else if var('n') == 3 }}B{{ else }}C{{ end }}", "B"),
        ("{{ for x in var('xs') }}{{ x }}{{ if not loop.last }},{{ end }}{{ end }}", "1,2"),
        ("{% for x in var('xs') %}{{ x }}{% endfor %}", "12"),
        ("{% if var('flag') %}A{{ end }}", "A"),
        ("{% set y = 5 %}{{ y }}", "5"),
        ("{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
        ("a{# gone #}b", "ab"),
        ("{{ this }}", "staging.p"),
        ("{{ run_id }} {{ run_started_at }}", "run-1 2026-11-30T12:00:00.0000000+00:00"),
        ("{{ env('E') }}", "v"),
        ("select {'a': 1}", "select {'a': 1}"),
        ("{{ 'a}}b' }}", "a}}b"),
        ("{{ 'a' ~ null ~ true ~ 1.5 }}", "atrue1.5"),
        ("{{ [true, null, 2] | join('-') }} {{ true | upper }}", "true--2 TRUE"),
        ("{{ var('m').nope | default('d') }} {{ var('m').nope.deeper is defined }}", "d false"),
        ("{{ var('xs')[0:1] | join }} {{ 'abc'[1:] }} {{ [3, 1] | sort | first }}", "1 bc 1"),
        ("{{ 'aXbX' | replace('X', '-') }} {{ 'aXbX' | replace('X', '-', 1) }} {{ ' a ' | trim }}", "a-b- a-bX a"),
        ("{{ [1, 1, 2] | unique | join(',') }} {{ [2] + [1] }}", "1,2 [2, 1]"),
        ("{% for k in var('m') %}{{ k }}{{ var('m')[k].b }}{% endfor %}", "a7"),
        ("{% for a, b in [[1, 2], [3, 4]] if a > 1 %}{{ a }}{{ b }}{% else %}none{% endfor %}", "34"),
        ("{% for x in 'ab' %}{{ loop.index }}{{ loop.cycle('p', 'q') }}{% endfor %}", "1p2q"),
        ("{% set t %}a{{ 1 }}{% endset %}{{ t }}{{ t }}", "a1a1"),
        ("{{ 2 is even }} {{ 'a' is string }} {{ 1 is in([1]) }}", "true true true"),
    ],
)
def test_templates_render(template, expected):
    """pz's spelling and Jinja's both work, and values print in one invariant way."""
    assert text_of(template, env={"E": "v"}) == expected


def test_calls_render_to_relations():
    """source, ref, watermark and sink give their relations and markers, and are recorded with lines."""
    rendered, problems = render(
        "INSERT INTO {{ sink('lake', 'out') }}\nselect * from {{ source('erp', 'dbo.o') }} a, {{ ref('q') }}, {{ ref('e') }}\n"
        "where u > {{ watermark('erp', \"dbo.o\") }}",
        ephemerals=["e"],
    )
    assert problems.errors == []
    assert rendered.sql == (
        "INSERT INTO __pz_sink__0__\nselect * from staging.src_erp__dbo_o a, staging.q, __pz_cte__e\n"
        "where u > '__pz_watermark__erp.dbo.o'"
    )
    calls = rendered.calls
    assert [(c.connection, c.entity, c.line, c.read) for c in calls.sources] == [("erp", "dbo.o", 2, None)]
    assert [(c.pipeline, c.line) for c in calls.refs] == [("q", 2), ("e", 2)]
    assert [c.line for c in calls.watermarks] == [3]
    assert [c.line for c in calls.sinks] == [1]


def test_named_arguments_take_both_spellings():
    """`name: value` and `name=value` mean the same, objects may have bare or quoted keys, and literals nest."""
    rendered, _ = render(
        "{{ source('c', 'e', format: 'csv', columns: { id: 'bigint', 'u x': 'date' }, opts: {a: [1, {b: true}], n: null}) }}"
    )
    read = rendered.calls.sources[0].read
    assert read.columns == {"id": "bigint", "u x": "date"}
    assert read.options == {"format": "csv", "opts": {"a": [1, {"b": True}], "n": None}}
    other, _ = render(
        "{{ source('c', 'e', format='csv', columns={'id': 'bigint', 'u x': 'date'}, opts={'a': [1, {'b': true}], 'n': none}) }}"
    )
    assert other.calls.sources[0].read == read


def test_python_keywords_are_good_argument_names():
    """An option may be called like a word of Python."""
    rendered, _ = render("{{ source('c', 'e', from: 'x', class: 'y', source: 'z', if: 1) }}")
    assert rendered.calls.sources[0].read.options == {"from": "x", "class": "y", "source": "z", "if": 1}


_NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in {"columns", "sync", "retry"}
)
_TEXTS = st.text(alphabet=st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs")), max_size=8)
_SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | _TEXTS
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3), max_leaves=6
)


def _spell(value, draw_quote):
    if isinstance(value, str):
        return draw_quote + value.replace("\\", "\\\\").replace(draw_quote, "\\" + draw_quote) + draw_quote
    if isinstance(value, list):
        return "[" + ", ".join(_spell(item, draw_quote) for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key}: {_spell(item, draw_quote)}" for key, item in value.items()) + " }"
    return json.dumps(value)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(_NAMES, _VALUES, max_size=4), st.sampled_from("'\""))
def test_every_literal_arrives_as_written(arguments, quote):
    """Whatever is written as a literal in pz's spelling arrives as that value."""
    retired = {"incremental", "schema", "table", "rate_limit", "max_concurrency"}
    arguments = {name: value for name, value in arguments.items() if name not in retired}
    spelled = "".join(f", {name}: {_spell(value, quote)}" for name, value in arguments.items())
    rendered, problems = render("{{ source('c', 'e'" + spelled + ") }}")
    assert problems.errors == []
    read = rendered.calls.sources[0].read
    assert (read.options if read is not None else {}) == arguments


@settings(deadline=None)
@given(st.text(alphabet="{}%#()[]:=,'\" abifend0123.\n|-", max_size=40))
def test_no_text_makes_the_renderer_fail(text):
    """Any text renders or is a PZ0104; nothing else escapes."""
    _, problems = render(text)
    assert {problem.code for problem in problems.errors} <= {"PZ0104"}


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("a\n{{ nope }}", 2),
        ("{{ 'it''s' }}", 1),
        ("{{ var('x').y }}", 1),
        ("\n\n{{ var('nope') }}", 3),
        ("{{ 1 + }}", 1),
        ("{{ if true }}", 1),
        ("x\n{{ end }}", 2),
        ("{{ if true }}{{ else for }}{{ end }}", 1),
        ("{% include 'x' %}", 1),
        ("{% import 'x' as y %}", 1),
        ("{% macro m() %}{% endmacro %}", 1),
        ("{% extends 'x' %}", 1),
        ("{% block b %}{% endblock %}", 1),
        ("{% with x = 1 %}{% endwith %}", 1),
        ("{% call f() %}{% endcall %}", 1),
        ("{{ 1 | tojson }}", 1),
        ("{{ 'x' | safe }}", 1),
        ("{{ range(3) }}", 1),
        ("{{ dict(a=1) }}", 1),
        ("{{ source }}", 1),
        ("{% set s = source %}", 1),
        ("{{ source('c',\n 'e') }}", 1),
        ("\n{{ ref(\n'q') }}", 2),
        ("{{ watermark('c') }}", 1),
        ("{{ watermark('c', 'e', a: 1) }}", 1),
        ("{{ var(1) }}", 1),
        ("{{ var(name) }}", 1),
        ("{{ env() }}", 1),
        ("{{ source('c', nope) }}", 1),
        ("{{ source('c', 'e', path: nope) }}", 1),
        ("select '__pz_sink__0__'", 1),
        ("a\n-- __pz_watermark__c.e", 2),
        ("{{ var('name') }}{{ '__pz' ~ '_sink__0__' }}", 1),
        ("{{ watermark('c', 'e') }}{{ '__pz' ~ '_watermark__c.f' }}", 1),
    ],
)
def test_template_mistakes_name_the_author_s_line(template, line):
    """Whatever is not part of the language is one PZ0104 at the author's line."""
    assert problems_of(template) == [("PZ0104", line)]


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__ }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ ''.__class__ | default('x') }}",
        "{{ 1 if true else ''.__class__ }}",
        "{{ ''['__class__'] }}",
        "{{ (1).__class__ }}",
        "{{ this.__init__ }}",
        "{{ '' | attr('__class__') }}",
        "{{ [''] | map(attribute='__class__') | list }}",
        "{{ env.__globals__ }}",
        "{{ var('m')['__class__'] }}",
        "{% for x in var('xs') %}{{ loop.__init__ }}{% endfor %}",
        "{% for x in var('xs') %}{{ loop._iterable }}{% endfor %}",
        "{% for x in var('xs') %}{{ loop.cycle.__func__ }}{% endfor %}",
        "{% for x in var('xs') %}{{ loop.changed }}{% endfor %}",
        "{% for x in var('xs') %}{{ loop }}{% endfor %}",
        "{% for x in var('xs') %}{% set f = loop.cycle %}{{ f(1) }}{% endfor %}",
        "{% for x in var('xs') recursive %}{{ x }}{% endfor %}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ '{a.__class__}'.format_map({'a': 1}) }}",
        "{{ '%s' % this }}",
        "{{ '%s' is even }}",
        "{{ var('xs').append(1) }}",
        "{{ var('m').items() }}",
        "{{ 'a'.upper() }}",
        "{{ 'a'.join(['b']) }}",
        "{{ 'x' * 2 }}",
        "{{ 2 ** 2 }}",
        "{{ loop }}",
        "{{ loop.index }}",
        "{{ self }}",
        "{{ self.x() }}",
        "{{ cycler('a') }}",
        "{{ joiner() }}",
        "{{ lipsum() }}",
        "{{ namespace() }}",
        "{{ range(3) }}",
        "{{ dict(a=1) }}",
        "{{ caller() }}",
        "{{ varargs }}",
        "{{ context }}",
        "{{ environment }}",
        "{{ missing }}",
        "{{ nope | default('x') }}",
        "{{ nope is defined }}",
        "{% set x = nope %}",
        "{% set x.a = 1 %}",
        "{% set this = 1 %}",
        "{% set loop = 1 %}",
        "{% set var = 1 %}",
        "{% for this in [1] %}{% endfor %}",
        "{{ source(*['c', 'e']) }}",
        "{{ source('c', 'e', **{'a': 1}) }}",
        "{{ {var('name'): 1} }}",
        "{% filter upper %}a{% endfilter %}",
        "{% set x | upper %}a{% endset %}",
        "{{ var('m') + 1 }}",
        "{{ 1 / 0 }}",
        "{{ var('n') | sort }}",
    ],
)
def test_the_sandbox_gives_nothing_away(template):
    """Attributes of Python objects, methods, formatting and names that are not pz's are out of reach."""
    assert problems_of(template) == [("PZ0104", 1)]


@pytest.mark.parametrize(
    ("template", "code"),
    [
        ("{{ source('c') }}", "PZ0201"),
        ("{{ source('c', 1) }}", "PZ0201"),
        ("{{ source('c', 'e', 'x') }}", "PZ0201"),
        ("{{ source('c', 'e', a: 1, a: 2) }}", "PZ0201"),
        ("{{ source('c', 'a..b') }}", "PZ0344"),
        ("{{ source('c', 'e', rate_limit: {requests_per_minute: 5}) }}", "PZ0318"),
        ("{{ source('c', 'e', max_concurrency: 5) }}", "PZ0318"),
        ("{{ source('c', 'e', table: 'x') }}", "PZ0348"),
        ("{{ source('c', 'e', incremental: {cursor: 'u'}) }}", "PZ0332"),
        ("{{ source('c', 'e', sync: {mode: 'full'}) }}", "PZ0334"),
        ("{{ source('c', 'e', columns: {a: 'text'}) }}", "PZ0101"),
        ("{{ source('c', 'e', retry: {max_attempts: 0}) }}", "PZ0121"),
        ("{{ source('c', 'e', opts: {1: 'x'}) }}", "PZ0137"),
        ("{{ source('c', 'e', opts: source) }}", "PZ0137"),
        ("{{ ref() }}", "PZ0201"),
        ("{{ ref('a', 'b') }}", "PZ0201"),
        ("{{ ref('a', tag: 'x') }}", "PZ0201"),
        ("{{ sink('c') }}", "PZ0208"),
        ("{{ sink('c', 'e', 'f') }}", "PZ0208"),
        ("{{ sink('c', 'e', keys: ['a'], keys: ['b']) }}", "PZ0208"),
        ("{{ sink('c', ' ') }}", "PZ0344"),
        ("{{ sink('c', 'e', strategy: 'upsert') }}", "PZ0228"),
        ("{{ sink('c', 'e', strategy: 1) }}", "PZ0334"),
        ("{{ sink('c', 'e', keys: 'id') }}", "PZ0101"),
        ("{{ sink('c', 'e', duplicates: true) }}", "PZ0334"),
        ("{{ sink('c', 'e', mode: 'append') }}", "PZ0333"),
        ("{{ sink('c', 'e', input: 'x') }}", "PZ0112"),
        ("{{ sink('c', 'e', rate_limit: {}) }}", "PZ0318"),
        ("{{ sink('c', 'e', max_concurrency: 1) }}", "PZ0122"),
        ("{{ sink('c', 'e', schema: 's') }}", "PZ0348"),
        ("{{ watermark('c', 'a b') }}", "PZ0344"),
        ("{{ env('PZ_UNSET') }}", "PZ0103"),
    ],
)
def test_each_wrong_call_has_its_code(template, code):
    """Every rule about arguments is one problem at the call's line."""
    assert problems_of(f"\n{template}") == [(code, 2)]


def test_all_mistakes_of_a_file_come_together():
    """Calls of one file are all looked at, and a follow-up failure is not reported."""
    found = problems_of("{{ ref() }}\n{{ sink('c') }}\n{{ env('NOPE') }}\n{{ env('NOPE') + 1 }}")
    assert found == [("PZ0201", 1), ("PZ0208", 2), ("PZ0103", 3), ("PZ0103", 4)]


def test_an_arm_that_is_not_taken_is_not_evaluated():
    """Neither its calls nor its constants count."""
    rendered, problems = render("{{ if false }}{{ ref() }}{{ run_id }}{{ var('nope') }}{{ end }}x")
    assert (rendered.sql, problems.errors, rendered.calls.uses_run_identity) == ("x", [], False)


def test_near_misses_of_owned_arguments_are_warnings():
    """An option that almost spells one of pz's own is passed on, with a warning."""
    rendered, problems = render(
        "{{ source('c', 'e', Columns: {}, partition: 3) }}{{ sink('c', 'e', key: 'id', path: 'x') }}"
    )
    assert rendered is not None
    assert [w.code for w in problems.warnings] == ["PZ0201", "PZ0201", "PZ0208"]


def test_an_unknown_name_is_placed_on_its_own_line():
    """In a tag of several lines, the line of the name counts."""
    assert problems_of("{{ 1 +\n  nope }}") == [("PZ0104", 2)]


def test_everything_outside_the_language_is_named_at_once():
    """Several refused parts of one file are several problems."""
    assert problems_of("{{ 2 ** 2 }}\n{{ 1 | tojson }}\n{{ 'a'.upper() }}") == [("PZ0104", n) for n in (1, 2, 3)]


def test_a_mistake_in_a_loop_is_one_problem():
    """A call that fails in every turn is reported once."""
    assert problems_of("{{ for x in var('xs') }}{{ env('NOPE') }}{{ end }}") == [("PZ0103", 1)]


def test_messages_repeat_no_value_of_a_variable():
    """A key or a text that comes from a variable may be a secret."""
    for text in (
        "{{ var('m')[var('s')] }}",
        "{{ 1 + var('s') }}",
        "{{ var('s').x.y }}",
        "{{ var('xs') | join(var('s').q) }}",
    ):
        _, problems = render(text, variables={**VARS, "s": "hunter2"})
        assert problems.errors
        assert "hunter2" not in str(problems.errors)


def test_a_misspelled_function_gets_a_near_miss():
    """An unknown name is called unknown, with what was probably meant."""
    _, problems = render("{{ watermrk('c', 'e') }}")
    assert "'watermrk' is undefined" in problems.errors[0].message
    assert problems.errors[0].hint == "did you mean 'watermark'?"


def test_run_started_at_has_seven_digits():
    """The instant prints with seven fractional digits and its offset."""
    assert format_started_at(STARTED) == "2026-11-30T12:00:00.0000000+00:00"
