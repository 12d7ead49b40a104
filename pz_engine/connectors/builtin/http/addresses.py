"""Addresses that a server sends: read without trust, and shown without what they may carry."""

from __future__ import annotations

import re
from typing import Final

import httpx

from pz_engine.errors.exceptions import PzConnectorError

_PLAIN_SERVER: Final = re.compile(r"[A-Za-z0-9.-]{1,100}(:[0-9]{1,5})?")


def no_address() -> PzConnectorError:
    """Return the error for a link that leads nowhere; its text is not shown."""
    return PzConnectorError(
        "a link to follow is no address",
        is_transient=False,
        hint="correct the server, or page another way: pagination: { type: page }",
    )


def parsed(text: str) -> httpx.URL:
    """Read an address.

    Raises:
        PzConnectorError: permanent; it is none. The text is not shown.
    """
    try:
        return httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        raise no_address() from None


def joined(base: httpx.URL, link: str) -> httpx.URL:
    """Return the address a link on a page means.

    Args:
        base: the address that answered with the page.
        link: absolute, or relative to `base`.

    Raises:
        PzConnectorError: permanent; the link leads to no address. Its text is not shown.
    """
    try:
        return base.join(link)
    except (httpx.InvalidURL, ValueError):
        raise no_address() from None


def same_page_key(url: httpx.URL) -> str:
    """Return a text that is equal for addresses which ask for the same page; a fragment is never sent.

    >>> same_page_key(httpx.URL("http://h/a?p=1#top"))
    'http://h/a?p=1'
    """
    return str(url.copy_with(fragment=None))


def shown_server(url: httpx.URL) -> str:
    """Return the server of an address for people; one that is no plain name may carry a secret and is not shown.

    >>> shown_server(httpx.URL("http://files.example:81/a")), shown_server(httpx.URL("http://a_b/"))
    ('http://files.example:81', 'another server')
    """
    server = url.host if url.port is None else f"{url.host}:{url.port}"
    is_plain = _PLAIN_SERVER.fullmatch(server) is not None and url.scheme in ("http", "https")
    return f"{url.scheme}://{server}" if is_plain else "another server"
