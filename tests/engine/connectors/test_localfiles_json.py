"""What json files cannot hold, and whether the next step that is named leads anywhere."""

from __future__ import annotations

import pytest

from pz_engine.errors.exceptions import PzConnectorError

MIB = 1024 * 1024
LONG = "12345678901234567.25"


def test_advice_for_a_long_decimal_keeps_its_digits(put, land):
    """A number with a point is rounded on its way into a text, so only quotes help; varchar alone is not recommended."""
    put("d.json", f'{{"n": {LONG}}}\n')
    with pytest.raises(PzConnectorError, match=r"'d\.json', line 1: column 'n'") as caught:
        land("d.json", format="json", columns={"n": "decimal(38,2)"})
    assert "put the numbers into quotes in the file, declare varchar and cast in the pipeline" in (
        caught.value.hint or ""
    )
    assert "declare double" in (caught.value.hint or "")
    assert land("d.json", format="json", columns={"n": "varchar"}) != [(LONG,)]
    assert land("d.json", format="json", columns={"n": "double"}) == [(float(LONG),)]
    put("d.json", f'{{"n": "{LONG}"}}\n')
    assert land("d.json", format="json", columns={"n": "varchar"}) == [(LONG,)]


@pytest.mark.parametrize(
    ("value", "kind", "advice"),
    [
        ("400", "tinyint", "a wider number, or varchar for words"),
        ('"soon"', "date", "such as varchar"),
    ],
)
def test_other_values_that_do_not_fit_have_their_own_advice(put, land, value, kind, advice):
    """A wider number takes a number, text takes the rest."""
    put("d.json", f'{{"n": {value}}}\n')
    with pytest.raises(PzConnectorError) as caught:
        land("d.json", format="json", columns={"n": kind})
    assert advice in (caught.value.hint or "")


@pytest.mark.parametrize("columns", [{"a": "varchar"}, None])
@pytest.mark.parametrize("layout", ["ndjson", "array"])
def test_object_beyond_the_limit_is_named(put, land, layout, columns):
    """The file, the limit and what to do; nothing of the object."""
    large = f'{{"a": "{"x" * (33 * MIB)}"}}'
    put("big.json", f'[{{"a": "b"}}, {large}]' if layout == "array" else f'{{"a": "b"}}\n{large}\n')
    limit = r"^file 'big\.json' holds an object larger than the limit of 16777216 bytes$"
    with pytest.raises(PzConnectorError, match=limit) as caught:
        land("big.json", format="json", layout=layout, columns=columns)
    assert "layout: array" in (caught.value.hint or "")
