"""How a crawl goes from one page to the next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

import httpx
from msgspec import Struct

from pz_engine.connectors.builtin.http.addresses import joined
from pz_engine.connectors.builtin.http.json_text import find, pointer_parts
from pz_engine.errors.exceptions import PzConnectorError

_NUMBER: Final = re.compile(r"[0-9]{1,18}")


class Page(Struct, frozen=True):
    """What a pagination may look at."""

    url: httpx.URL
    """As requested."""

    answered_by: httpx.URL
    """After redirects; relative links start here."""

    headers: httpx.Headers
    document: Any
    records: int


class Pagination(Protocol):
    """Leads from page to page."""

    @property
    def ends_when_empty(self) -> bool:
        """A page without records is the last one; otherwise it is only a gap."""

    def first(self, url: httpx.URL) -> httpx.URL:
        """Return the first request."""

    def next(self, page: Page) -> httpx.URL | None:
        """Return the request after a page, or None when there is none."""


class SinglePage(Struct, frozen=True):
    """One request."""

    ends_when_empty: bool = True

    def first(self, url: httpx.URL) -> httpx.URL:
        """Return the request as it is."""
        return url

    def next(self, page: Page) -> httpx.URL | None:  # noqa: ARG002 - the protocol's signature
        """There is no other page."""
        return None


class LinkHeader(Struct, frozen=True):
    """The server names the next page in a `Link` header."""

    ends_when_empty: bool = False

    def first(self, url: httpx.URL) -> httpx.URL:
        """Return the request as it is."""
        return url

    def next(self, page: Page) -> httpx.URL | None:
        """Return the target of the link whose relation words contain `next`."""
        for link in page.headers.get_list("link"):
            target = next_link(link)
            if target is not None:
                return joined(page.answered_by, target)
        return None


def next_link(header: str) -> str | None:
    """Return the target of the `next` link of a `Link` header.

    >>> next_link('<https://h/a?p=1>; rel="prev", </a?p=3>; title="x, y"; rel="last next"')
    '/a?p=3'
    >>> next_link("<b>; rel=next"), next_link('<c>; rel="nextish"')
    ('b', None)
    """
    position = 0
    while (start := header.find("<", position)) >= 0 and (end := header.find(">", start)) >= 0:
        parameters, position = _parameters(header, end + 1)
        if any(name == "rel" and "next" in value.lower().split() for name, value in parameters):
            return header[start + 1 : end]
    return None


def _parameters(header: str, position: int) -> tuple[list[tuple[str, str]], int]:
    """Read `; name=value` pairs up to the comma that ends a link, quotes respected."""
    parts, current, is_quoted = [], "", False
    while position < len(header):
        character = header[position]
        position += 1
        if character == '"':
            is_quoted = not is_quoted
        elif character in ";," and not is_quoted:
            parts.append(current)
            current = ""
            if character == ",":
                break
        else:
            current += character
    parts.append(current)
    pairs = (part.partition("=") for part in parts)
    return [(name.strip().lower(), value.strip()) for name, _, value in pairs], position


class NumberedPages(Struct, frozen=True):
    """A parameter counts pages (`page`) or records (`offset`)."""

    param: str
    start: int
    counts_records: bool
    size_param: str | None = None
    size: int | None = None
    ends_when_empty: bool = True

    def first(self, url: httpx.URL) -> httpx.URL:
        """Return the request with the first number, and the page size when one is declared."""
        if self.size_param is not None and self.size is not None:
            url = url.copy_set_param(self.size_param, str(self.size))
        return url.copy_set_param(self.param, str(self.start))

    def next(self, page: Page) -> httpx.URL | None:
        """Return the request for the following number."""
        asked = page.url.params.get(self.param, "")
        number = int(asked) if _NUMBER.fullmatch(asked) else self.start
        step = page.records if self.counts_records else 1
        return page.url.copy_set_param(self.param, str(number + step))


class CursorToken(Struct, frozen=True):
    """Each page holds the token of the next one."""

    pointer: str
    param: str
    entity: str
    ends_when_empty: bool = False

    def first(self, url: httpx.URL) -> httpx.URL:
        """Return the request as it is."""
        return url

    def next(self, page: Page) -> httpx.URL | None:
        """Return the request with the page's token, or None when it has none.

        Raises:
            PzConnectorError: permanent; there is something else where the token should be.
        """
        found, token = find(page.document, pointer_parts(self.pointer) or ())
        if not found or token is None or token == "":
            return None
        if not isinstance(token, str):  # a number is a text here, as it was written
            raise PzConnectorError(
                f"entity '{self.entity}': what is at pagination.pointer '{self.pointer}' is no token",
                is_transient=False,
                hint="correct pagination.pointer",
            )
        return page.url.copy_set_param(self.param, str(token))


def build_pagination(options: Mapping[str, Any] | None, entity: str) -> Pagination:
    """Build what checked options describe; `entity` is named in messages."""
    if options is None:
        return SinglePage()
    kind = options["type"]
    if kind == "link_header":
        return LinkHeader()
    if kind == "cursor":
        return CursorToken(options["pointer"], options["param"], entity)
    is_offset = kind == "offset"
    return NumberedPages(
        param=options.get("param", kind),
        start=options.get("start", 0 if is_offset else 1),
        counts_records=is_offset,
        size_param=options.get("size_param"),
        size=options.get("size"),
    )
