"""Turns an exception nobody anticipated into one problem.

The operating system's error number decides, never the text of a message, and no text of a foreign error is shown
unsanitized.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from pz_engine.base.redact import sanitize
from pz_engine.errors.diagnostics import Diagnostic

_ACCESS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_IN_THE_WAY: Final = frozenset({errno.ENOTDIR, errno.EEXIST})
_BUSY: Final = frozenset({errno.EBUSY, errno.ETXTBSY, errno.EAGAIN})


def diagnose(error: BaseException) -> Diagnostic:
    """Return the problem that an unanticipated exception stands for: `PZ0531`, `PZ0532`, `PZ0533` or `PZ0500`."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno is not None:
            problem = _input_output(cause)
            if problem is not None:
                return problem
        cause = cause.__cause__
    kind = type(error).__name__
    text = str(error)
    detail = sanitize(f"{kind}: {text}").partition("\n")[0] if text else kind
    return Diagnostic(
        "PZ0500",
        f"pz failed unexpectedly ({detail})",
        hint="please report this; with PZ_DEBUG=1 set, the trace is shown",
    )


def obstacle(path: str) -> str:
    """Return what stands where a path needs a folder: the path itself, or the one of its parents that is no folder."""
    candidate = Path(path)
    while not os.path.lexists(candidate) and candidate.parent != candidate:
        candidate = candidate.parent
    return path if candidate.is_dir() else str(candidate)


def _input_output(error: OSError) -> Diagnostic | None:
    name = f"'{error.filename}'" if isinstance(error.filename, str) else "a file"
    if error.errno in _ACCESS:
        return Diagnostic(
            "PZ0531",
            f"the operating system denied access to {name}: {error.strerror}",
            hint="correct the permissions, or run as a user who has them",
        )
    if error.errno in _FULL:
        return Diagnostic(
            "PZ0532", f"there is no space left to write {name}", hint="free disk space, for example below .pz/runs"
        )
    if error.errno in _IN_THE_WAY:
        if isinstance(error.filename, str):
            name = f"'{obstacle(error.filename)}'"
        return Diagnostic(
            "PZ0531", f"{name} is in the way: {error.strerror}", hint="move it; a folder is needed in its place"
        )
    if error.errno in _BUSY:
        return Diagnostic("PZ0533", f"{name} is in use by another process", hint="close the other process")
    return None
