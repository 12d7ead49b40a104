"""Values from outside are taken out of texts, however they are spelled there."""

from __future__ import annotations

import pytest

from pz_engine.base.hidden_values import HiddenValues


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GET https://Api.S3cret.example/x", "GET https://${HOST}/x"),
        ("cannot reach api.s3cret.example", "cannot reach ${HOST}"),
        ("token=a%2Fb%2Fcdef and A%2fB%2fcdef", "token=${TOKEN} and ${TOKEN}"),
        ("nothing of it", "nothing of it"),
    ],
)
def test_values_go_in_any_case_and_encoded(text: str, shown: str) -> None:
    """Host names come back in lower case, and query strings percent-encoded."""
    hidden = HiddenValues({"Api.S3cret.example": "${HOST}", "a/b/cdef": "${TOKEN}"})
    assert hidden.hide(text) == shown


def test_longer_values_go_first_and_short_ones_stay() -> None:
    """A value inside another one leaves nothing of the other behind; a short one is likely an ordinary word."""
    hidden = HiddenValues({"secret": "${A}", "secret-and-more": "${B}", "id": "${C}"})
    assert hidden.hide("secret-and-more, secret, id") == "${B}, ${A}, id"


def test_replacement_is_taken_as_it_is() -> None:
    """A name with a backslash or a group reference in it is no pattern."""
    assert HiddenValues({"value.+": r"\1"}).hide("x value.+ y") == r"x \1 y"
