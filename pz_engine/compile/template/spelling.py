"""pz's spelling on top of Jinja, done on the token stream.

Accepted beside Jinja's own: `name: value` arguments, objects with bare keys, and `{{ if }}`, `{{ else if }}`,
`{{ else }}`, `{{ for }}`, `{{ end }}`. Tokens keep their lines, so errors name the author's lines. Each call of a pz
function also receives its own line as a hidden first argument, and must start and end on it. What is too long or too
deep for a parser is refused here, before it parses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from msgspec import Struct, field

FUNCTIONS = ("source", "ref", "sink", "watermark", "var", "env")
"""Functions that a template may call."""

RUN_CONSTANTS = ("run_id", "run_started_at")
"""Constants whose use makes a pipeline's id change on every invocation."""

REPEATED_PREFIX = "_pz_repeated_"
"""Marks an argument name that was written twice in one call."""

MAX_LENGTH = 1_000_000
"""Most characters of a file with tags."""

MAX_TOKENS = 20_000
"""Most words, signs and values in the tags of one file, stretches of text between tags included."""

MAX_NESTING = 40
"""Most operators and brackets that stand inside each other in one expression."""

MAX_OPEN_BLOCKS = 15
"""Most conditions and loops that stand inside each other."""

MAX_BRANCHES = 100
"""Most `else if` of one condition."""

MAX_DIGITS = 40
"""Most characters of a number."""

_STATEMENTS = frozenset({"if", "elif", "else", "endif", "for", "endfor", "set", "endset"})
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "if", "else", "elif", "for", "set", "recursive"})
_OPENERS = {"lparen": "rparen", "lbracket": "rbracket", "lbrace": "rbrace"}
_NESTING = frozenset(
    {*_OPENERS, "add", "sub", "mul", "div", "floordiv", "mod", "pow", "dot", "pipe", "eq", "ne", "lt", "lteq", "gt", "gteq"}
)  # fmt: skip
_WORD_OPERATORS = frozenset({"and", "or", "not", "in", "is", "if", "else"})
_LONG_NUMBER = re.compile(rf"[0-9a-fA-F_]{{{MAX_DIGITS + 1},}}")


class _Block(Struct):
    """An open condition, loop or block of `set`."""

    word: str
    branches: int = 0


class _Bracket(Struct):
    """An open bracket of an expression, or the whole of it."""

    kind: str
    """`tag`, `call`, `group`, `object` or `other`."""

    function: str | None = None
    line: int = 0
    names: dict[str, int] = field(default_factory=dict)
    above: int = 0
    """Operators and brackets around it."""

    operators: int = 0
    """Operators and closed brackets in its current item; a comma starts the next one."""

    inside: int = 0
    """Deepest nesting in the brackets of its current item."""

    deepest: int = 0
    """Deepest nesting of the items before."""

    @property
    def height(self) -> int:
        """Return how deep its own content nests, as far as it was read."""
        return max(self.deepest, self.operators + self.inside)


class PzSpelling(Extension):
    """Rewrites pz's spelling to Jinja's."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the text as it is, unless it or one of its numbers is too long to be read."""
        if len(source) > MAX_LENGTH:
            line = source.count("\n", 0, MAX_LENGTH) + 1
            raise TemplateSyntaxError(f"it has more than {MAX_LENGTH:,} characters", line, name, filename)
        if source.count("{#") > MAX_TOKENS:
            raise TemplateSyntaxError(f"it has more than {MAX_TOKENS:,} comments", 1, name, filename)
        if _LONG_NUMBER.search(source):
            shortened = _LONG_NUMBER.sub(lambda match: match[0][: MAX_DIGITS + 1], source)
            for line, kind, text in self.environment.lexer.tokeniter(shortened, name, filename):
                if kind in {"integer", "float"} and len(text) > MAX_DIGITS:
                    raise TemplateSyntaxError(f"a number has more than {MAX_DIGITS} digits", line, name, filename)
        return source

    def filter_stream(self, stream: TokenStream) -> Iterable[Token]:
        """Return the tokens in Jinja's spelling."""
        tokens: list[Token] = []
        for token in stream:
            if len(tokens) == MAX_TOKENS:
                message = f"its tags hold more than {MAX_TOKENS:,} words and signs"
                raise TemplateSyntaxError(message, token.lineno, stream.name, stream.filename)
            tokens.append(token)
        return TokenStream(_Rewriter(tokens, stream.name, stream.filename).rewrite(), stream.name, stream.filename)


