"""pz's spelling on top of Jinja, done on the token stream.

Accepted beside Jinja's own: `name: value` arguments, objects with bare keys, and `{{ if }}`, `{{ else if }}`,
`{{ else }}`, `{{ for }}`, `{{ end }}`. Tokens keep their lines, so errors name the author's lines. Each call of a pz
function also receives its own line as a hidden first argument, and must start and end on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

FUNCTIONS = ("source", "ref", "sink", "watermark", "var", "env")
"""Functions that a template may call."""

RUN_CONSTANTS = ("run_id", "run_started_at")
"""Constants whose use makes a pipeline's id change on every invocation."""

REPEATED_PREFIX = "_pz_repeated_"
"""Marks an argument name that was written twice in one call."""

_STATEMENTS = frozenset({"if", "elif", "else", "endif", "for", "endfor", "set", "endset"})
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "if", "else", "elif", "for", "set", "recursive"})
_OPENERS = {"lparen": "rparen", "lbracket": "rbracket", "lbrace": "rbrace"}


@dataclass
class _Bracket:
    """An open bracket of an expression."""

    kind: str
    """`call`, `group`, `object` or `other`."""

    function: str | None = None
    line: int = 0
    names: dict[str, int] = field(default_factory=dict)


class PzSpelling(Extension):
    """Rewrites pz's spelling to Jinja's."""

    def filter_stream(self, stream: TokenStream) -> Iterable[Token]:
        """Return the tokens in Jinja's spelling."""
        return TokenStream(
            _Rewriter(list(stream), stream.name, stream.filename).rewrite(), stream.name, stream.filename
        )


class _Rewriter:
    def __init__(self, tokens: list[Token], name: str | None, filename: str | None) -> None:
        self._tokens = tokens
        self._name = name
        self._filename = filename
        self._open_blocks: list[str] = []

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
        if word in {"if", "for"}:
            self._open_blocks.append(word)
        elif word in {"endif", "endfor"} and self._open_blocks and self._open_blocks[-1] == word[3:]:
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
            word = f"end{self._open_blocks.pop()}"
        elif word == "else":
            if rest and rest[0].type == "name" and rest[0].value == "if":
                word, rest = "elif", rest[1:]
            elif rest:
                raise self._error("only 'if' may follow 'else'", line)
        else:
            self._open_blocks.append(word)
        yield Token(tag[0].lineno, "block_begin", tag[0].value)
        yield Token(line, "name", word)
        yield from self._expression(rest)
        yield Token(tag[-1].lineno, "block_end", tag[-1].value)

    def _expression(self, tokens: list[Token]) -> Iterator[Token]:
        brackets: list[_Bracket] = []
        for index, token in enumerate(tokens):
            before = tokens[index - 1] if index else None
            after = tokens[index + 1] if index + 1 < len(tokens) else None
            if token.type == "string" and before is not None and before.type == "string":
                raise self._error("two texts stand side by side; write \\' for a quote inside a text", token.lineno)
            if token.type == "name":
                yield from self._word(token, before, after, brackets)
            elif token.type == "colon" and self._ends_argument_name(tokens, index, brackets):
                yield Token(token.lineno, "assign", "=")
            elif token.type in _OPENERS:
                bracket = self._opened(token, before, tokens[index - 2] if index > 1 else None)
                brackets.append(bracket)
                yield token
                if bracket.function is not None:
                    yield Token(bracket.line, "integer", bracket.line)  # type: ignore[arg-type]  # the lexer's own integers are ints too
                    if after is not None and after.type != "rparen":
                        yield Token(bracket.line, "comma", ",")
            else:
                if token.type in _OPENERS.values() and brackets:
                    self._closed(token, brackets.pop())
                yield token

    def _word(
        self, token: Token, before: Token | None, after: Token | None, brackets: list[_Bracket]
    ) -> Iterator[Token]:
        bracket = brackets[-1] if brackets else None
        if bracket is not None and _is_key(before, after):
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
        if not is_member and token.value in FUNCTIONS and (after is None or after.type != "lparen"):
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
        if not brackets or brackets[-1].kind != "call" or index == 0 or tokens[index - 1].type != "name":
            return False
        return index == 1 or tokens[index - 2].type in {"lparen", "comma"}

    def _error(self, message: str, line: int) -> TemplateSyntaxError:
        return TemplateSyntaxError(message, line, self._name, self._filename)


def _is_key(before: Token | None, after: Token | None) -> bool:
    if before is None or after is None:
        return False
    return before.type in {"lparen", "lbrace", "comma"} and after.type in {"colon", "assign"}
