"""The only redaction code.

Two levels exist and are never mixed. `sanitize` prepares engine messages for results, events and the console: the
statement's echo and every single-quoted value go. `ErrorSummary` prepares what is kept or served afterwards: every
value, number and piece of SQL goes. Applying either twice changes nothing.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from pz_engine.base.data_errors import without_data
from pz_engine.base.sql_traces import first_sql_trace

REMOVED: Final = "[value removed]"
"""What stands in a summary where a value was."""

SUMMARY_LENGTH: Final = 200
"""Most characters of a summary."""

_QUOTED = re.compile(r"(?P<contraction>(?<=[A-Za-z])'(?:t|s|re|ve|ll|d|m)\b(?!'))|'(?:[^']|'')*'")
_UNTERMINATED = re.compile(r"(\bunterminated [^\n]*? at or near \")(?!\*\*\*)[^\n]*(?:\n.*)?", re.DOTALL)
_NEAR = re.compile(r'(\bat or near )"([^"\n]*)"')
_BARE_VALUE = re.compile(r"\b([Vv]alue) [-+]?\d[\d.eE+-]*(?=\s|$)")
_SQL_WORDS = frozenset(
    [
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP",
        "ORDER",
        "BY",
        "HAVING",
        "LIMIT",
        "OFFSET",
        "JOIN",
        "LEFT",
        "RIGHT",
        "FULL",
        "INNER",
        "OUTER",
        "CROSS",
        "ON",
        "USING",
        "UNION",
        "ALL",
        "INTERSECT",
        "EXCEPT",
        "WITH",
        "AS",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "AND",
        "OR",
        "NOT",
        "IN",
        "IS",
        "NULL",
        "LIKE",
        "BETWEEN",
        "EXISTS",
        "CAST",
        "OVER",
        "PARTITION",
        "WINDOW",
        "QUALIFY",
        "VALUES",
        "INTO",
        "INSERT",
        "UPDATE",
        "DELETE",
        "CREATE",
        "DROP",
        "ALTER",
        "TABLE",
        "VIEW",
        "DISTINCT",
        "INTERVAL",
        "DESC",
        "ASC",
        "FILTER",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ";",
        ".",
        "*",
        "+",
        "-",
        "/",
        "%",
        "=",
        "<",
        ">",
        "<=",
        ">=",
        "<>",
        "!=",
        "||",
        ":",
        "::",
    ]
)
"""Tokens that a parser message may point at; any other one may come from the project's variables."""
_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours and cursor movement
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]).*?(?:\x07|\x1b\\|\x9c|$)"  # titles, links and other strings
    r"|\x1b[ -/]*[0-~]"
    r"|[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]"
)
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_STATEMENT_ECHO = re.compile(r"\s*LINE \d+:")
_KIND = re.compile(r"\s*((?:[A-Z][A-Za-z]*\s+(?:[A-Za-z]+\s+){0,3})?(?:[A-Za-z_][\w.]{0,80}?)?Error)\s*:\s*")
_DOLLAR_QUOTE = re.compile(r"\$\w*\$")
_ASSIGNMENT = re.compile(r"=[=>]?[ ]*")
_VALUE = re.compile(r"\S*?(?=[,;:.)\]}]*(?:\s|$))")
_NUMBER = re.compile(r"[-+]?\d[\w.,:/%+-]*?(?=[.,:]*(?:[^\w.,:/%+-]|$))")
_LONGEST_LINE = 4000
_MOST_PASSES = 12


def sanitize(message: str) -> str:
    r"""Drop the statement echo (from the first `LINE <n>:` line on), quoted data and each single-quoted span.

    >>> sanitize("Conversion Error: Could not convert string 'abc' to INT32")
    "Conversion Error: Could not convert string '***' to INT32"
    >>> sanitize("can't read 'a.csv'")
    "can't read '***'"
    >>> sanitize("Parser Error: unterminated quoted string at or near \"'secret and more")
    'Parser Error: unterminated quoted string at or near "***'
    >>> sanitize('Conversion Error: Could not cast value 1701 to DECIMAL(38,0)')
    'Conversion Error: Could not cast value *** to DECIMAL(38,0)'
    """
    kept: list[str] = []
    for line in without_data(message.replace("\r\n", "\n").replace("\r", "\n").strip()).split("\n"):
        if line.lstrip().startswith("LINE "):
            break
        kept.append(line)
    text = _QUOTED.sub(lambda found: found[0] if found["contraction"] else "'***'", "\n".join(kept).strip())
    text = _UNTERMINATED.sub(lambda found: f"{found[1]}***", text)
    text = _NEAR.sub(lambda found: found[0] if found[2].upper() in _SQL_WORDS else f'{found[1]}"***"', text)
    return _BARE_VALUE.sub(r"\1 ***", text)


def statement_label(sql: str) -> str:
    """Describe a statement without its content: the first two words, upper case."""
    return " ".join(sql.split()[:2]).upper() + " …"


