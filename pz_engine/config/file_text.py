"""Reads a project file into text.

Only a regular file of bounded size is read, so that neither a pipe nor a mistake of gigabytes can stall a command.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pz_engine.errors.exceptions import PzConfigError

MAX_YAML_BYTES = 4 * 1024 * 1024
"""Largest YAML file; what people write is a thousandth of it."""

MAX_SQL_BYTES = 1024 * 1024
"""Largest pipeline; DuckDB takes minutes over some larger ones."""

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_KINDS = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISCHR, "a device"))


def is_there(path: Path) -> bool:
    """Tell whether a name exists, whatever it stands for: a dangling link too."""
    return os.path.lexists(path)


def read_file_text(path: Path, name: str, limit: int) -> str:
    r"""Return the text with `\n` line ends and without a byte-order mark.

    Args:
        path: the file.
        name: project-relative name for messages.
        limit: bytes of the largest file of its kind.

    Raises:
        PzConfigError: `PZ0101`, with the line of bytes that are no text.
    """
    content = _read_bytes(path, name, limit)
    if content.startswith(_WIDE_MARKS) or b"\x00" in content:
        position = content.find(b"\x00")
        is_wide = content.startswith(_WIDE_MARKS) or content[:2].find(b"\x00") >= 0
        raise PzConfigError(
            "PZ0101", f"{name} is UTF-16 text" if is_wide else f"{name} is not text: it holds a NUL byte", file=name,
            line=1 if is_wide else content.count(b"\n", 0, position) + 1, hint="save it as UTF-8",
        )  # fmt: skip
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PzConfigError(
            "PZ0101", f"{name} is not UTF-8 text", file=name, line=line, hint="save it as UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def not_a_file(mode: int, name: str) -> PzConfigError:
    """Return the problem of something that stands where a file is expected."""
    kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "no regular file")
    return PzConfigError(
        "PZ0101", f"{name} is {kind} where a file is expected", file=name, hint="rename it, or put a file in its place"
    )


def cannot_read(error: OSError, name: str) -> PzConfigError:
    """Return the problem of a file or folder that the operating system does not let us read."""
    reason = error.strerror or type(error).__name__
    return PzConfigError(
        "PZ0101", f"{name} cannot be read: {reason}", file=name, hint="check its permissions and where its links lead"
    )


def _read_bytes(path: Path, name: str, limit: int) -> bytes:
    try:
        # Without O_NONBLOCK, opening a pipe waits for somebody to write to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise cannot_read(error, name) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise not_a_file(mode, name)
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise cannot_read(error, name) from None
    finally:
        os.close(descriptor)
    if len(content) > limit:
        raise PzConfigError(
            "PZ0101", f"{name} is larger than {limit // 1024**2} MiB, the limit of such a file", file=name,
            hint="keep data in data files, and split the project into several files or projects",
        )  # fmt: skip
    return content
