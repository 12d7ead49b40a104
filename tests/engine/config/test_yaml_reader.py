"""YAML as pz reads it: typing of plain scalars, lines, and everything that is refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_engine.config import yaml_builder
from pz_engine.config.located import plain
from pz_engine.config.yaml_builder import MAX_DEPTH, type_plain
from pz_engine.config.yaml_reader import read_yaml, read_yaml_file
from pz_engine.errors.collector import ProblemCollector


def table_of(text):
    problems = ProblemCollector()
    table = read_yaml(text, "f.yml", problems)
    problems.raise_if_any()
    return table


def value_of(text):
    return plain(table_of(f"k: {text}\n"))["k"]


def problems_of(text):
    problems = ProblemCollector()
    read_yaml(text, "f.yml", problems)
    assert {(problem.code, problem.file) for problem in problems.errors} == {("PZ0101", "f.yml")}
    assert all(problem.hint for problem in problems.errors)
    return problems.errors


def problem(text):
    (found,) = problems_of(text)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5432", 5432),
        ("-7", -7),
        ("9223372036854775807", 9223372036854775807),
        ("9223372036854775808", 9223372036854775808.0),
        ("-9223372036854775808", -9223372036854775808),
        ("+5", 5),
        ("007", 7),
        ("0000000000000000000000000005", 5),
        ("9" * 6000, "9" * 6000),
        (".5", 0.5),
        ("5.", 5.0),
        ("1_0.5", "1_0.5"),
        ("TRUE", "TRUE"),
        ("None", "None"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("true", True),
        ("false", False),
        ("True", "True"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("null", "null"),
        ("~", "~"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("nan", "nan"),
        (".inf", ".inf"),
        ("inf", "inf"),
        ("1e999", "1e999"),
        ("'5432'", "5432"),
        ('"true"', "true"),
        ("''", ""),
        ("", ""),
    ],
)
def test_plain_scalars_are_typed_by_fixed_rules(text, expected):
    """Only decimal numbers and lowercase booleans are typed; quoted scalars stay text."""
    found = value_of(text)
    assert found == expected
    assert type(found) is type(expected)


def test_block_scalars_are_text():
    """A block scalar is text even when it looks like a number."""
    assert plain(table_of("k: |\n  5\n")) == {"k": "5\n"}


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_64_bit_integer_keeps_its_value(number):
    """An integer that fits 64 bits is read as that integer."""
    assert value_of(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_keeps_its_value(number):
    """A finite float that prints in decimal is read back exactly."""
    found = value_of(repr(number))
    assert math.isclose(found, number, rel_tol=0.0)


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S", "Zs"), max_codepoint=0x2FFF)))
def test_quoted_text_is_never_typed(text):
    """Whatever stands in quotes comes back as the same text."""
    quoted = "'" + text.replace("'", "''") + "'"
    assert value_of(quoted) == text


@given(st.text(max_size=12))
def test_typing_never_raises_and_text_stays_itself(text):
    """A plain scalar is a number, a boolean, or exactly its own characters."""
    found = type_plain(text)
    assert found == text or isinstance(found, (bool, int, float))


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "null\n", "~\n", "\ufeff"])
def test_nothing_is_an_empty_mapping(text, tmp_path):
    """Empty files, comments and a bare null are empty mappings; a byte-order mark is ignored."""
    path = tmp_path / "f.yml"
    path.write_text(text, encoding="utf-8")
    problems = ProblemCollector()
    assert plain(read_yaml_file(path, "f.yml", problems)) == {}
    assert problems.errors == []


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("- a\n- b\n", 1, "a list"),
        ("\njust text\n", 2, "a single value"),
        ("a: 1\n---\nb: 2\n", 2, "more than one document"),
        ("a: [1\nb: 2\n", 2, "not valid YAML"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", 4, "'c' is written twice"),
        ("a: &x\n  b: *x\n", 2, "inside its own anchor"),
        ("a: 1\nb: [*missing]\n", 2, "no anchor"),
        ("? [1, 2]\n: x\n", 1, "not a single value"),
        ("a: !secret x\n", 1, "!secret"),
        ("a: 1\nb: !!str 5\n", 2, "not supported"),
        ("a: 1\nb: ! 5\n", 2, "not supported"),
        ("a: 1\nb: 'x\nc: 2\n", 2, "not valid YAML"),
        ("a: 1\n\tb: 2\n", 2, "not valid YAML"),
        ("a: 1\nb: \x01\n", 2, "does not allow"),
        ('a: 1\nb: "x\\0y"\n', 2, "NUL"),
    ],
)
def test_malformed_yaml_is_refused_with_its_line(text, line, words):
    """Each malformed text names the file, the line and the cause."""
    diagnostic = problem(text)
    assert diagnostic.line == line
    assert words in diagnostic.message


def test_aliases_may_not_explode():
    """Aliases that would expand to more than a million values are refused."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{c}: &{c} [{', '.join([f'*{p}'] * 10)}]" for p, c in zip("abcdef", "bcdefg", strict=True)]
    assert "expand" in problem("\n".join(lines)).message


