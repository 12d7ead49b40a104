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


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        ("https://h.example/hooks/T0001/SECRET123", "GET /hooks/T0001/SECRET123/z: 404", "GET /${V}/z: 404"),
        ("https://me:pa%2Fss99@h.example:8443/x", "login failed for me with pa/ss99", "login failed for me with ${V}"),
        ("https://h.example/acme%20Giraffe1/v1", "GET /acme Giraffe1/v1/z", "GET /${V}/z"),
        ("tok%2Dgiraffe", "refused tok-giraffe", "refused ${V}"),
        ("https://h.example/x?sig=a1b2c3d4", "rejected a1b2c3d4", "rejected ${V}"),
        ("https://h.example/x", "h.example does not answer", "${V} does not answer"),
        ("/srv/private/reports", "no folder ../../srv/private", "no folder ../../${V}"),
        ("/srv/Ab34567/x", "folder 'Ab34567' exists", "folder '${V}' exists"),
        ("host=h password=hunter22 user=me", "refused hunter22", "refused ${V}"),
        ("/srv/private/orders", "table orders, private, srv", "table orders, private, srv"),
        ("/srv/private/2026-01-02", "watermark 2026-01-02", "watermark 2026-01-02"),
        ("not a url ://[", "not a url", "not a url"),
    ],
)
def test_parts_of_addresses_paths_and_connection_strings_go_too(value: str, text: str, shown: str) -> None:
    """Whatever names a place or is a credential goes; an ordinary word, a number or a date alone stays."""
    assert HiddenValues({value: "${V}"}).hide(text) == shown
