"""Headless Chromium: the text of a page as a person would read it, and pictures.

Each call is a browser of its own, with a profile that is thrown away; virtual time lets a page load its data and settle.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from html import unescape
from pathlib import Path

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def find_chromium() -> str | None:
    """Return the browser's command, if there is one."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def page(url: str, *, picture: Path | None = None, size: tuple[int, int] = (1400, 900)) -> str:
    """Return a page's document as the browser has built it, and write a picture of it as PNG where one is wanted."""
    pictured = [f"--screenshot={picture}"] if picture is not None else []
    return _run([*pictured, "--dump-dom", url], size)


def visible_text(document: str) -> str:
    """Return the words of a document between single spaces, without scripts, styles and tags."""
    for name in ("script", "style"):
        document = re.sub(rf"<{name}\b.*?</{name}>", " ", document, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", document)).split())


def _run(arguments: Sequence[str], size: tuple[int, int]) -> str:
    command = find_chromium()
    if command is None:
        raise FileNotFoundError("no chromium; install Debian's package of that name")
    with tempfile.TemporaryDirectory(prefix="pz-browser-", ignore_cleanup_errors=True) as profile:
        options = [f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}", "--virtual-time-budget=30000"]
        done = subprocess.run(
            [command, *_FLAGS, *options, *arguments], check=True, capture_output=True, text=True, timeout=120
        )
    return done.stdout