class ErrorSummary(Struct, frozen=True):
    """An error as it may be kept for long or shown to strangers."""

    message: str
    """At most 200 characters without values, numbers or SQL; may be empty."""

    kind: str | None = None
    """The kind of error the message began with, such as `Binder Error`."""

    outer_kind: str | None = None
    """The kind that wrapped it, when there were two."""

    details_at: str | None = None
    """Where the whole message is."""

    @classmethod
    def from_message(cls, text: str, details_at: str | None = None) -> ErrorSummary:
        """Summarise a message; the only way to make a summary.

        >>> ErrorSummary.from_message("server answered 500 three times").message
        'server answered [value removed] three times'
        >>> ErrorSummary.from_message("IO Error: cannot open file 'a.csv' where x = 1")
        ErrorSummary(message='cannot open file [value removed]', kind='IO Error', outer_kind=None, details_at=None)
        """
        kinds, rest = _split_kinds(_before_sql(_first_line(text)))
        names = [name for kind in kinds if (name := _settle(kind))]
        return cls(
            _settle(rest),
            names[-1] if names else None,
            names[0] if len(names) > 1 else None,
            details_at,
        )


def _first_line(text: str) -> str:
    for line in _LINE_ENDS.split(text):
        visible = line[:_LONGEST_LINE]
        if visible.strip() and not _STATEMENT_ECHO.match(visible) and _ESCAPE_SEQUENCE.sub(" ", visible).strip():
            return visible
    return ""


def _before_sql(line: str) -> str:
    """Cut at the first sign of SQL, reading escape sequences as blanks and as nothing, so that none can hide a word."""
    spaced = _ESCAPE_SEQUENCE.sub(" ", line)
    end = first_sql_trace(spaced)
    joined = _ESCAPE_SEQUENCE.sub("", line)
    hidden = first_sql_trace(joined)
    if joined == line or hidden == len(joined):
        return spaced[:end]
    kept = 0
    position = 0
    for sequence in _ESCAPE_SEQUENCE.finditer(line):
        visible = sequence.start() - position
        if kept + visible > hidden:
            break
        kept += visible
        position = sequence.end()
    raw_end = position + hidden - kept
    return spaced[: min(end, len(_ESCAPE_SEQUENCE.sub(" ", line[:raw_end])))]


def _split_kinds(line: str) -> tuple[list[str], str]:
    kinds: list[str] = []
    while found := _KIND.match(line):
        kinds.append(found[1])
        line = line[found.end() :]
    return kinds, line


def _settle(text: str) -> str:
    """Redact until nothing changes: cutting or replacing can make a new word or a new quote."""
    for _ in range(_MOST_PASSES):
        redacted = _redact(_split_kinds(text)[1])
        if redacted == text:
            return redacted
        text = redacted
    return ""


def _redact(text: str) -> str:
    line = " ".join(_without_values(text[: first_sql_trace(text)]).split())
    if len(line) <= SUMMARY_LENGTH:
        return line
    start = line.rfind(REMOVED, 0, SUMMARY_LENGTH + len(REMOVED) - 1)
    is_split = 0 <= start < SUMMARY_LENGTH < start + len(REMOVED)
    return line[: start if is_split else SUMMARY_LENGTH].rstrip()


def _without_values(line: str) -> str:
    """Replace quoted spans, assigned values and standalone numbers; cut at the first quote when quoting is in doubt."""
    output: list[str] = []
    first_quote: int | None = None
    position = 0
    while position < len(line):
        if line.startswith(REMOVED, position):
            output.append(REMOVED)
            position += len(REMOVED)
            continue
        end = _quoted_end(line, position)
        if end is not None:
            first_quote = len(output) if first_quote is None else first_quote
            if end < 0:
                return "".join(output[:first_quote])
            output.append(REMOVED)
            position = end
            continue
        assigned = _ASSIGNMENT.match(line, position)
        if assigned:
            output.append(assigned[0])
            position = _after_value(line, assigned.end(), output)
            continue
        number = _NUMBER.match(line, position) if _may_start_number(line, position) else None
        output.append(REMOVED if number else line[position])
        position = number.end() if number else position + 1
    return "".join(output)


def _after_value(line: str, position: int, output: list[str]) -> int:
    """Replace an unquoted value; quoted ones are left to the next step."""
    if _quoted_end(line, position) is not None:
        return position
    value = _VALUE.match(line, position)
    if value is None or not value[0]:
        return position
    output.append(REMOVED)
    if line.startswith(REMOVED, position):
        rest = _VALUE.match(line, position + len(REMOVED))
        return rest.end() if rest else position + len(REMOVED)
    return value.end()


def _quoted_end(line: str, position: int) -> int | None:
    """Return where a quoted span ends; None when none begins here, -1 when its extent is in doubt."""
    mark = line[position] if position < len(line) else ""
    if mark == "$":
        opening = _DOLLAR_QUOTE.match(line, position)
        if opening is None:
            return None
        close = line.find(opening[0], opening.end())
        return -1 if close < 0 else close + len(opening[0])
    if mark not in {"'", '"', "`"} or not mark:
        return None
    if mark == "'" and position > 0 and line[position - 1].isalnum():
        return None
    close = line.find(mark, position + 1)
    while close >= 0 and line.startswith(mark, close + 1):
        close = line.find(mark, close + 2)
    after = line[close + 1 : close + 2]
    if close < 0 or line[close - 1] == "\\" or after.isalnum() or after == "_":
        return -1
    return close + 1


def _may_start_number(line: str, position: int) -> bool:
    before = line[position - 1] if position > 0 else " "
    return not (before.isalnum() or before == "_")