class _Rewriter:
    def __init__(self, tokens: list[Token], name: str | None, filename: str | None) -> None:
        self._tokens = tokens
        self._name = name
        self._filename = filename
        self._open_blocks: list[_Block] = []

    def rewrite(self) -> Iterator[Token]:
        index = 0
        while index < len(self._tokens):
            token = self._tokens[index]
            if token.type not in {"variable_begin", "block_begin"}:
                yield token
                index += 1
                continue
            end = self._tag_end(index)
            tag = self._tokens[index : end + 1]
            yield from self._tag(tag)
            index = end + 1

    def _tag_end(self, start: int) -> int:
        closing = "variable_end" if self._tokens[start].type == "variable_begin" else "block_end"
        for index in range(start, len(self._tokens)):
            if self._tokens[index].type == closing:
                return index
        raise self._error("a tag is not closed", self._tokens[start].lineno)

    def _tag(self, tag: list[Token]) -> Iterator[Token]:
        first = tag[1]
        if tag[0].type == "block_begin":
            yield from self._block(tag)
        elif first.type == "name" and first.value in {"if", "for", "else", "end"}:
            yield from self._statement(tag)
        else:
            yield tag[0]
            yield from self._expression(tag[1:-1])
            yield tag[-1]

    def _block(self, tag: list[Token]) -> Iterator[Token]:
        word = tag[1].value if tag[1].type == "name" else ""
        if word not in _STATEMENTS:
            raise self._error(f"the statement '{word}' is not available", tag[0].lineno)
        is_block = word in {"if", "for"} or (word == "set" and all(token.type != "assign" for token in tag))
        if is_block:
            self._open(word, tag[0].lineno)
        elif word == "elif":
            self._branch(tag[0].lineno)
        elif word.startswith("end") and self._open_blocks and self._open_blocks[-1].word == word[3:]:
            self._open_blocks.pop()
        yield tag[0]
        yield tag[1]
        yield from self._expression(tag[2:-1])
        yield tag[-1]

    def _statement(self, tag: list[Token]) -> Iterator[Token]:
        word, rest = tag[1].value, tag[2:-1]
        line = tag[1].lineno
        if word == "end":
            if rest:
                raise self._error("nothing may follow 'end'", line)
            if not self._open_blocks:
                raise self._error("'end' closes nothing", line)
            word = f"end{self._open_blocks.pop().word}"
        elif word == "else":
            if rest and rest[0].type == "name" and rest[0].value == "if":
                word, rest = "elif", rest[1:]
                self._branch(line)
            elif rest:
                raise self._error("only 'if' may follow 'else'", line)
        else:
            self._open(word, line)
        yield Token(tag[0].lineno, "block_begin", tag[0].value)
        yield Token(line, "name", word)
        yield from self._expression(rest)
        yield Token(tag[-1].lineno, "block_end", tag[-1].value)

    def _open(self, word: str, line: int) -> None:
        if len(self._open_blocks) == MAX_OPEN_BLOCKS:
            raise self._error(f"more than {MAX_OPEN_BLOCKS} conditions and loops stand inside each other", line)
        self._open_blocks.append(_Block(word))

    def _branch(self, line: int) -> None:
        if self._open_blocks:
            self._open_blocks[-1].branches += 1
            if self._open_blocks[-1].branches > MAX_BRANCHES:
                raise self._error(f"a condition has more than {MAX_BRANCHES} branches", line)

    def _expression(self, tokens: list[Token]) -> Iterator[Token]:
        brackets = [_Bracket("tag")]
        for index, token in enumerate(tokens):
            before = tokens[index - 1] if index else None
            after = tokens[index + 1] if index + 1 < len(tokens) else None
            if token.type == "string" and before is not None and before.type == "string":
                raise self._error("two texts stand side by side; write \\' for a quote inside a text", token.lineno)
            self._measure(token, brackets[-1])
            if token.type == "name":
                yield from self._word(token, before, after, brackets[-1])
            elif token.type == "colon" and self._ends_argument_name(tokens, index, brackets):
                yield Token(token.lineno, "assign", "=")
            elif token.type in _OPENERS:
                bracket = self._opened(token, before, tokens[index - 2] if index > 1 else None)
                bracket.above = brackets[-1].above + brackets[-1].operators
                brackets.append(bracket)
                yield token
                if bracket.function is not None:
                    yield Token(bracket.line, "integer", bracket.line)  # type: ignore[arg-type]  # the lexer's own integers are ints too
                    if after is not None and after.type != "rparen":
                        yield Token(bracket.line, "comma", ",")
            else:
                if token.type in _OPENERS.values() and len(brackets) > 1:
                    closed = brackets.pop()
                    brackets[-1].inside = max(brackets[-1].inside, closed.height)
                    self._closed(token, closed)
                yield token

    def _measure(self, token: Token, bracket: _Bracket) -> None:
        """Refuse an expression that nests deeper than the parsers behind this one can follow."""
        if token.type == "comma":
            bracket.deepest, bracket.operators, bracket.inside = bracket.height, 0, 0
        elif token.type in _NESTING or (token.type == "name" and token.value in _WORD_OPERATORS):
            bracket.operators += 1
        if bracket.above + bracket.height > MAX_NESTING:
            raise self._error(f"it nests more than {MAX_NESTING} operators and brackets", token.lineno)

    def _word(self, token: Token, before: Token | None, after: Token | None, bracket: _Bracket) -> Iterator[Token]:
        if _is_key(before, after):
            if bracket.kind == "object" and after is not None and after.type == "colon":
                yield Token(token.lineno, "string", token.value)
                return
            if bracket.kind == "call":
                count = bracket.names.get(token.value, 0)
                bracket.names[token.value] = count + 1
                name = f"{REPEATED_PREFIX}{count}_{token.value}" if count else token.value
                yield Token(token.lineno, "name", name)
                return
        is_member = before is not None and before.type in {"dot", "pipe"}
        is_argument = bracket.kind == "call" and before is not None and before.type in {"assign", "colon"}
        is_called = after is not None and after.type == "lparen"
        if not is_member and not is_argument and token.value in FUNCTIONS and not is_called:
            raise self._error(f"{token.value} is a function and must be called", token.lineno)
        is_null = not is_member and token.value == "null"
        yield Token(token.lineno, "name", "none") if is_null else token
        if not is_member and token.value in RUN_CONSTANTS:
            yield Token(token.lineno, "lparen", "(")
            yield Token(token.lineno, "rparen", ")")

    @staticmethod
    def _opened(token: Token, before: Token | None, before_that: Token | None) -> _Bracket:
        if token.type == "lbrace":
            return _Bracket("object")
        if token.type == "lbracket" or before is None:
            return _Bracket("other")
        if before.type == "name" and before.value not in _KEYWORDS:
            is_member = before_that is not None and before_that.type in {"dot", "pipe"}
            function = before.value if before.value in FUNCTIONS and not is_member else None
            return _Bracket("call", function, before.lineno)
        return _Bracket("call" if before.type in {"rparen", "rbracket"} else "group")

    def _closed(self, token: Token, bracket: _Bracket) -> None:
        if bracket.function is not None and token.lineno != bracket.line:
            raise self._error(f"the call of {bracket.function}() must start and end on one line", bracket.line)

    @staticmethod
    def _ends_argument_name(tokens: list[Token], index: int, brackets: list[_Bracket]) -> bool:
        if brackets[-1].kind != "call" or index == 0 or tokens[index - 1].type != "name":
            return False
        return index == 1 or tokens[index - 2].type in {"lparen", "comma"}

    def _error(self, message: str, line: int) -> TemplateSyntaxError:
        return TemplateSyntaxError(message, line, self._name, self._filename)


def _is_key(before: Token | None, after: Token | None) -> bool:
    if before is None or after is None:
        return False
    return before.type in {"lparen", "lbrace", "comma"} and after.type in {"colon", "assign"}
