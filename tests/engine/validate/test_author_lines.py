"""Lines of compiled SQL are traced to the author's file, or not named at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_engine.validate.author_lines import author_line

WRITTEN = """-- orders
INSERT INTO {{ sink('a', 'b') }}
SELECT
    id,
    {{ var('x') }},
    amuont
FROM {{ source('c', 'e') }}
WHERE id > 1
"""
COMPILED = "SELECT\n    id,\n    7,\n    amuont\nFROM staging.src_c__e\nWHERE id > 1"


@pytest.mark.parametrize(("index", "line"), [(0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 8), (6, None), (-1, None)])
def test_lines_around_tags_are_known(index, line):
    """A line with a tag is placed by its neighbours."""
    assert author_line(WRITTEN, COMPILED, index) == line


@pytest.mark.parametrize(
    ("written", "compiled", "index", "line"),
    [
        ("a\nb\nc", "a\n1\n2\nc", 1, None),
        ("a\nb\nc", "a\n1\n2\nc", 3, 3),
        ("x\nx\ny", "x\nx\ny", 1, None),
        ("a\nb", "b\na", 0, None),
        ("{{ x }}\nb", "1\nb", 0, None),
        ("a\n{{ x }}", "a\n1", 1, 2),
        ("a\n{{ x }}", "a\n1\n2", 1, None),
    ],
)
def test_what_is_not_certain_is_not_named(written, compiled, index, line):
    """More lines between two known ones, repeated lines and another order leave the place open."""
    assert author_line(written, compiled, index) == line


@given(st.lists(st.sampled_from(["a", "b", "c", "{{ x }}", ""]), max_size=8), st.data())
def test_a_line_by_line_rendering_is_never_placed_wrongly(lines, data):
    """When each line renders to one line, the line named is the right one, whatever was cut off in front."""
    cut = data.draw(st.integers(0, len(lines)))
    rendered = [line.replace("{{ x }}", data.draw(st.sampled_from(["7", "a", "b"]))) for line in lines[cut:]]
    for index in range(len(rendered)):
        found = author_line("\n".join(lines), "\n".join(rendered), index)
        assert found is None or lines[found - 1] in {rendered[index], "{{ x }}"}
