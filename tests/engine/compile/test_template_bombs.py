"""Hostile templates end quickly and in little memory: what grows is paid for, what nests is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pz_engine

XS, BIG, TEXT = "var('xs')", "var('big')", "var('text')"
Ask = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Render a template in a process of its own, under limits of time and memory."""
    command = [sys.executable, str(Path(__file__).with_name("bomb_runner.py"))]
    here = {**os.environ, "PYTHONPATH": str(Path(pz_engine.__file__).parents[1])}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=here) as runner:
        assert runner.stdin is not None
        assert runner.stdout is not None

        def send(text: str) -> dict[str, Any]:
            runner.stdin.write(json.dumps(text) + "\n")
            runner.stdin.flush()
            return json.loads(runner.stdout.readline())

        yield send
        runner.stdin.close()


def doubled(first: str, step: str, last: str = "", times: int = 60) -> str:
    """Return a template that doubles a value again and again, and then uses it on line 3."""
    return f"{{% set a = {first} %}}{{% set b = {first} %}}\n" + step * times + f"\n{last}"


REFUSED = {
    "repeated text": ("\n{{ 'a' * 10**9 }}", 2),
    "repeated text without a power": ("\n{{ 'a' * 1000000000 }}", 2),
    "repeated list": ("\n{{ [0] * 1000000000 }}", 2),
    "tower of powers": ("\n{{ 10 ** 10 ** 10 }}", 2),
    "power in an arm that is not taken": ("\n{{ 1 if true else 10 ** 10 ** 10 }}", 2),
    "loops inside loops": (f"\n{{% for a in {XS} %}}{{% for b in {XS} %}}{{{{ a }}}}{{% endfor %}}{{% endfor %}}", 2),
    "empty loops inside loops": ("\n" + f"{{% for a in {XS} %}}" * 4 + "{% endfor %}" * 4, 2),
    "loops that call": (
        f"\n{{{{ for a in {XS} }}}}{{{{ for b in {XS} }}}}{{{{ ref('q') }}}}{{{{ end }}}}{{{{ end }}}}",
        2,
    ),
    "loop with a costly test": (f"\n{{{{ for a in {XS} if a in {XS} }}}}{{{{ end }}}}", 2),
    "text kept inside loops": (
        f"\n{{% set t %}}{{% for a in {XS} %}}{{% for b in {XS} %}}{'z' * 900}{{% endfor %}}{{% endfor %}}{{% endset %}}",
        2,
    ),
    "loop over the characters of a text": ("\n{% for c in '" + "字" * 900_000 + "' %}{% endfor %}", 2),
    "doubled by concatenation": (doubled("'aaaaaaaa'", "{% set a = a ~ a %}"), 2),
    "doubled by addition": (doubled("'aaaaaaaa'", "{% set a = a + a %}"), 2),
    "doubled list": (doubled("[1]", "{% set a = a + a %}"), 2),
    "doubled block": (doubled("'aaaaaaaa'", "{% set a %}{{ a }}{{ a }}{% endset %}"), 2),
    "doubled by replacement": (doubled("'aaaaaaaa'", "{% set a = a | replace('a', 'aa') %}"), 2),
    "replaced nothing with everything": (doubled("'aaaaaaaa'", "{% set a = a | replace('', a) %}"), 2),
    "squared number": (doubled("9999999999", "{% set a = a * a %}"), 2),
    "nested list printed": (doubled("[1]", "{% set a = [a, a] %}", "{{ a }}"), 3),
    "nested lists compared": (doubled("[1]", "{% set a = [a, a] %}{% set b = [b, b] %}", "{{ a == b }}"), 3),
    "nested list searched": (doubled("[1]", "{% set a = [a, a] %}", "{{ 5 in a }}"), 3),
    "nested list sorted": (doubled("[1]", "{% set a = [a, a] %}", "{{ (a | sort)[0] }}"), 3),
    "nested tuples told apart": (doubled("(1, 2)", "{% set a = (a, a) %}", "{{ a | unique | length }}"), 3),
    "nested list in lower case": (doubled("[1]", "{% set a = [a, a] %}", "{{ a | lower }}"), 3),
    "nested list joined": (doubled("[1]", "{% set a = [a, a] %}", "{{ a | join }}"), 3),
    "nested list tested": (doubled("[1]", "{% set a = [a, a] %}", "{{ 5 is in(a) }}"), 3),
    "nested list sliced": (doubled("[1]", "{% set a = [a, a] %}", "{{ a[0:1] | length }}"), 3),
    "nested list as an argument": (doubled("[1]", "{% set a = [a, a] %}", "{{ source('c', 'e', x: a) }}"), 3),
    "nested list that changes": (
        doubled("[1]", "{% set a = [a, a] %}", "{{ for x in [1, 2] }}{{ loop.changed(a) }}{{ end }}"),
        3,
    ),
    "nested tuple as a key": (doubled("(1, 2)", "{% set a = (a, a) %}", "{{ {'k': 1}[a] }}"), 3),
    "joined with a long separator": (f"{{% set s = {TEXT} | join({TEXT}) %}}\n{{{{ {BIG} | join(s) }}}}", 1),
    "characters of a long text": ("{% set a = '" + "字" * 900_000 + "' %}\n{{ a | list | length }}", 2),
    "sorting again and again": ("\n" + f"{{{{ {BIG} | sort | length }}}}" * 1000, 2),
    "comparing again and again": ("\n" + f"{{{{ {BIG} == {BIG} }}}}" * 1000, 2),
    "width of a formatted number by even": ("\n{{ '%999999999d' is even }}", 2),
    "width of a formatted number by odd": ("\n{{ '%999999999d' is odd }}", 2),
    "width of a formatted number": ("\n{{ '%999999999d' % 2 }}", 2),
    "format": ("\n{{ '{0:999999999d}'.format(3) }}", 2),
    "ljust": ("\n{{ 'a'.ljust(1000000000) }}", 2),
    "center": ("\n{{ 'a' | center(1000000000) }}", 2),
    "number of many digits": ("\n{{ " + "9" * 900_000 + " }}", 2),
    "hexadecimal number of many digits": ("\n{{ 0x" + "f" * 900_000 + " }}", 2),
    "fraction of many digits": ("\n{{ 1." + "9" * 900_000 + " }}", 2),
    "digits with underscores": ("\n{{ " + "1_" * 400_000 + "1 }}", 2),
    "power as a text": ("\n{{ 2 ** 100000 | string }}", 2),
    "infinite product": ("\n{{ 1e308 * 10 }}", 2),
    "infinite number": ("\n{{ 1e999 }}", 2),
    "parentheses": ("\n{{ " + "(" * 9000 + "1" + ")" * 9000 + " }}", 2),
    "parentheses that stay open": ("\n{{ " + "(" * 900_000, 2),
    "lists in lists": ("\n{{ " + "[" * 9000 + "]" * 9000 + " }}", 2),
    "objects in objects": ("\n{{ " + "{a: " * 3000 + "1" + "}" * 3000 + " }}", 2),
    "calls in calls": ("\n{{ " + "var(" * 3000 + "'a'" + ")" * 3000 + " }}", 2),
    "subscripts": (f"\n{{{{ {XS}" + "[0]" * 5000 + " }}", 2),
    "members": (f"\n{{{{ {XS}" + ".a" * 5000 + " }}", 2),
    "negations": ("\n{{ " + "not " * 9000 + "1 }}", 2),
    "minus signs": ("\n{{ " + "-" * 9000 + "1 }}", 2),
    "additions": ("\n{{ 1" + " + 1" * 9000 + " }}", 2),
    "conjunctions": ("\n{{ 1" + " and 1" * 9000 + " }}", 2),
    "conditional expressions": ("\n{{ 1" + " if 1 else 1" * 3000 + " }}", 2),
    "filters of filters": ("\n{{ 1" + " | list" * 9000 + " }}", 2),
    "tests of tests": ("\n{{ 1" + " is none" * 5000 + " }}", 2),
    "long comparison": ("\n{{ 1" + " < 1" * 9000 + " }}", 2),
    "long list": ("\n{{ [" + "1," * 400_000 + "] }}", 2),
    "many tags": ("\n" + "{{1}}" * 190_000, 2),
    "many comments": ("{##}" * 249_000 + "{{ 1 }}", 1),
    "conditions in conditions": ("\n" + "{% if 1 %}" * 5000 + "{% endif %}" * 5000, 2),
    "loops in loops, many deep": ("\n" + "{% for x in [1] %}" * 50 + "{% endfor %}" * 50, 2),
    "blocks in blocks": ("\n" + "{% set x %}" * 3000 + "{% endset %}" * 3000, 2),
    "many branches": ("\n{% if 0 %}" + "{% elif 1 %}" * 3000 + "{% endif %}", 2),
    "many branches in pz's spelling": ("\n{{ if 0 }}" + "{{ else if 1 }}" * 3000 + "{{ end }}", 2),
    "long file": ("{{ 1 }}\n" + "a" * 1_100_000, 2),
    "long text that never ends": ("\n{{ '" + "a" * 900_000, 2),
    "quotes": ("\n{{ " + "'" * 900_000, 2),
    "braces": ("\n" + "{{" * 400_000, 2),
    "long name": ("\n{{ " + "a" * 900_000 + " }}", 2),
    "long variable": ("\n{{ var('" + "a" * 900_000 + "') }}", 2),
    "long member": ("\n{{ var('deep')." + "a" * 900_000 + " }}", 2),
    "long filter": ("\n{{ 1 | " + "a" * 900_000 + " }}", 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bomb_is_refused_on_its_line_at_once(ask: Ask, name: str) -> None:
    """PZ0104 at the author's line, within a second of processor time, with a short message and little memory."""
    text, line = REFUSED[name]
    answer = ask(text)
    assert answer.get("found") == [["PZ0104", line]], answer
    assert answer["seconds"] < 1
    assert answer["megabytes"] < 200
    assert answer["longest"] < 500


ACCEPTED = {
    "the most tokens": "{{ [" + "1," * 9_900 + "] | length }}",
    "the most tags": "{{1}}" * 6_600,
    "long concatenation": "{{ 1" + " ~ 1" * 9_000 + " }}",
    "a hundred branches": "{{ if false }}" + "{{ else if false }}" * 100 + "{{ end }}x",
    "a long text": "{{ '" + "a" * 900_000 + "' }}",
    "much raw text": "{% raw %}" + "{{ x }}" * 100_000 + "{% endraw %}{{ 1 }}",
    "long digits outside tags": "{{ 1 }}select " + "9" * 100_000,
    "a large loop": f"{{{{ for x in {XS} }}}}{{{{ for y in [1, 2, 3, 4, 5] }}}}{{{{ y }}}}{{{{ end }}}}{{{{ end }}}}",
    "many arguments": "{{ source('a', 'b'" + "".join(f", a{n}: 1" for n in range(4_900)) + ") }}",
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_large_is_not_hostile(ask: Ask, name: str) -> None:
    """What a generator may write renders, and is as quick."""
    answer = ask(ACCEPTED[name])
    assert answer.get("found") == [], answer
    assert answer["seconds"] < 1
    assert answer["megabytes"] < 200