def test_aliases_repeat_their_value():
    """An ordinary alias gives the same value again."""
    assert plain(table_of("a: &x [1, two]\nb: *x\n")) == {"a": [1, "two"], "b": [1, "two"]}


def test_merge_keys_are_ordinary_keys():
    """`<<` has no meaning of its own."""
    assert plain(table_of("a: &x {k: 1}\nb: {<<: *x}\n"))["b"] == {"<<": {"k": 1}}


def test_lines_are_kept():
    """Keys and values remember their lines."""
    table = table_of("a: 1\nb:\n  c: 2\n")
    assert table.line_of("b") == 2
    inner = table.get("b")
    assert inner.line_of("c") == 3
    assert inner.get("c").line == 3


def test_deep_nesting_is_refused_however_it_is_written():
    """Neither flow nor block nesting, nor nesting through aliases, escapes as a Python error."""
    assert "not valid YAML" in problem("a: " + "[" * 100_000).message
    assert "levels deep" in problem("- " * 100_000).message
    assert "levels deep" in problem("a: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH).message
    chain = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, MAX_DEPTH + 1)]
    assert "levels deep" in problem("\n".join(chain)).message


def test_nesting_up_to_the_limit_is_read():
    """The limit counts mappings and lists inside each other, the file's own mapping included."""
    deep = MAX_DEPTH - 1
    assert plain(table_of("a: " + "[" * deep + "]" * deep))


def test_all_structural_mistakes_of_a_file_come_together():
    """A repeated key, a tag and a complex key are three problems, and the rest of the file is still there."""
    text = "a: 1\na: 2\nb: !x 3\n? [c]\n: d\ne: 5\n"
    assert [found.line for found in problems_of(text)] == [2, 3, 4]
    assert plain(read_yaml(text, "f.yml", ProblemCollector())) == {"a": 1, "b": 3, "e": 5}


def test_more_values_than_the_limit_are_refused_without_aliases_too(monkeypatch):
    """The limit of values holds for a plain long list, and counts keys."""
    monkeypatch.setattr(yaml_builder, "MAX_VALUES", 100)
    assert "more than 100 values" in problem("a: [" + "x," * 98 + "]").message
    assert plain(table_of("a: [" + "x," * 97 + "]"))


@given(
    st.lists(
        st.sampled_from(["a", ":", " ", "-", "[", "]", "{", "}", "\n", "&x", "*x", "!", "'", '"', "|", "#", "?", ","]),
        max_size=40,
    )
)
def test_any_text_is_a_mapping_or_a_problem(pieces):
    """Whatever is typed, the reader returns a mapping, reports problems, or both; it never raises."""
    problems = ProblemCollector()
    table = read_yaml("".join(pieces), "f.yml", problems)
    assert table is not None or problems.errors
    if table is not None:
        plain(table)
