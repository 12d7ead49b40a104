"""YAML as pz reads it: typing of plain scalars, lines, and everything that is refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_engine.config.located import plain
from pz_engine.config.yaml_reader import read_yaml, read_yaml_file, type_plain
from pz_engine.errors.exceptions import PzConfigError


def value_of(text):
    return plain(read_yaml(f"k: {text}\n", "f.yml"))["k"]


def problem(text):
    with pytest.raises(PzConfigError) as caught:
        read_yaml(text, "f.yml")
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == "PZ0101"
    assert diagnostic.file == "f.yml"
    return diagnostic


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5432", 5432),
        ("-7", -7),
        ("9223372036854775807", 9223372036854775807),
        ("9223372036854775808", 9223372036854775808.0),
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
    assert plain(read_yaml("k: |\n  5\n", "f.yml")) == {"k": "5\n"}


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
    assert plain(read_yaml_file(path, "f.yml")) == {}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("- a\n- b\n", 1, "a list"),
        ("\njust text\n", 2, "a single value"),
        ("a: 1\n---\nb: 2\n", 2, "more than one document"),
        ("a: [1\nb: 2\n", 2, "not valid YAML"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", 4, "'c' is written twice"),
        ("a: &x\n  b: *x\n", 1, "inside its own anchor"),
        ("a: *missing\n", 1, "not valid YAML"),
        ("? [1, 2]\n: x\n", 1, "not a single value"),
        ("a: !secret x\n", 1, "!secret"),
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
    assert plain(read_yaml("a: &x [1, two]\nb: *x\n", "f.yml")) == {"a": [1, "two"], "b": [1, "two"]}


def test_merge_keys_are_ordinary_keys():
    """`<<` has no meaning of its own."""
    assert plain(read_yaml("a: &x {k: 1}\nb: {<<: *x}\n", "f.yml"))["b"] == {"<<": {"k": 1}}


def test_lines_are_kept():
    """Keys and values remember their lines."""
    table = read_yaml("a: 1\nb:\n  c: 2\n", "f.yml")
    assert table.line_of("b") == 2
    inner = table.get("b")
    assert inner.line_of("c") == 3
    assert inner.get("c").line == 3


def test_deep_nesting_and_bad_bytes_are_refused(tmp_path):
    """Neither endless nesting nor bytes that are no text escape as a Python error."""
    problem("[" * 100_000)
    path = tmp_path / "f.yml"
    path.write_bytes(b"a: \xff\xfe")
    with pytest.raises(PzConfigError):
        read_yaml_file(path, "f.yml")
    problem("a: \x01\n")
