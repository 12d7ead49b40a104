"""Takes the data out of what DuckDB and Arrow say about data.

Some kinds of error are raised while rows are being worked on, and their messages quote what was found there: a cell in
single or double quotes, a bare number, a line of a file, a whole document, even a text that the query itself made with
`error()`. Only what is DuckDB's own stays. Arrow's messages end in the value, or consist of it, so only known sentences
about types are kept of them. Binder, catalog and parser errors are about the author's statement and name
columns and tables; they are not touched here.
"""

from __future__ import annotations

import re
from typing import Final

_KINDS = re.compile(
    r"(?:(?:Conversion|Invalid Input|Out of Range|Constraint|Not implemented|Mismatch Type|Invalid type|Decimal) Error: )+"
)
_FREE: Final = "Invalid Input Error: "
WITHHELD: Final = "the message is left out, since it may quote a value; the compiled SQL, run in DuckDB, shows it"
_ARROW = re.compile(r"(?:pyarrow\.lib\.)?(Arrow[A-Z]\w*: )")
_ARROW_WITHHELD: Final = "the message is left out, since it may quote a value"
_ARROW_TYPE = r"[a-z][\w\[\], =/+:()<>-]*?"
_ARROW_KNOWN = re.compile(
    rf"{_ARROW_WITHHELD}"
    rf"|Casting from {_ARROW_TYPE} to {_ARROW_TYPE} would (?:lose data|result in out of bounds \w+)(?=:|$)"
    rf"|Unsupported cast from {_ARROW_TYPE} to {_ARROW_TYPE} using function \w+"
    r"|Rescaling Decimal(?:\d+)? value would cause data loss"
    r"|Function '\w+' has no kernel matching input types"
)
_KNOWN = re.compile(
    r"the message is left out,"
    r"|Could not (?:parse string|convert|decode|cast)|Malformed JSON|JSON transform error|Failed to cast value"
    r"|CSV Error on Line|Error when sniffing file|Error in file|Map keys|More than one row returned by a subquery"
    r"|Invalid UTF8 Codepoint|Invalid unicode|Invalid type specifier|Argument (?:with name|index)|Invalid input for"
    r"|Unrecognized Regex option|Type \w+ with value|Overflow in|Attempting to|Failed to read|Failed to open|File \"|File '"
    r"|No magic bytes|Schema mismatch|Invalid string encoding|Cannot (?:create|open|read|write|unnest|combine|change)"
    r"|Required parameter|Trying to|Unsupported|Unable to|Binding"
)
_REGEX_FAULT = re.compile(
    r"(missing [\])]|unexpected \)|trailing \\|no argument for repetition operator|invalid repetition size"
    r"|bad repetition operator|invalid perl operator|invalid UTF-8|invalid named capture group"
    r"|invalid character class(?: range)?|invalid escape sequence|pattern too large - compile failed)(?::.*)?$"
)
_KEPT_LINE = re.compile(
    r"Error when converting column \"|Column [^\n]* is being converted as type \w|Expected Number of Columns: |\s+file = "
)
_NAMED = re.compile(r'\b(?:column|file|table|pattern) "[^"\n]*"')
_CONTRACTION = re.compile(r"\b(?:can|(?:could|do|does|did|is|was|has|have|must)n)'t\b")
_AFTER_QUOTE = re.compile(r'("\*\*\*"|\'\*\*\*\'): .*')
_ECHO = re.compile(r"\n\nLINE \d+: [^\n]*\n *\^\s*\Z")
_CSV: Final = "CSV Error on Line: "
_CELL = re.compile(r"(Could not convert string) .*")
_INPUT = re.compile(r"\b(Input:|Original Line:|digit:|did you mean) .*")
_PROTECTED = re.compile(
    r"[A-Z]+\(\d+(?:, ?\d+)?\)|\b(?:[Ll]ine|byte|[Pp]osition|Columns|Found):? \d+|INT\d+|\s+file = .*"
)
_NUMBER = re.compile(r"(?<![\w.*])[-+]?\d[\w.:+-]*")


def without_data(message: str) -> str:
    """Return the message of a data error without data and without the statement's echo; any other message as it is.

    >>> without_data('Conversion Error: invalid date field format: "1.5.", expected format is (YYYY-MM-DD)')
    'Conversion Error: invalid date field format: "***", expected format is (YYYY-MM-DD)'
    >>> without_data("Out of Range Error: Overflow in addition of INT64 (17 + 4)!")
    'Out of Range Error: Overflow in addition of INT64 (*** + ***)!'
    >>> without_data("ArrowInvalid: Casting from timestamp[us, tz=UTC] to timestamp[s] would lose data: 17673983")
    'ArrowInvalid: Casting from timestamp[us, tz=UTC] to timestamp[s] would lose data'
    """
    arrow = _ARROW.match(message)
    if arrow is not None:
        sentence = _ARROW_KNOWN.match(message, arrow.end())
        return f"{arrow[1]}{sentence[0] if sentence else _ARROW_WITHHELD}"
    kinds = _KINDS.match(message)
    if kinds is None:
        return message
    first, *others = _ECHO.sub("", message)[kinds.end() :].split("\n")
    if kinds[0].endswith(_FREE) and not _KNOWN.match(first):
        fault = _REGEX_FAULT.match(first)
        return f"{kinds[0]}{fault[1] if fault else WITHHELD}"
    if first.startswith(_CSV):
        kept = [_CELL.sub(r"\1 '***'", line) for line in others if _KEPT_LINE.match(line)]
        return kinds[0] + "\n".join([first, *(_line(line, is_whole=True) for line in kept)])
    return kinds[0] + _line(first, is_whole=not others)


def _line(text: str, *, is_whole: bool) -> str:
    """Replace numbers and what is quoted: from the first mark to the last, because a value may hold marks itself.

    In the first line of several a value may go on in the next ones, and what looks like its end may be part of it.
    """
    text = _INPUT.sub(r"\1 ***", text)
    text = _unquoted(text, is_whole=is_whole)
    text = _AFTER_QUOTE.sub(r"\1", text)
    output, position = [], 0
    for protected in _PROTECTED.finditer(text):
        output += [_NUMBER.sub("***", text[position : protected.start()]), protected[0]]
        position = protected.end()
    return "".join([*output, _NUMBER.sub("***", text[position:])])


def _unquoted(text: str, *, is_whole: bool) -> str:
    """Replace all between the first mark and the last, of either kind: a value in one may hold the other."""
    hidden = {
        place for names in (_CONTRACTION, _NAMED) for found in names.finditer(text) for place in range(*found.span())
    }
    marks = [place for place, character in enumerate(text) if character in "'\"" and place not in hidden]
    if not marks:
        return text
    end = marks[-1] + 1 if is_whole and len(marks) > 1 else len(text)
    mark = text[marks[0]]
    return f"{text[: marks[0]]}{mark}***{mark}{text[end:]}"
