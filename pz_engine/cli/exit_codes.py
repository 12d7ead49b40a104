"""What the command's exit code means; a contract."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every verb."""

    OK = 0
    """Everything succeeded, or there was nothing to do."""

    NODE_FAILURES = 1
    """A run finished with a failed node, or a management verb found something broken."""

    USAGE = 2
    """The project, the selection or the command line was refused."""

    FATAL = 3
    """An unexpected failure, a local input/output failure, or a cancelled run."""
