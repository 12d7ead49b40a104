"""Redaction removes what it promises and is stable when repeated."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pz_engine.base.redact import REMOVED, SUMMARY_LENGTH, ErrorSummary, sanitize, statement_label

_PIECES = st.sampled_from(
    [
        "'", '"', "`", "$$", "$tag$", "\\", "=", ":=", "=>", " ", "\n", "\r\n", "\x1b[31m", "\x07", "5", "12.50", "a",
        "can", "t", "select", "SEL", "ECT", "insert into", "where", "update", "set", "from", "Error", ":", "KeyError: ",
        "Binder Error: ", "LINE 1: ", REMOVED, "[value", " removed]", "(", ")", ",", ";", ".", "secret", "é", "cast(",
        "/*", "*/", "-", "_", "x" * 60,
    ]
)  # fmt: skip
_MESSAGES = st.one_of(st.text(max_size=60), st.lists(_PIECES, max_size=14).map("".join))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Could not convert string 'abc' to INT32", "Could not convert string '***' to INT32"),
        ("syntax error\n\n  LINE 1: select 'secret'\n         ^", "syntax error"),
        ("text 'a''b' and 'c'", "text '***' and '***'"),
        ("can't open 'people.csv'", "can't open '***'"),
        ("server's answer was 'x'", "server's answer was '***'"),
        ("literal E's' here", "literal E'***' here"),
        ('no column "amount"', 'no column "amount"'),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
    ],
)
def test_sanitize_drops_echoes_and_quoted_values(message: str, expected: str) -> None:
    """Engine sanitizing keeps the sentence and removes the statement's echo and single-quoted spans."""
    assert sanitize(message) == expected


@given(_MESSAGES)
def test_sanitize_twice_is_sanitize_once(message: str) -> None:
    """Engine sanitizing is idempotent."""
    assert sanitize(sanitize(message)) == sanitize(message)


def test_statement_label_shows_two_words_only() -> None:
    """A statement is described without its content."""
    assert statement_label("create secret s (type s3, key_id 'k')") == "CREATE SECRET …"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("server answered 500 three times", f"server answered {REMOVED} three times"),
        ("could not update the row", "could not update the row"),
        ("could not create the folder", "could not create the folder"),
        ("bad value 'abc' in column \"x\"", f"bad value {REMOVED} in column {REMOVED}"),
        ("failed: INSERT INTO people VALUES (1, 'Ann')", "failed:"),
        ("failed: update people set name = 'Ann'", "failed:"),
        ("failed: delete\t from people", "failed:"),
        ("failed: cast(x AS int)", "failed:"),
        ("no rows where id is low", "no rows"),
        ("connect with password=hunter2 failed", f"connect with password={REMOVED} failed"),
        ("connect with password = hunter2, retry", f"connect with password = {REMOVED}, retry"),
        ("a := b and c => d", f"a := {REMOVED} and c => {REMOVED}"),
        ("can't read 'a.csv'", f"can't read {REMOVED}"),
        ("value 'it is open", "value"),
        ("value 'a' then 'b\\' left", "value"),
        ("value 'a'b", "value"),
        ("body $$secret$$ and $t$more$t$", f"body {REMOVED} and {REMOVED}"),
        ("body $$secret", "body"),
        ("int64 and PZ0501 stay, 7 and 2026-11-30 go", f"int64 and PZ0501 stay, {REMOVED} and {REMOVED} go"),
        ("took 5ms at 10.0.0.1:5432.", f"took {REMOVED} at {REMOVED}."),
        ("\n\n  LINE 1: select 1\nsecond line", "second line"),
        ("failed: SEL\x1b[31mECT name", "failed:"),
        ("failed \x1b[1mSELECT\x1b[0m name", "failed"),
        ("bell\x07rings", "bell rings"),
        (f"x = {REMOVED}, y", f"x = {REMOVED}, y"),
        ("", ""),
    ],
)
def test_summary_removes_values_numbers_and_sql(message: str, expected: str) -> None:
    """A summary keeps plain words and nothing else."""
    assert ErrorSummary.from_message(message).message == expected


def test_summary_splits_kinds() -> None:
    """The innermost kind is the kind, the outermost the outer kind, and the message begins with neither."""
    summary = ErrorSummary.from_message("ConnectionError: Binder Error: no such column", "run_results.json")
    assert summary == ErrorSummary("no such column", "Binder Error", "ConnectionError", "run_results.json")
    assert ErrorSummary.from_message("KeyError: missing").kind == "KeyError"
    assert ErrorSummary.from_message("Invalid Input Error: bad").kind == "Invalid Input Error"
    assert ErrorSummary.from_message("A Error: B Error: C Error: x") == ErrorSummary("x", "C Error", "A Error")
    assert ErrorSummary.from_message("the password was wrong").kind is None


def test_summary_is_cut_between_markers() -> None:
    """The cut never leaves half a marker."""
    message = ErrorSummary.from_message("word " * 38 + "'value' tail").message
    assert len(message) <= SUMMARY_LENGTH
    assert not message.endswith("[value")


@given(_MESSAGES)
@example("5'")
@example("x=[value removed]tail")
@example("a" * 190 + " 'v' selection")
@example("w " * 97 + "selections")
def test_summary_of_a_summary_changes_nothing(message: str) -> None:
    """Summaries are idempotent, so they can be applied on write and again on read."""
    once = ErrorSummary.from_message(message).message
    again = ErrorSummary.from_message(once)
    assert again == ErrorSummary(once)
    assert len(once) <= SUMMARY_LENGTH


@given(st.text(alphabet="abcXYZ019 ", min_size=3, max_size=12).map(str.strip).filter(lambda s: len(s) > 2))
def test_quoted_secret_never_survives(secret: str) -> None:
    """Whatever is inside quotes does not reach the summary."""
    marked = f"zq{secret}qz"
    for message in (f"bad '{marked}'", f'bad "{marked}"', f"bad `{marked}`", f"bad '{marked}", f"bad $$ {marked} $$"):
        assert "zq" not in ErrorSummary.from_message(message).message
