"""A PostgreSQL cluster of the tests' own, from the machine's binaries; it listens on a socket file only."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def find_binaries() -> Path | None:
    """Return the folder of `initdb` and `pg_ctl`, or None."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return installed[-1].parent if installed else None


@contextmanager
def cluster(binaries: Path) -> Iterator[str]:
    """Run a cluster for the block; gives the address of its database. The server refuses root, so root lends it a user."""
    who: Mapping[str, Any] = {}
    directory = Path(tempfile.mkdtemp(prefix="pz-pg-", dir="/tmp"))
    if os.geteuid() == 0:
        names = {entry.pw_name for entry in pwd.getpwall()}
        user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(directory, user.pw_uid, user.pw_gid)
    data = directory / "data"

    def call(program: str, *arguments: str) -> None:
        command = [str(binaries / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=directory, **who)

    options = f"-k {directory} -c listen_addresses='' -c fsync=off -c full_page_writes=off"
    try:
        call("initdb", "-D", str(data), "-U", "pz", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        call("pg_ctl", "-D", str(data), "-w", "-l", str(directory / "log"), "-o", options, "start")
        try:
            yield f"postgresql+psycopg2://pz@/postgres?host={directory}"
        finally:
            call("pg_ctl", "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
